"""The numbers that a step finds in the user's objects and changes there: kernel memory, found by tracing.

A step over other people's classes reads `p.data`, assigns `m[i]`, increments `self.t`.  Nothing announces these, so
they are found by looking at the objects themselves:

1. The survey (surroundings/survey.py) has met every number that its code could assign, and surroundings/roles.py says
   which of them are memory: attributes of a name that some function of the user's assigns, elements of lists, and
   variables.
2. Put a traced number in each of these places.  Reading one is then a leaf, without any record.
3. The step runs.  What it assigns stays in the objects: traced numbers replace one another.
4. Look again.  A place that holds something else was assigned: record a store (settling.py).  What else the step has
   changed is for aftermath.py.
5. Put back what was there, whatever happened.

Of nodes of an autograd graph (autograd/node_class.py), `backward()` is replaced by one that is taken symbolically.
Numbers of nodes, and of objects of which there are many, become PARAMETER and GRADIENT leaves, and later move into the
kernel's memory (memory/live.py).  All others are elements of one State that is filled before each call, and emptied
into their places after it (copies/copies.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

from ...engine.leaks import PlainCall
from ...engine.numeric import is_number
from ...ir import opcodes as ops
from ...memory.live import Home
from ...tensor.apply import recording
from ...tensor.tensor import Tensor
from ..autograd.node_class import node_class
from ..autograd.replaced import ReplacedBackward, classes_of_nodes
from ..autograd.symbolic import SymbolicBackward
from ..call.given import GivenPath
from ..call.objects import ObjectNode
from ..call.plan import ArgumentPlan, form_of
from ..call.sameness import Question
from ..draws.interception import followed
from ..record.counters import Counted
from ..record.integers import IntegerLimit
from ..record.recorder import Recorder
from ..record.values import TracedTypes
from ..source.iterators import Iterators
from ..surroundings.places import Attribute, Place
from ..surroundings.roles import MANY, Roles, assign_roles
from ..surroundings.shapes import content_of, contents_of
from ..surroundings.survey import Survey
from . import number_kinds
from .aftermath import look_around
from .building import Building
from .entered import Entered
from .indexed import IndexedAssignments
from .kept_indices import can_be_kept, note_kept_indices
from .knowledge import Again, HeapPlan, Knowledge
from .settling import Settling


class Heap:
    """The numbers around one trace.

    Args:
        survey: what surrounds the step.
        knowledge: of earlier traces.
        location: `file:line` of the step, for messages.

    Attributes:
        roles: which places hold numbers that the step may change.
    """

    def __init__(self, survey: Survey, knowledge: Knowledge, location: str) -> None:
        self._knowledge, self._location = knowledge, location
        self._survey = survey
        self.roles: Roles = assign_roles(survey, knowledge.variable, knowledge.every_float)
        self._entered = Entered(knowledge)
        self._fixed: list[tuple[Place, Any]] = []
        self._draws: list[tuple[Place, Any, Any]] = []  # where a method was, it, and what is there instead
        self._iterators = Iterators(survey.iterators)
        self._building = Building(survey.built.values(), knowledge, survey.knows)
        self._is_back = False  # whether numbers are what they were
        self._reached: set[int] = set()  # leaves of gradients that backward passes add to, while the step runs
        self._backward = ReplacedBackward(
            [] if knowledge.no_flow else classes_of_nodes(self.roles, survey), self.give_up
        )

    @property
    def decided(self) -> Collection[tuple[str, int]]:
        """Files and lines of tests whose answers shape the trace."""
        return self._knowledge.decided

    @property
    def is_symbolic(self) -> bool:
        """Whether some `backward()` is taken symbolically."""
        return bool(self._backward.classes)

    def expect(self, given: Sequence[ObjectNode]) -> None:
        """Let nodes among the arguments, which are other objects at every call, be parameters of the trace."""
        if not self._knowledge.no_flow:
            self._backward.classes = list(dict.fromkeys([*self._backward.classes, *(node.known for node in given)]))
        self._survey.known.update(id(node.stand_in) for node in given)

    @property
    def may_append(self) -> bool:
        """Whether the step may append to lists among its arguments."""
        return self._knowledge.may_append

    @property
    def objects(self) -> frozenset[int]:
        """The identities of the objects with numbers that the step reaches."""
        return frozenset(id(thing) for things, _ in self.roles.objects for thing in things)

    @property
    def reached(self) -> set[int]:
        """Leaves of gradients that backward passes add to."""
        return self._reached

    def knows(self, thing: Any) -> bool:
        """Whether an object with numbers existed before the step."""
        return self._survey.knows(thing)

    def kept_at(self, thing: Any) -> Place | None:
        """Where a container lies that is another one in each call; None if it does not.

        Raises:
            PlainCall: it lay there before the step, which has put another one in its place.
        """
        built = self._building.place_of(thing)
        if built is not None or type(thing) is not list:
            return built
        lists = (copied.place for copied, *_ in self._entered.copied if copied.size)
        found = next((place for place in lists if place.has(thing)), None)
        before = self._movable(thing) if found is None else None
        if before is not None:
            raise PlainCall(f"the step returns the list that was {before.describe()}, and puts another one there")
        return found

    def _movable(self, thing: Any) -> Place | None:
        """The variable, attribute or entry of a list in whose place there may be another one in the next call."""
        if type(thing) is not list:
            return None
        lists = [copied.place for copied, *_ in self._entered.copied if copied.size and copied.place.container is None]
        return next((place for place in lists if self.roles.identity(place) is thing), None)

    def existed(self, thing: Any) -> bool:
        """Whether an object that the step compares existed before it.

        Raises:
            PlainCall: it may be another one in the next call.
        """
        if isinstance(thing, Tensor):
            return not isinstance(thing, recording().kind)
        place = self._movable(thing)
        if place is not None:
            raise PlainCall(f"the step asks whether an argument is {place.describe()}, where lists take turns")
        return self._survey.knows(thing)

    @property
    def draws(self) -> list[Place]:
        """Where the user keeps methods of generators that are written in C."""
        return self._survey.draws

    # ---- 2: putting traced numbers there ----------------------------------------------------------

    def enter(self, recorder: Recorder, types: TracedTypes, plan: ArgumentPlan) -> None:
        """Put a traced number in every place; `restore` must follow."""
        recorder.may_keep_index = lambda operand: can_be_kept(operand, self._entered.copied)
        self._recorder, self._types, self._plan = recorder, types, plan
        entered = self._entered
        entered.begin(recorder, types)
        for place in self._survey.draws:
            bound = place.read()
            self._draws.append((place, bound, followed(bound)))
            place.write(self._draws[-1][2])
        scalars, known, built = list(self.roles.scalars), self._knowledge.fixed, self._building.keys
        symbolic = SymbolicBackward(recorder, types, entered.memory_of, self._survey.known, self.give_up)
        self._reached = symbolic.reached
        self._backward.enter(recorder, types, symbolic)
        for things, all_fields in self.roles.objects:
            found = [f for f in all_fields if not built or built.isdisjoint(f.key(thing) for thing in things)]
            fields = [f for f in found if Attribute(things[0], f).kind not in known]
            scalars += [Attribute(thing, f) for f in found if f not in fields for thing in things]
            gradients = [f for f in fields if Attribute(things[0], f).kind in self._knowledge.gradients]
            node = node_class(type(things[0]))
            is_node = node is not None and node in self._backward.classes
            if not is_node:  # what holds only None stays None, unless the step puts numbers there
                fields = [f for f in fields if f in gradients or any(x is not None for x in contents_of(f, things))]
            moved = any(Home in map(type, contents_of(f, things)) for f in fields)
            many = len(things) >= MANY or moved or gradients
            if node is not None and is_node:
                many = True
                fields.sort(key=lambda f: (f.name != node.data.name, f.name != node.gradient.name))
            elif many:
                fields[1:] = sorted(fields[1:], key=lambda f: f not in gradients)
            whole = [f for f in fields if Attribute(things[0], f).kind in self._knowledge.whole]
            fields = [f for f in fields if f not in whole]
            pairs = number_kinds.pairs(things, fields) if many else []
            for pair in pairs:
                live = tuple(f.name for pair in pairs for f in pair)
                entered.put_parameters(things, pair, live, is_node and pair is pairs[0])
            copied = fields[sum(map(len, pairs)) :] + whole
            for place in [Attribute(thing, f) for thing in things for f in copied]:
                content = content_of(place.field, place.holder)
                if is_number(content):
                    scalars.append(place)
        for given in plan.objects:
            entered.put_given(given, given.known in self._backward.classes)
        if known:
            self._fixed = [(place, place.read()) for place in scalars if place.kind in known]
            scalars = [place for place in scalars if place.kind not in known]
        entered.put_copied([place for place in scalars if place.key not in built], self.roles)
        self._building.enter(types, entered.room)
        self.indexed = IndexedAssignments(entered.copied, recorder, types, self._knowledge)
        self._iterators.halt()

    def _describe_backward(self) -> str:
        reason = self._knowledge.no_flow
        recorded = f"slower path: backward() is recorded operation by operation, because {reason}"
        return recorded if reason else self._backward.describe()

    def give_up(self, reason: str) -> NoReturn:
        """Let the trace be made again, with every operation of `backward()` recorded.

        Raises:
            Again: always.
        """
        self._knowledge.no_flow = reason
        raise Again

    # ---- 3: while it runs -------------------------------------------------------------------------

    def asked_for(self, operand: int, plan: ArgumentPlan, also_arguments: bool = True) -> None:
        """The step asks for a number itself: it has to be fixed for this trace, if it can be.

        Args:
            operand: where it comes from.
            plan: of the arguments.
            also_arguments: whether it may be fixed when it comes from arguments: each value is then a trace.

        Raises:
            Again: the numbers it comes from are known to be fixed now.
        """
        knowledge, places = self._knowledge, self._entered.places()
        arguments, kinds = set(), set()
        for leaf in self._recorder.leaves_behind(operand):
            is_input = ops.leaf_kind(leaf) == ops.INPUT and plan.bound_of_input(ops.leaf_index(leaf)) != 0
            name = plan.name_of_number(ops.leaf_index(leaf)) if is_input else None
            if name is None and ops.leaf_kind(leaf) == ops.INPUT:
                name = plan.table_of_mixed(ops.leaf_index(leaf))
            if name is not None and also_arguments:
                arguments.add(name)
            elif leaf in places and (also_arguments or places[leaf].kind not in knowledge.changing):
                kinds.add(places[leaf].kind)
            else:
                return
        if arguments or kinds:
            knowledge.fixed_arguments |= self._with_others_like(arguments, plan)
            knowledge.fixed |= kinds
            knowledge.needed |= kinds if also_arguments else set()
            raise Again

    def _with_others_like(self, names: set[str], plan: ArgumentPlan) -> set[str]:
        """Arguments that shape the trace, with those of all other rows where it is the second one of its kind.

        Otherwise each of them would be found by a trace of its own.
        """
        found = set(names)
        before = {form_of(name) for name in self._knowledge.fixed_arguments - names}
        for name in names:
            if form_of(name) != name and form_of(name) in before:
                found |= plan.ints_like(name)
        return found

    def look_at_built(self, path_of: Callable[[Any], GivenPath | None]) -> None:
        """Describe what the step has built and left.

        Args:
            path_of: where the container lies among the arguments for which an object stands; None for others.

        Raises:
            Again: something cannot be built.
        """
        self._building.describe(self._recorder, self._types, self.number_of, path_of, self.kept_at)

    def appended(self) -> tuple[list[list[Any]], list[list[Any]]]:
        """Lists to which the step only appends, and what it has appended to each.

        Raises:
            Again: that cannot be made again.
        """
        return self._building.lists, self._building.appended()

    def count_appended(self) -> int:
        """How many elements it has appended to them so far."""
        return self._building.count()

    def refuse_identity(self, thing: Any) -> None:
        """The step asks which object something is.

        Raises:
            Again: it is one that stands for another.
            PlainCall: it may be another one in the next call.
        """
        self._building.refuse_identity(thing)
        place = self._movable(thing)
        if place is not None:
            raise PlainCall(f"the step asks which list is {place.describe()}, where lists take turns")

    def raises(self) -> None:
        """The step has raised an error.

        Raises:
            Again: perhaps only because what was there before it is out of sight.
        """
        self._building.give_up()

    def decide(self, recorder: Recorder) -> None:
        """Follow only the answer to the outermost test whose two sides cannot both be computed.

        Raises:
            Again: there is such a test that was not followed so yet.
        """
        found = recorder.under_way[:1]
        if recorder.answers is not None and not self._knowledge.decided.issuperset(found):
            self._knowledge.decided.update(found)
            raise Again

    def compare(self, question: Question) -> None:
        """The step asks whether two objects are the same.

        Raises:
            Again: always; the next trace knows the answer.
        """
        self._knowledge.questions[question.key] = question
        raise Again

    def refuse_copies(self, changed: set[str], plan: ArgumentPlan) -> None:
        """Arguments that the step changes in place, and parts of them, have no stand-ins, but are known by identity.

        Raises:
            Again: there are such arguments.
            PlainCall: they have stand-ins all the same.
        """
        if changed <= plan.fixed and changed:
            raise PlainCall(f"the step changes {min(changed)} in a way that a compiled call cannot repeat")
        if changed:
            self._knowledge.fixed_arguments |= changed | plan.aliases(changed)
            raise Again

    # ---- 4: looking again -------------------------------------------------------------------------

    def settle(self, path_of: Callable[[Any], GivenPath | None]) -> HeapPlan:
        """Record what the step has assigned.

        Args:
            path_of: where the container lies among the arguments for which an object stands; None for others.

        Raises:
            LeakError: it left something behind that a kernel cannot repeat.
            NewStructure: it changed something besides numbers.
            Again: it assigned numbers in places that were not known to change.
        """
        self._put_back_draws()
        building = self._building
        plan = HeapPlan(
            self._entered.state, backward=self._describe_backward(), built=building.built, logs=building.lists
        )
        built = building.keys_of_built
        self._building.put_back()
        settling = Settling(
            self._recorder, self._types, self._plan, self._entered, self._building, self.indexed, self._survey,
            self.roles, self._knowledge, self._reached, self._location, self.give_up if self.is_symbolic else None,
        )  # fmt: skip
        settling.look_at_numbers(plan, path_of)
        settling.look_at_fixed(plan, self._fixed)
        settling.look_at_kinds()
        self._put_back_numbers()
        self._types.gatherer.close()  # which has put something in front of what _backward has put there
        self._backward.restore()
        look_around(self._survey, self._knowledge, self._recorder, self._iterators.restore(), settling.leak)
        settling.record(plan, built)
        return plan

    def bound_of(self, leaf: int) -> int | None:
        """How large the int in a leaf can be; 0 where there is none, None where its limit decides."""
        return self._entered.bound_of(leaf)

    def limit_integers(self, integers: IntegerLimit) -> None:
        """Note how large the ints may be that are copied in, and which of them are indices.

        Raises:
            TraceError: the step may leave an int that is no index.
        """
        number_kinds.limit(self._entered.copied, integers)
        note_kept_indices(self._recorder, self._entered.copied)

    def number_of(self, counter: Counted) -> Any:
        """The number of a counter in the call that runs."""
        return self._entered.number_of(counter)

    def _put_back_draws(self) -> None:
        for place, bound, instead in self._draws:
            if place.read() is instead:
                place.write(bound)

    # ---- 5: putting back --------------------------------------------------------------------------

    def restore(self) -> None:
        """Put back what was there before `enter`."""
        self._entered.is_over = True
        self._iterators.restore()
        self._backward.restore()
        self._put_back_draws()
        self._put_back_numbers()
        self._survey.before.restore()

    def contents(self) -> dict[int, Any]:
        """What was in the places before the step, by leaf."""
        return self._entered.contents()

    def forget(self) -> dict[int, Any]:
        """Let go of the traced numbers, when everything has been put back; returns what was there, by leaf."""
        self._draws = []
        self._building.forget()
        return self._entered.forget()

    def _put_back_numbers(self) -> None:
        if not self._is_back:
            self._entered.put_back(self.roles)
            for place, before in self._fixed:
                place.write(before)
            self._building.put_back()
            self._is_back = True
