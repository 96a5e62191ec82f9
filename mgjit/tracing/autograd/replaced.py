"""Replace the `backward()` of the user's node classes during a trace.

1. Find the classes: those of the objects around the step that autograd/node_class.py recognises.
2. Replace their `backward()` by one that observes the original (autograd/flow.py) and records what it does as one pass
   (autograd/symbolic.py).  If a traced index has chosen nodes, only the part that does not depend on the choice is.
3. If that is not possible, give up: the step is traced again, and `backward()` recorded operation by operation.
4. Restore the originals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..record.recorder import Recorder
from ..record.values import TracedTypes
from ..surroundings.roles import Roles
from ..surroundings.survey import Survey
from .chosen_backward import backward_until_choices
from .flow import NoFlow, observe
from .node_class import NodeClass, node_class, was_tried
from .symbolic import SymbolicBackward


def classes_of_nodes(roles: Roles, survey: Survey) -> list[NodeClass]:
    """The node classes among the classes of the objects that hold numbers."""
    kinds = [type(things[0]) for things, _ in roles.objects]
    if not all(map(was_tried, kinds)):
        try:
            for kind in kinds:
                node_class(kind)
        finally:
            survey.before.restore()  # what trying does to counters, tapes and gradients of the user's
    classes: dict[NodeClass, None] = {}
    for kind, (_, fields) in zip(kinds, roles.objects):
        known = node_class(kind)
        if known is not None and {known.data.name, known.gradient.name} <= {f.name for f in fields}:
            classes[known] = None
    return list(classes)


class ReplacedBackward:
    """The replaced methods of one trace.

    Args:
        classes: the classes whose `backward()` is replaced.
        give_up: called with the reason why a pass cannot be symbolic; does not return.
    """

    def __init__(self, classes: list[NodeClass], give_up: Callable[[str], NoReturn]) -> None:
        self.classes, self._give_up = classes, give_up
        self._replaced: list[tuple[type, Any]] = []

    def enter(self, recorder: Recorder, types: TracedTypes, symbolic: SymbolicBackward) -> None:
        """Replace the methods; `restore` must follow."""
        self._recorder, self._symbolic = recorder, symbolic
        originals = [known.kind.backward for known in self.classes]  # type: ignore[attr-defined]
        for known, original in zip(self.classes, originals):
            self._replaced.append((known.kind, vars(known.kind).get("backward")))
            known.kind.backward = self._observing(original)  # type: ignore[attr-defined]
        if self.classes:
            types.gatherer.backward = lambda style, root: self._recorded(
                lambda first_record: symbolic.record(backward_until_choices(style, root, recorder), first_record)
            )

    def _observing(self, original: Any) -> Any:
        def backward(node: Any, *args: Any, **kwargs: Any) -> Any:
            def record(first_record: int) -> Any:
                flow = observe(node, self.classes, lambda: original(node, *args, **kwargs))
                self._symbolic.record(flow, first_record)
                return flow.returned

            return self._recorded(record)

        return backward

    def _recorded(self, record: Callable[[int], Any]) -> Any:
        try:
            return record(len(self._recorder.op))
        except NoFlow as reason:
            self._give_up(str(reason))

    def describe(self) -> str:
        """How the passes were recorded, for `explain()`."""
        names = ", ".join(known.kind.__name__ for known in self.classes)
        return f"backward() of {names} is taken symbolically" if self._recorder.last_backward >= 0 and names else ""

    def restore(self) -> None:
        """Restore the original methods."""
        for kind, original in self._replaced:
            if original is not None:
                kind.backward = original  # type: ignore[attr-defined]
            elif "backward" in vars(kind):
                del kind.backward  # type: ignore[attr-defined]
