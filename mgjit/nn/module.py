"""`Module`: something with parameters, over tensors or over scalars.

Nothing is registered: the parts of a module are found by looking at its attributes, in the order in which they were
assigned, also inside of lists, tuples and dicts.  A part is a parameter (a `Parameter`, another leaf that requires
gradients, or a scalar `Value`), a `Buffer`, or a module.  So a class may do without `super().__init__()`, and a list of
layers is as good as a `ModuleList`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import get_ident
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ..base.lookup import variables
from ..engine import hook
from ..engine.leaks import PlainCall
from ..engine.value import Value
from ..errors import ArgumentError, ShapeError, user_location
from ..tensor.apply import recording
from ..tensor.creation import asarray
from ..tensor.devices import device as Device
from ..tensor.dtypes import DTYPES, DType, dtype_of
from ..tensor.modes import no_grad
from ..tensor.tensor import Tensor
from .parameter import Buffer, Parameter

M = TypeVar("M", bound="Module")


class Parameters(list[Any] if TYPE_CHECKING else list):  # type: ignore[misc]
    """A list of parameters, of which `next(model.parameters())` gives the first, as of an iterator."""

    def __init__(self, found: Iterable[Any] = ()) -> None:
        super().__init__(found)
        self._taken, self._is_of_trace = 0, recording() is not None

    def __next__(self) -> Any:
        if recording() is not None and not self._is_of_trace:
            raise PlainCall(f"{user_location()}: the step takes the next of parameters that were listed outside of it.")
        if self._taken == len(self):
            raise StopIteration
        self._taken += 1
        return self[self._taken - 1]

    def __reduce__(self) -> Any:
        return list, (list(self),)


class Module:
    """Something with parameters.  A class derived from it assigns layers to attributes and defines `forward`.

    Attributes:
        training: True while the module is trained. Dropout and others work differently then; see `train` and `eval`.
    """

    training: bool = True
    #: Attributes that the guard of a compiled step compares at each call, of however many modules.
    compared_at_each_call: ClassVar[tuple[str, ...]] = ("training",)

    #: What `register_forward_hook` was given, by the number of each.
    _hooks: Mapping[int, Any] = MappingProxyType({})

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if not self._hooks:
            return self.forward(*inputs, **named)
        found = self.forward(*inputs, **named)
        for seen in list(self._hooks.values()):
            other = seen(self, inputs, found)
            found = found if other is None else other
        return found

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """What the module computes."""
        raise ArgumentError(
            f"{user_location()}: {type(self).__name__} has no method forward(self, x), which calls of a module run."
        )

    def register_forward_hook(self, hook: Callable[[Any, Any, Any], Any]) -> Hook:
        """Call `hook(module, inputs, result)` after each call; what it returns, if not None, replaces the result.

        Returns:
            something with a method `remove()`.
        """
        return Hook(self, hook)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep a tensor as an attribute that is not trained.

        Args:
            persistent: whether it is part of `state_dict()`.
        """
        if tensor is not None:
            kept = tensor if isinstance(tensor, Buffer) else Buffer(tensor)
            tensor = kept if persistent else kept.detach()
        variables(self)[name] = tensor

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Keep a parameter, or None, as an attribute."""
        variables(self)[name] = parameter

    def register_module(self, name: str, module: Module | None) -> None:
        """Keep a module, or None, as an attribute."""
        variables(self)[name] = module

    add_module = register_module

    # ---- its parts --------------------------------------------------------------------------------------

    def _parts(self) -> Iterable[tuple[str, Any]]:
        """Names and contents of the attributes."""
        return variables(self).items()

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules among the attributes, with their names: `layers.0` is the first in a list."""
        return ((name, part) for name, part in _found(self._parts()) if isinstance(part, Module))

    def children(self) -> Iterator[Module]:
        """The modules among the attributes."""
        return (part for _, part in self.named_children())

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """This module, whose name is empty, and all inside it, each once."""
        return _inside(self, "", set())

    def modules(self) -> Iterator[Module]:
        """This module and all inside it, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Everything that is trained, with names such as `layers.0.weight`, in the order of `parameters`."""
        return self._named(_is_parameter)

    def parameters(self, recurse: bool = True) -> Parameters:
        """Everything that is trained, each once, its own first: tensors, and of scalar layers `Value`s.

        Args:
            recurse: whether those of the modules inside are among them.
        """
        parts = [part for _, part in _found(self._parts())]
        own = [part for part in parts if _is_parameter(part)]
        inside = [p for part in parts if recurse and isinstance(part, Module) for p in part.parameters()]
        return Parameters({id(p): p for p in (*own, *inside)}.values())

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """What is kept and not trained, with names."""
        return self._named(lambda part: isinstance(part, Buffer))

    def buffers(self) -> Iterator[Buffer]:
        """What is kept and not trained."""
        return (part for _, part in self.named_buffers())

    def _named(self, is_wanted: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for prefix, module in self.named_modules():
            for name, part in _found(module._parts()):
                if is_wanted(part) and id(part) not in seen:
                    seen.add(id(part))
                    yield f"{prefix}.{name}" if prefix else name, part

    # ---- what is done to all of them ----------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradient of every parameter to 0.0; there is always one."""
        parameters = self.parameters()
        is_recorded = False
        if (recording := hook.recording) is not None and recording.thread == get_ident():
            is_recorded = recording.methods["zero_grad"](parameters)
        for p in () if is_recorded else parameters:
            if not isinstance(p, Tensor) or p.requires_grad:
                p.grad = 0.0

    def train(self: M, mode: bool = True) -> M:
        """Let this module, and all inside it, know that they are being trained (or used, see `eval`)."""
        for module in self.modules():
            module.training = bool(mode)
        return self

    def eval(self: M) -> M:
        """Let this module, and all inside it, know that they are being used: no dropout, no new running statistics."""
        return self.train(False)

    def requires_grad_(self: M, wanted: bool = True) -> M:
        """Whether the parameters, tensors only, are trained."""
        for p in self.parameters():
            if isinstance(p, Tensor):
                p.requires_grad = wanted
        return self

    def apply(self: M, function: Callable[[Module], Any]) -> M:
        """Call a function with each module inside this one, and at last with this one."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def astype(self: M, dtype: Any) -> M:
        """Change the type of all parameters and buffers of floats; objects stay the same, gradients become 0.0."""
        kind = dtype_of(dtype)
        for part in (*self.parameters(), *self.buffers()):
            if isinstance(part, Tensor) and part.dtype is not kind and part.dtype.is_floating:
                _convert(part, kind)
        return self

    def to(self: M, *given: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False) -> M:
        """Change the type of all parameters and buffers of floats; a device must be the processor."""
        Device(device)
        for one in given:
            if isinstance(one, (DType, type)) or (isinstance(one, str) and one in DTYPES):
                dtype = one
            elif not isinstance(one, bool):
                Device(one)
        return self if dtype is None else self.astype(dtype)

    def cpu(self: M) -> M:
        """The module itself."""
        return self

    def float(self: M) -> M:
        """Change all parameters and buffers to float32."""
        return self.astype("float32")

    def double(self: M) -> M:
        """Change all parameters and buffers to float64."""
        return self.astype("float64")

    # ---- state --------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of all parameters and buffers, by name; later training does not change them.

        `mgjit.nn.save` writes them to a file.
        """
        with no_grad():
            return {name: _copied(part) for name, part in self._named(_is_state)}

    def load_state_dict(self, state: Any, strict: bool = True) -> None:
        """Assign to all parameters and buffers, in place; nothing is assigned if there is an error.

        Args:
            state: tensors, arrays or lists of numbers by name, such as from `state_dict` or `mgjit.nn.load`.
            strict: whether names that are missing or unknown are errors.

        Raises:
            ArgumentError: names are missing or unknown.
            ShapeError: a shape is another one.
        """
        parts = dict(self._named(_is_state))
        missing, unknown = (
            [name for name in one if name not in other] for one, other in ((parts, state), (state, parts))
        )
        if strict and (missing or unknown):
            raise ArgumentError(
                f"{user_location()}: load_state_dict of {type(self).__name__}: "
                + "; ".join(f"{what}: {', '.join(names)}" for what, names in
                            (("missing", missing), ("not in the module", unknown)) if names)
                + ". With strict=False these names are passed over."
            )  # fmt: skip
        given = {name: asarray(state[name]) for name in parts if name in state}
        for name, tensor in given.items():
            shape = parts[name].shape if isinstance(parts[name], Tensor) else ()
            if tensor.shape != shape:
                raise ShapeError(
                    f"{user_location()}: load_state_dict of {type(self).__name__}: {name} has shape {shape}, not "
                    f"{tensor.shape}."
                )
        with no_grad():
            for name, tensor in given.items():
                if isinstance(part := parts[name], Tensor):
                    part[...] = tensor.detach().astype(part.dtype)
                else:
                    part.data = float(tensor)

    # ---- text -----------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What `repr(layer)` shows in its parentheses."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {part!r}".replace("\n", "\n  ") for name, part in self.named_children()]
        name = type(self).__name__
        if not lines:
            return f"{name}({self.extra_repr()})"
        return "\n  ".join([f"{name}(", *filter(None, [self.extra_repr()]), *lines]) + "\n)"


def _found(parts: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Parts with their names, also those inside of lists, tuples and dicts."""
    for name, part in parts:
        if isinstance(part, (Module, Tensor, Value)):
            yield name, part
        elif isinstance(part, (list, tuple)):
            yield from _found((f"{name}.{k}", one) for k, one in enumerate(part))
        elif isinstance(part, dict):
            yield from _found((f"{name}.{key}", one) for key, one in part.items())


def _inside(module: Module, name: str, seen: set[int]) -> Iterator[tuple[str, Module]]:
    if id(module) not in seen:
        seen.add(id(module))
        yield name, module
        for child_name, child in module.named_children():
            yield from _inside(child, f"{name}.{child_name}" if name else child_name, seen)


def _is_parameter(part: Any) -> bool:
    if isinstance(part, Tensor):
        return isinstance(part, Parameter) or (part.requires_grad and part.is_leaf)
    return isinstance(part, Value)


def _is_state(part: Any) -> bool:
    return isinstance(part, Buffer) or _is_parameter(part)


def _copied(part: Any) -> Tensor:
    return part.detach().copy() if isinstance(part, Tensor) else asarray(float(part.data))


def _convert(part: Tensor, kind: DType) -> None:
    """Give a tensor other memory."""
    made = part.detach().astype(kind)
    made.requires_grad = part.requires_grad
    part._memory.become_leaf(False)  # which compiled steps notice
    part._memory, part._view = made._memory, made._view


class Hook:
    """A hook that can be removed."""

    def __init__(self, module: Module, hook: Any) -> None:
        self._module = module
        module._hooks = {**module._hooks, id(self): hook}

    def remove(self) -> None:
        """Do not call it any more."""
        self._module._hooks = {number: one for number, one in self._module._hooks.items() if number != id(self)}


class Sequential(Module):
    """Modules, or other functions, one after the other.

    Args:
        modules: each gets what the one before returns; or one dict of them, which names them.
    """

    def __init__(self, *modules: Any) -> None:
        named = modules[0] if len(modules) == 1 and isinstance(modules[0], dict) else dict(enumerate(modules))
        self._modules: dict[str, Any] = {str(name): module for name, module in named.items()}
        for name, module in self._modules.items():
            if not callable(module):
                raise ArgumentError(
                    f"{user_location()}: Sequential: {name} is a {type(module).__name__}, not a module or function."
                )

    def forward(self, x: Any) -> Any:
        for module in self._modules.values():
            x = module(x)
        return x

    def append(self, module: Any) -> Sequential:
        """Add one at the end."""
        self._modules[str(len(self._modules))] = module
        return self

    def _parts(self) -> Iterable[tuple[str, Any]]:
        return [*self._modules.items(), *((name, part) for name, part in variables(self).items() if name != "_modules")]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        """One of them, or with a slice a `Sequential` of several."""
        named = list(self._modules.items())
        return Sequential(dict(named[index])) if isinstance(index, slice) else named[index][1]


class ModuleList(Module):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._modules = list(modules)

    def append(self, module: Module) -> ModuleList:
        """Add one at the end."""
        self._modules.append(module)
        return self

    def _parts(self) -> Iterable[tuple[str, Any]]:
        own = ((name, part) for name, part in variables(self).items() if name != "_modules")
        return [*((str(k), module) for k, module in enumerate(self._modules)), *own]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules)

    def __getitem__(self, index: Any) -> Any:
        """One of them, or with a slice a `ModuleList` of several."""
        return ModuleList(self._modules[index]) if isinstance(index, slice) else self._modules[index]


class ModuleDict(Module):
    """A dict of modules.

    Args:
        modules: by name.
    """

    def __init__(self, modules: Any = ()) -> None:
        self._modules: dict[str, Any] = dict(modules)

    def _parts(self) -> Iterable[tuple[str, Any]]:
        return [*self._modules.items(), *((name, part) for name, part in variables(self).items() if name != "_modules")]

    def __getattr__(self, name: str) -> Any:
        modules = variables(self).get("_modules", {})
        if name in modules:
            return modules[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, content: Any) -> None:
        if name in variables(self).get("_modules", {}):
            self._modules[name] = content
        else:
            variables(self)[name] = content

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __setitem__(self, name: str, module: Any) -> None:
        self._modules[name] = module

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and modules."""
        return self._modules.items()

    def update(self, modules: Any) -> None:
        """Add others."""
        self._modules.update(modules)
