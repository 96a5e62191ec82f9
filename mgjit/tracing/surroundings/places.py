"""Places in the user's objects that hold a number: fields of objects, variables, elements of lists and dicts.

A place reads and writes what lies there *raw*: past properties, and past what memory/live.py puts in front of
fields.  Places are told apart by what holds them and under which name, not by what they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from keyword import iskeyword
from typing import Any

from ...memory.live import Field, original_class, raw_attributes, slot


class Place:
    """Holds one object."""

    __slots__ = ("holder", "name")

    def __init__(self, holder: Any, name: Any) -> None:
        self.holder, self.name = holder, name

    @property
    def key(self) -> tuple[Any, Any]:
        """Its identity: equal for places that are the same."""
        return id(self.holder), self.name

    @property
    def container(self) -> Place | None:
        """The place of the list of which this is an element; None when it is none."""
        return None

    @property
    def kind(self) -> Any:
        """What places of the same meaning have in common, such as an attribute of the objects of a class."""
        return self.key

    def lost(self) -> Place | None:
        """The place of a container that was another one when this place was found, and so has it no more."""
        return None

    def read(self) -> Any:
        """What lies there."""
        raise NotImplementedError

    def is_empty(self) -> bool:
        """Whether nothing lies there any more."""
        try:
            self.read()
        except (AttributeError, LookupError, ValueError):  # ValueError: of a variable
            return True
        return False

    def has(self, thing: Any) -> bool:
        """Whether this object lies there."""
        return self.lost() is None and not self.is_empty() and self.read() is thing

    def write(self, thing: Any) -> None:
        """Put something there."""
        raise NotImplementedError

    def delete(self) -> None:
        """Let nothing lie there."""
        raise NotImplementedError

    def describe(self) -> str:
        """For messages."""
        raise NotImplementedError

    def expression(self, name_of: Callable[[Any], str]) -> str:
        """A Python expression that reads what lies there.

        Args:
            name_of: makes a name by which the expression can refer to an object.
        """
        return f"{name_of(self.read)}()"

    def assignment(self, name_of: Callable[[Any], str], content: str) -> str:
        """A Python statement that puts something there."""
        return f"{name_of(self.write)}({content})"


class Entry(Place):
    """An entry of a dict of the user's, or of a module's variables; or an element of a list that lies nowhere.

    Args:
        text: for messages, where there is no parent.
        parent: where the dict lies.
    """

    __slots__ = ("parent", "text")

    def __init__(
        self, holder: dict[Any, Any] | list[Any], name: Any, text: str = "", parent: Place | None = None
    ) -> None:
        super().__init__(holder, name)
        self.text, self.parent = text, parent

    def expression(self, name_of: Callable[[Any], str]) -> str:
        return f"{name_of(self.holder)}[{name_of(self.name)}]"

    def assignment(self, name_of: Callable[[Any], str], content: str) -> str:
        return f"{self.expression(name_of)} = {content}"

    def read(self) -> Any:
        return self.holder[self.name]

    def write(self, thing: Any) -> None:
        self.holder[self.name] = thing

    def delete(self) -> None:
        del self.holder[self.name]

    def describe(self) -> str:
        return self.text if self.parent is None else f"{self.parent.describe()}[{self.name!r}]"


class Attribute(Place):
    """An attribute of an object, in its dict or a slot."""

    __slots__ = ("field",)

    def __init__(self, holder: Any, field: Field) -> None:
        super().__init__(holder, field.name)
        self.field = field

    @property
    def key(self) -> tuple[Any, Any]:
        return self.field.key(self.holder)

    @property
    def kind(self) -> Any:
        return original_class(type(self.holder)), self.name

    def expression(self, name_of: Callable[[Any], str]) -> str:
        if self.is_plain():
            return f"{name_of(self.holder)}.{self.name}"
        if self.field.is_slot:
            return f"{name_of(self.field.read)}({name_of(self.holder)})"
        return f"{name_of(raw_attributes)}({name_of(self.holder)})[{name_of(self.name)}]"

    def assignment(self, name_of: Callable[[Any], str], content: str) -> str:
        if self.field.is_slot and not self.is_plain():
            return f"{name_of(self.field.write)}({name_of(self.holder)}, {content})"
        return f"{self.expression(name_of)} = {content}"

    def is_plain(self) -> bool:
        """Whether the class lets Python read and write the field itself."""
        kind = type(self.holder)
        hooks = ("__getattribute__", "__setattr__", "__getattr__")
        if any(getattr(kind, hook, None) is not getattr(object, hook, None) for hook in hooks):
            return False
        member = next((vars(cls)[self.name] for cls in kind.__mro__ if self.name in vars(cls)), None)
        return self.name.isidentifier() and not iskeyword(self.name) and member is slot(kind, self.name)

    def read(self) -> Any:
        return self.field.read(self.holder)

    def write(self, thing: Any) -> None:
        self.field.write(self.holder, thing)

    def describe(self) -> str:
        return f"{type(self.holder).__name__}.{self.name}"


class ClassAttribute(Place):
    """An attribute of a class itself."""

    __slots__ = ()
    holder: type

    def read(self) -> Any:
        return vars(self.holder)[self.name]

    def write(self, thing: Any) -> None:
        setattr(self.holder, self.name, thing)

    def describe(self) -> str:
        return f"{self.holder.__name__}.{self.name}"


class FunctionDefaults(Place):
    """The defaults of the parameters of a function, by position and by name."""

    __slots__ = ()

    def read(self) -> Any:
        return self.holder.__defaults__, self.holder.__kwdefaults__

    def write(self, thing: Any) -> None:
        self.holder.__defaults__, self.holder.__kwdefaults__ = thing

    def describe(self) -> str:
        return f"the defaults of {self.holder.__name__}"


class Variable(Place):
    """A variable of an enclosing function."""

    __slots__ = ()

    def expression(self, name_of: Callable[[Any], str]) -> str:
        return f"{name_of(self.holder)}.cell_contents"

    def assignment(self, name_of: Callable[[Any], str], content: str) -> str:
        return f"{self.expression(name_of)} = {content}"

    def read(self) -> Any:
        return self.holder.cell_contents

    def write(self, thing: Any) -> None:
        self.holder.cell_contents = thing

    def delete(self) -> None:
        del self.holder.cell_contents

    def describe(self) -> str:
        return f"the variable {self.name}"


class Element(Place):
    """An element of the list or tuple that lies at another place."""

    __slots__ = ("_container", "siblings")
    holder: Place

    def __init__(self, holder: Place, container: Any, index: int) -> None:
        super().__init__(holder, index)
        self.siblings = len(container)
        self._container = id(container)  # the place outlives nothing: what is known by it is kept by the walk

    @property
    def key(self) -> tuple[Any, Any]:
        return self._container, self.name

    @property
    def container(self) -> Place | None:
        return self.holder

    def lost(self) -> Place | None:
        around = self.holder.lost()
        return around or (None if id(self.holder.read()) == self._container else self.holder)

    def read(self) -> Any:
        return self.holder.read()[self.name]

    def write(self, thing: Any) -> None:
        self.holder.read()[self.name] = thing

    def describe(self) -> str:
        return f"{self.holder.describe()}[{self.name}]"


class Contents(Place):
    """All elements of a list, wherever that lies.

    Args:
        place: where it does.
    """

    __slots__ = ()
    holder: list[Any]
    name: Place

    def __init__(self, holder: list[Any], place: Place) -> None:
        super().__init__(holder, place)

    @property
    def key(self) -> tuple[Any, Any]:
        return id(self.holder), ALL

    def read(self) -> Any:
        return list(self.holder)

    def write(self, thing: Any) -> None:
        self.holder[:] = thing

    def delete(self) -> None:
        self.holder.clear()

    def describe(self) -> str:
        return self.name.describe()

    def expression(self, name_of: Callable[[Any], str]) -> str:
        return name_of(self.holder)

    def assignment(self, name_of: Callable[[Any], str], content: str) -> str:
        return f"{name_of(self.holder)}[:] = {content}"


class Part(Place):
    """A part of what lies at another place.

    Args:
        place: this place.
        steps: (whether it is an attribute, its name, index or key).
    """

    __slots__ = ()
    holder: Place
    name: tuple[tuple[bool, Any], ...]

    def read(self) -> Any:
        found = self.holder.read()
        for is_attribute, name in self.name:
            found = getattr(found, name) if is_attribute else found[name]
        return found

    def expression(self, name_of: Callable[[Any], str]) -> str:
        text = self.holder.expression(name_of)
        for is_attribute, name in self.name:
            text += f".{name}" if is_attribute else f"[{name_of(name)}]"
        return text


#: The name of all elements of a list.
ALL = ("all elements",)


class Root(Place):
    """An object that is given, such as an argument."""

    __slots__ = ()

    def read(self) -> Any:
        return self.holder

    def describe(self) -> str:
        return str(self.name)


def is_writable(place: Place) -> bool:
    """Whether something else can be put there."""
    return type(place.holder.read()) is list if isinstance(place, Element) else not isinstance(place, Root)
