"""The version, in one place: `setup.cfg` and `mgjit.__version__` both read it here."""

__version__ = "0.1.0"
