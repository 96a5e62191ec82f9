"""mgjit: compiles training steps written in plain scalar Python, bit for bit.

The public names (public.py) are imported when the first of them is used: `python -m mgjit run` may run a script that
needs none of them.
"""

from ._version import __version__ as __version__

TYPE_CHECKING = False  # `typing` takes long to import
if TYPE_CHECKING:
    from .public import *  # noqa: F403
    from .public import __all__ as __all__
    from .script.notebook import load_ipython_extension as load_ipython_extension
else:

    def __getattr__(name: str) -> object:
        from importlib import import_module
        from importlib.machinery import PathFinder

        if not name.startswith("__") and PathFinder.find_spec(f"{__name__}.{name}", globals()["__path__"]) is not None:
            return import_module(f".{name}", __name__)
        if not name.startswith("__") or name == "__all__":
            public = import_module(".public", __name__)
            missing = set(public.__all__) - globals().keys()  # a program may have set one of them
            globals().update({each: getattr(public, each) for each in missing}, __all__=public.__all__)
            if name in vars(public):
                return vars(public)[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        __getattr__("__all__")
        return sorted(globals())


del TYPE_CHECKING
