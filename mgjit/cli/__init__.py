"""The command line: `python -m mgjit demo | doctor | cache`."""
