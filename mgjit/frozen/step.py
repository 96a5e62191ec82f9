"""`mgjit.freeze`: a step as it is now, forward only.

A frozen step is a compiled step whose kernels are made by another maker (maker.py).  It never runs as plain Python,
because that would see the model as it is by then: what has no kernel is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import BoundArguments, Parameter
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.tracebacks import with_short_tracebacks
from ..compiler.build.options import StepOptions
from ..engine.leaks import PlainCall
from ..engine.progress import is_tracing
from ..errors import ArgumentError, FreezeError, PhaseError, user_location
from ..kernels.kernels import Kernels
from ..runtime.kernel import Kernel
from ..runtime.stats import Stats
from ..step.decorator import compile as compile_step
from ..step.step import CompiledStep
from ..tensor.creation import asarray
from ..tensor.dtypes import DType
from ..tensor.tensor import Tensor
from ..tracing.call.plan import is_numpy_array
from .maker import FrozenMaker

if TYPE_CHECKING:
    from ..step.lowering import Lowering

try:
    from typing import ParamSpec
except ImportError:  # before Python 3.10
    from .._typing import ParamSpec  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")


class FrozenStep(CompiledStep[P, R]):
    """The forward part of a step, with the numbers of the model as they were when it was frozen.

    It is called like the step, and has `.loop`, `.lower`, `.stats`; see `mgjit.freeze`.
    """

    if not TYPE_CHECKING:
        __slots__ = ()
    _is_weighed = False

    def __init__(self, function: Callable[P, R], options: StepOptions) -> None:
        code = replace(options.code, separate=False, grads=True)
        self._tensors: dict[tuple[str, Any], DType] = {}  # the types of those among the example arguments
        self._verify = options.verify
        super().__init__(function, replace(options, code=code, lock=True, verify="never", background=False))

    def _new_kernels(self) -> Kernels:
        self._maker = FrozenMaker(self._function, self._signature, self._options, self.__qualname__, Stats())
        self._maker.verify = self._verify
        return _PatientKernels(self._maker, self.__name__)

    def freeze(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Make the first kernel, and keep the numbers as they are now."""
        with suppress(TypeError):  # which is reported by what comes next
            given = self._signature.bind(*args, **kwargs)
            self._tensors = {key: one.dtype for key, one in _flat(given) if isinstance(one, Tensor)}
        self._with_kernel("freeze", lambda: self._turn.run(self._kernels.fitting, self._bound(args, kwargs)))
        self._maker.close()

    def clear(self) -> None:
        """Does nothing: a frozen step keeps its kernels, because the model may have changed since."""

    @with_short_tracebacks
    def _call(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse_in_trace("call")
        return self._with_kernel("call", lambda: super(FrozenStep, self)._call(*args, **kwargs))

    def _perform(self, phase: str, args: Any, kwargs: Any, *undone_by: Any) -> Any:
        if self._tensors:
            args, kwargs = self._with_tensors(args, kwargs)
        return super()._perform(phase, args, kwargs, *undone_by)

    def _with_tensors(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments, with tensors made of lists and numpy arrays where the examples were tensors."""
        try:
            given = self._signature.bind(*args, **kwargs)
        except TypeError:
            return args, kwargs
        for (name, part), argument in _flat(given):
            dtype = self._tensors.get((name, part))
            if dtype is None or not (isinstance(argument, (list, tuple)) or is_numpy_array(argument)):
                continue
            made = asarray(argument, dtype=dtype)
            if part is None:
                given.arguments[name] = made
            elif isinstance(part, int):
                rest = given.arguments[name]
                given.arguments[name] = (*rest[:part], made, *rest[part + 1 :])
            else:
                given.arguments[name][part] = made
        return given.args, given.kwargs

    def _call_plain(self, reason: PlainCall, call: Callable[[], Any], looking: float = 0.0) -> Any:
        raise reason

    def _with_kernel(self, phase: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except PlainCall as plain:
            raise FreezeError(
                f"{user_location()}: with these arguments {self.__name__} would run as plain Python, which sees the "
                f"model as it is now: {plain}. Freeze a function that only computes with its arguments and the model, "
                "and returns the results."
            ) from None

    def _refuse_in_trace(self, phase: str) -> None:
        if is_tracing():
            raise PhaseError(
                f"{user_location()}: the frozen {self.__name__} is called in a step that is being traced, which would "
                "compute with the model as it is now. Call it before that step, and pass its result as an argument."
            )

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same as a call."""
        return self(*args, **kwargs)

    def backward(self) -> None:
        """A frozen step has no backward phase: raises a PhaseError."""
        raise PhaseError(f"{user_location()}: the frozen {self.__name__} has a forward phase only.")

    update = backward

    def loop(self, *columns: Any, progress: bool = False, threads: int | None = 1, **named: Any) -> Any:
        given, also = self._with_tensors(columns, named)
        loop = super().loop
        return self._with_kernel("loop", lambda: loop(*given, progress=progress, threads=threads, **also))

    loop.__doc__ = CompiledStep.loop.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"a frozen step cannot be pickled: pickle the model, and freeze {self.__name__} again")

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowering:
        lowering = self._with_kernel("lower", lambda: super(FrozenStep, self).lower(*args, **kwargs))
        lowering.backward = str(self._maker.about)
        return lowering  # type: ignore[no-any-return]

    lower.__doc__ = CompiledStep.lower.__doc__

    def explain(self) -> str:
        """What is frozen, and what the step shares with the program."""
        return str(self._maker.about)

    def __repr__(self) -> str:
        about = self._maker.about
        return (
            f"<frozen step {self.__qualname__}, {about.weights} numbers as they were when it was frozen, "
            f"{self._kernels.told()}>"
        )


def _flat(given: BoundArguments) -> list[tuple[tuple[str, Any], Any]]:
    """The arguments with their keys: the parameter, and which one it is of `*rest` or `**named`, or None."""
    found: list[tuple[tuple[str, Any], Any]] = []
    for name, argument in given.arguments.items():
        kind = given.signature.parameters[name].kind
        if kind is Parameter.VAR_POSITIONAL:
            found += [((name, k), one) for k, one in enumerate(argument)]
        elif kind is Parameter.VAR_KEYWORD:
            found += [((name, key), one) for key, one in argument.items()]
        else:
            found.append(((name, None), argument))
    return found


class _PatientKernels(Kernels):
    """Every call waits for its kernel."""

    def fitting(self, arguments: Sequence[Any], patient: bool = False) -> Kernel:
        return super().fitting(arguments, True)


@with_short_tracebacks
def freeze(step: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> FrozenStep[P, R]:
    """The forward part of a step, compiled, with the numbers of the model as they are now.

    Later changes of the model do not reach it: neither of parameters, nor of numbers, objects or functions that the
    step uses.  Numbers that the forward part assigns, such as keys and values in `mgjit.state`, are shared with the
    program.  Results are those of the step's forward part, bit for bit.

    Args:
        step: a compiled step, a function, or a model: any object that can be called.  Of a training step, the part
            before the first backward() and what its results need.
        args, kwargs: example arguments.  Numbers in them are inputs of every call.  Arguments of another structure
            (such as another length) are traced when they are first met.

    Raises:
        FreezeError: a result needs gradients or updated parameters, or the step changes something besides numbers.
        ArgumentError: it cannot be called, or the arguments do not fit.

    Examples:
        >>> w = mgjit.Value(2.0)
        >>> def predict(x):
        ...     return w * x
        >>> frozen = mgjit.freeze(predict, 1.0)
        >>> w.data = 100.0
        >>> frozen(3.0)
        6.0
    """
    if isinstance(step, FrozenStep):
        raise ArgumentError(f"{user_location()}: {step.__name__} is frozen already. Pass what it was frozen from.")
    compiled: Any = step if isinstance(step, CompiledStep) else compile_step(step)
    frozen: FrozenStep[P, R] = FrozenStep(compiled._function, compiled._options)
    frozen.freeze(args, kwargs)
    return frozen
