"""`Group`: parameters that are updated with the same options, and what the optimiser remembers of them.

The parameters of a group are tensors of one type, or objects with the numbers `data` and `grad`, such as
`mgjit.Value`.  What is remembered is made at once and keeps its identity: a compiled step has it in its own memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from ..engine import state as scalars
from ..engine.leaks import is_traced_number
from ..errors import (
    ArgumentError,
    ArgumentValueError,
    GradientError,
    PrecisionError,
    TraceError,
    described,
    user_location,
)
from ..tensor import creation
from ..tensor.tensor import Tensor


class Group:
    """Parameters with their options.  `group["lr"]` and `group["momentum"]` read and assign options, as in PyTorch.

    Args:
        params: the parameters.
        options: by name; among them `lr`.
        names: of the state of each parameter, such as moments; each has its shape, and is zeros at first.
        counts: how many numbers the whole group has as its state; zeros at first.

    Attributes:
        lr: the learning rate: another one between two calls of a compiled step is no reason to trace again.
        initial_lr: what `lr` was before the first schedule began; None without one.
        options: names and contents of the others, which are constants of a compiled step: a change traces it again.
        state: by name, a list of tensors, or a `State` with a number for each parameter.
        counts: a tensor, or a `State`.

    Raises:
        ArgumentError, ArgumentValueError, GradientError, PrecisionError: these cannot be the parameters of a group.
    """

    #: Attributes that the guard of a compiled step compares at each call.
    compared_at_each_call: ClassVar[tuple[str, ...]] = ("options",)

    def __init__(self, params: Sequence[Any], options: dict[str, Any], names: Sequence[str], counts: int) -> None:
        self.params = list(params)
        self.has_tensors = _has_tensors(self.params)
        self.lr = float(options["lr"])
        # A tuple, because a number in a dict may be one that the step changes, for all that its code shows.
        self.options = tuple((name, content) for name, content in options.items() if name != "lr")
        self.initial_lr: float | None = None
        self.state: dict[str, Any] = {name: self.zeros() for name in names}
        self.counts: Any = (
            creation.zeros(counts, dtype=self.params[0].dtype) if self.has_tensors else scalars.zeros(counts)
        )

    def zeros(self) -> Any:
        """Zeros, of the shapes of the parameters: a list of tensors, or a `State`."""
        if self.has_tensors:
            return [creation.zeros(p.shape, dtype=p.dtype) for p in self.params]
        return scalars.zeros(len(self.params))

    # ---- options ------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        if name in ("lr", "params"):
            return self.lr if name == "lr" else self.params
        return dict(self.options)[name]

    def __setitem__(self, name: str, content: Any) -> None:
        # This assignment shows the survey of a compiled step that `lr` is a number that changes
        # (surroundings/roles.py).
        if name == "lr":
            self.lr = float(content)
        elif is_traced_number(content):
            raise TraceError(
                f"{user_location()}: {name} of an optimiser is a constant of a compiled step, of numbers of the step "
                "only lr can be assigned. Assign it between calls, or leave the step undecorated."
            )
        else:
            changed = tuple({**dict(self.options), name: content}.items())
            if changed != self.options:
                self.options = changed

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)

    def __iter__(self) -> Iterator[str]:
        return iter(("params", "lr", *dict(self.options)))

    def keys(self) -> list[str]:
        """The names of all options, and `params`."""
        return list(self)

    def __repr__(self) -> str:
        options = "".join(f", {name}={content}" for name, content in self.options)
        return f"Group(<{len(self.params)} parameters>, lr={self.lr}{options})"


def _has_tensors(params: Sequence[Any]) -> bool:
    """Whether parameters are tensors.

    Raises:
        ArgumentError, ArgumentValueError, GradientError, PrecisionError: they cannot be parameters of one group.
    """
    if not params:
        raise ArgumentValueError(f"{user_location()}: an optimiser without parameters.")
    tensors = [isinstance(p, Tensor) for p in params]
    if any(tensors) and not all(tensors):
        raise ArgumentError(
            f"{user_location()}: tensors and scalar parameters in one group. Make two: "
            '[{"params": tensors}, {"params": scalars}].'
        )
    for p in params:
        if isinstance(p, Tensor):
            if not p.is_leaf:
                raise GradientError(
                    f"{user_location()}: a parameter of shape {p.shape} that was computed from others, which is not "
                    "what an optimiser can change: use detach(), or the tensor that it was computed from."
                )
            if not p.dtype.is_floating:
                raise GradientError(f"{user_location()}: a tensor of type {p.dtype} has no gradient.")
            if p.dtype != params[0].dtype:
                raise PrecisionError(f"{user_location()}: parameters of {params[0].dtype} and {p.dtype} in one group.")
        elif isinstance(p, (int, float, str)) or not (hasattr(p, "data") and hasattr(p, "grad")):
            raise ArgumentError(
                f"{user_location()}: a parameter is a tensor, or an object with the numbers data and grad, not the "
                f"{described(p)}."
            )
    return all(tensors)
