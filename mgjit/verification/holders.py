"""Things that can change, one class for each kind: what they hold is read, compared by parts, and put back."""

from __future__ import annotations

import functools
import operator
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from typing import Any

from ..engine.value import Value
from ..memory.buffers import ParameterStorage
from ..tensor.memory import Memory
from ..tracing.call.inputs import ELEMENT_FORMATS
from ..tracing.draws.plan import restore_state, state_of
from ..tracing.surroundings.shapes import MISSING

#: Types that hold nothing else, and can be compared directly.
ATOMS = frozenset({int, float, bool, str, bytes, complex, type(None)})
#: The path to a thing: the path to where it was found, and its name there.
Path = tuple[Any, str]


class Holder:
    """Something that can change.

    Attributes:
        thing: the object. path: leads to it.
    """

    __slots__ = ("path", "thing")

    def __init__(self, thing: Any, path: Path) -> None:
        self.thing, self.path = thing, path

    def read(self) -> Any:
        """Its contents: a shallow copy."""
        raise NotImplementedError

    def write(self, contents: Any) -> None:
        """Restore contents that `read` has returned."""
        raise NotImplementedError

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        """The parts of contents, by name."""
        return contents  # type: ignore[no-any-return]

    def label(self, name: Any) -> str:
        """How an entry is written after the path."""
        return f"[{name!r}]"

    def describe(self, name: Any) -> str:
        """An entry, for messages."""
        return described((self.path, self.label(name)))


class Elements(Holder):
    """The elements of a list or deque."""

    __slots__ = ()

    def read(self) -> Any:  # by methods of Python's own: those of a derived class may do anything
        return list((list if isinstance(self.thing, list) else deque).__iter__(self.thing))

    def write(self, contents: Any) -> None:
        now = self.read()
        if len(now) == len(contents) and all(map(operator.is_, now, contents)):
            return
        if isinstance(self.thing, list):
            list.__setitem__(self.thing, slice(None), contents)
        else:
            deque.clear(self.thing)
            deque.extend(self.thing, contents)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return dict(enumerate(contents))


class Members(Holder):
    """The elements of a set, which are not compared."""

    __slots__ = ()

    def read(self) -> Any:
        return set(set.__iter__(self.thing))

    def write(self, contents: Any) -> None:
        if self.read() != contents:
            set.clear(self.thing)
            set.update(self.thing, contents)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return {}


class Entries(Holder):
    """The entries of a dict."""

    __slots__ = ()

    def read(self) -> Any:
        return dict((OrderedDict if isinstance(self.thing, OrderedDict) else dict).items(self.thing))

    def write(self, contents: Any) -> None:
        thing, now = self.thing, self.read()
        methods: Any = OrderedDict if isinstance(thing, OrderedDict) else dict
        for name in [name for name in now if name not in contents]:
            methods.__delitem__(thing, name)
        for name, content in contents.items():
            if name not in now or now[name] is not content:
                methods.__setitem__(thing, name, content)
        if list(methods.__iter__(thing)) != list(contents):
            methods.clear(thing)
            methods.update(thing, contents)


class Attributes(Entries):
    """The attributes of an object that has a dict."""

    __slots__ = ()

    def label(self, name: Any) -> str:
        return f".{name}"


class Names(Holder):
    """Some of the variables of a module, or some attributes of a class."""

    __slots__ = ("_delete", "_namespace", "_write", "names")

    def __init__(self, thing: Any, path: Path, names: Iterable[str]) -> None:
        super().__init__(thing, path)
        self.names = list(names)
        if isinstance(thing, type):
            self._namespace: Any = vars(thing)
            self._write: Any = functools.partial(type.__setattr__, thing)
            self._delete: Any = functools.partial(type.__delattr__, thing)
        else:
            self._namespace, self._write, self._delete = thing, thing.__setitem__, thing.__delitem__

    def read(self) -> Any:
        return {name: self._namespace.get(name, MISSING) for name in self.names}

    def write(self, contents: Any) -> None:
        for name, content in contents.items():
            if self._namespace.get(name, MISSING) is content:
                continue
            if content is MISSING:
                self._delete(name)
            else:
                self._write(name, content)

    def label(self, name: Any) -> str:
        return f".{name}" if isinstance(self.thing, type) else str(name)


class Slots(Holder):
    """The slots of an object."""

    __slots__ = ("_members",)

    def __init__(self, thing: Any, path: Path, members: dict[str, Any]) -> None:
        super().__init__(thing, path)
        self._members = members

    def read(self) -> Any:
        return [_content(member, self.thing) for member in self._members.values()]

    def write(self, contents: Any) -> None:
        for member, content in zip(self._members.values(), contents):
            if _content(member, self.thing) is content:
                continue
            if content is MISSING:
                member.__delete__(self.thing)
            else:
                member.__set__(self.thing, content)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return dict(zip(self._members, contents))

    def label(self, name: Any) -> str:
        return f".{name.lstrip('_') if isinstance(self.thing, Value) else name}"


class Variable(Holder):
    """A variable of an enclosing function."""

    __slots__ = ()

    def read(self) -> Any:
        try:
            return self.thing.cell_contents
        except ValueError:
            return MISSING

    def write(self, contents: Any) -> None:
        if contents is MISSING:
            del self.thing.cell_contents
        elif self.read() is not contents:
            self.thing.cell_contents = contents

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return {"": contents}

    def label(self, name: Any) -> str:
        return ""


