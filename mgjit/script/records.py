"""`dataclass`, without what `dataclasses` imports and compiles: a script that is run has to start at once.

For type checkers it is the one of the standard library.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import field, replace

    __all__ = ["field", "record", "replace"]
else:

    class field:
        """A default that is made anew for each record."""

        def __init__(self, default_factory):
            self.make = default_factory

    def record(kind):
        """Give a class an `__init__` whose parameters are the attributes that it declares, in that order."""
        names = list(kind.__annotations__)
        defaults = {name: vars(kind)[name] for name in names if name in vars(kind)}
        factories = {name: default.make for name, default in defaults.items() if type(default) is field}
        constants = {name: default for name, default in defaults.items() if name not in factories}
        needed = [name for name in names if name not in defaults]

        def __init__(self, *values, **named):
            given = dict(zip(names, values), **named)
            if len(values) > len(names) or any(name not in given for name in needed):
                raise TypeError(f"{kind.__name__} takes {', '.join(names)}")
            vars(self).update(constants)
            vars(self).update({name: make() for name, make in factories.items() if name not in given})
            vars(self).update(given)

        kind.__init__ = __init__
        return kind

    def replace(one, **changes):
        """A copy of a record with some attributes changed."""
        return type(one)(**{**vars(one), **changes})
