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
            found = {each: vars(public)[each] for each in public.__all__ if each in vars(public)}
            if name in public.LATER:
                found[name] = getattr(import_module(f".{public.LATER[name]}", __name__), name)
            found["__all__"] = public.__all__
            globals().update({each: found[each] for each in found.keys() - globals().keys()})  # or a program has set it
            if name in found:
                return found[name]
            if hasattr(import_module(".tensor", __name__), name):
                hint = f"functions of tensors are in {__name__}.tensor: {__name__}.tensor.{name}"
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}; {hint}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})


del TYPE_CHECKING