class Buffer(Holder):
    """An array, a bytearray, or an array of numpy."""

    __slots__ = ()

    def read(self) -> Any:
        with memoryview(self.thing) as view:  # as long as there is one, an array cannot be resized
            return view.tobytes()

    def write(self, contents: Any) -> None:
        if self.read() == contents:
            return
        with memoryview(self.thing) as view:
            if view.c_contiguous:
                with view.cast("B") as flat:
                    flat[:] = contents
            else:
                self.thing[...] = memoryview(contents).cast(view.format, view.shape)  # type: ignore[call-overload]

    @staticmethod
    def is_possible(thing: Any) -> bool:
        """Whether a buffer holds plain numbers and can be written."""
        with memoryview(thing) as view:
            return (
                not view.readonly and view.format in ELEMENT_FORMATS and (view.c_contiguous or hasattr(thing, "dtype"))
            )

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        with memoryview(self.thing) as view:
            return dict(enumerate(memoryview(contents).cast(view.format)))  # type: ignore[call-overload]


class LaidOutNumbers(Holder):
    """The numbers of a State that a kernel has laid out; what lies between them in memory is nobody's."""

    __slots__ = ()

    def read(self) -> Any:
        return self.thing[:].tobytes()

    def write(self, contents: Any) -> None:
        if self.read() != contents:
            self.thing[:] = memoryview(contents).cast(self.thing.typecode)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return dict(enumerate(memoryview(contents).cast(self.thing.typecode)))


class Storage(Holder):
    """The memory of parameters.

    Attributes:
        known: the positions of numbers that are visible to the user, with their paths; the others are padding.
    """

    __slots__ = ("known", "with_gradients")

    def __init__(self, thing: ParameterStorage, path: Path, with_gradients: bool) -> None:
        super().__init__(thing, path)
        self.known: dict[tuple[int, bool], Path] = {}
        self.with_gradients = with_gradients

    def read(self) -> Any:
        return self.thing.data.tobytes(), self.thing.grad.tobytes()

    def write(self, contents: Any) -> None:
        for memory, numbers in zip((self.thing.data, self.thing.grad), contents):
            if memory.tobytes() != numbers:
                memory.cast("B")[:] = numbers

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        code = self.thing.precision.format
        data, gradients = (memoryview(numbers).cast(code) for numbers in contents)
        return {
            (index, is_gradient): gradients[index] if is_gradient else data[index]
            for index, is_gradient in self.known
            if self.with_gradients or not is_gradient
        }

    def describe(self, name: Any) -> str:
        return described(self.known[name])


class TensorMemory(Holder):
    """The memory of a tensor, and its gradient if it is a leaf."""

    __slots__ = ("_buffers",)

    def __init__(self, thing: Memory, path: Path, with_gradients: bool) -> None:
        super().__init__(thing, path)
        names = ["data", "grad"] if thing.is_leaf and with_gradients else ["data"]
        self._buffers = {name: getattr(thing, name) for name in names}

    def read(self) -> Any:
        return [buffer.tobytes() for buffer in self._buffers.values()]

    def write(self, contents: Any) -> None:
        for buffer, numbers in zip(self._buffers.values(), contents):
            if buffer.tobytes() != numbers:
                buffer.cast("B")[:] = numbers

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return {name: _comparable(numbers, self._buffers[name].format)
                for name, numbers in zip(self._buffers, contents)}  # fmt: skip

    def label(self, name: Any) -> str:
        return f".{name}"


def _comparable(numbers: bytes, code: str) -> Any:
    """Numbers as bytes; as a list where one is nan, of which there are several."""
    values: Any = memoryview(numbers).cast(code)  # type: ignore[call-overload]
    total = sum(values) if code in "df" else 0
    return numbers if total == total else list(values)


class Generator(Holder):
    """A generator of random numbers, compared by its state."""

    __slots__ = ()

    def read(self) -> Any:
        return state_of(self.thing)

    def write(self, contents: Any) -> None:
        restore_state(self.thing, contents)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return {"the state of the generator": repr(contents)}

    def label(self, name: Any) -> str:
        return f": {name}"


class Copy(Holder):
    """A place from which a kernel copies numbers, and to which it copies them back; `thing` is the place."""

    __slots__ = ()

    def read(self) -> Any:
        content = self.thing.read()
        return content, list(content) if type(content) is list else [content]

    def write(self, contents: Any) -> None:
        content, numbers = contents
        if type(content) is list and not (len(content) == len(numbers) and all(map(operator.is_, content, numbers))):
            content[:] = numbers
        if self.thing.read() is not content:
            self.thing.write(content)

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return dict(enumerate(contents[1]))

    def describe(self, name: Any) -> str:
        return str(self.thing.describe())


class Hidden(Buffer):
    """Memory that is not visible to the user: it is restored, but not compared."""

    __slots__ = ()

    def __init__(self, thing: Any) -> None:
        super().__init__(thing, (None, ""))

    def entries(self, contents: Any) -> Mapping[Any, Any]:
        return {}


def described(path: Any) -> str:
    """A path as it is written in Python."""
    parts: list[str] = []
    while path is not None:
        path, label = path
        parts.append(label)
        if label.startswith("the variable "):  # of a function, whose own path says no more
            break
    return "".join(reversed(parts))


def _content(member: Any, thing: Any) -> Any:
    try:
        return member.__get__(thing)
    except AttributeError:
        return MISSING
