"""Bad inputs: ensembles, rows side by side."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case

PARALLEL = [
    Case(
        "mgjit.ensemble(lambda x: x, 2)",
        "ArgumentError",
        "user.py:1: an ensemble needs a compiled step, not function <function <lambda> at ... "
        "Decorate it: mgjit.ensemble(mgjit.compile(step), n).",
    ),
    Case(
        "mgjit.ensemble(product, 0)",
        "ArgumentValueError",
        "user.py:1: an ensemble needs at least one member, not 0.",
    ),
    Case(
        "mgjit.ensemble(product, 2.5)",
        "ArgumentError",
        "user.py:1: the number of members must be an int, not float 2.5.",
    ),
    Case(
        "mgjit.ensemble(product, 2, init=1)",
        "ArgumentError",
        "user.py:1: init must be a function of a member's number, not int 1.",
    ),
    Case(
        "mgjit.ensemble(product, 2, threads=0)",
        "ArgumentValueError",
        "user.py:1: threads must be at least 1, not 0.",
    ),
    Case(
        "mgjit.each(3)",
        "ArgumentError",
        "user.py:1: each needs a list with an item for each member, not int 3. An argument that "
        "is the same for all members needs no each().",
    ),
    Case(
        "mgjit.ensemble(product, 2)(mgjit.each([1.0]))",
        "ArgumentValueError",
        "user.py:1: each() has 1 items for 2 members.",
    ),
    Case(
        "mgjit.ensemble(product, 2)([mgjit.each([1.0, 2.0])])",
        "ArgumentError",
        "user.py:1: argument x contains an each(), which stands for a whole argument. "
        "Write mgjit.each([...]) with the x of each member.",
    ),
    Case(
        "mgjit.ensemble(product, 2)(mgjit.each([mgjit.Value(1.0), mgjit.Value(2.0)]))",
        "ArgumentError",
        "user.py:1: each(x) holds a Value: it is for numbers and data. Objects are copied for "
        "each member; give members different ones by init=, which assigns numbers to those that "
        "the step knows.",
    ),
    Case(
        "mgjit.ensemble(product, 2).loop(mgjit.each([[1.0], [1.0, 2.0]]))",
        "ColumnError",
        "user.py:1: the columns of member 0 have 1 rows, those of member 1 have 2. All members "
        "make the same number of steps.",
    ),
    Case(
        "mgjit.ensemble(product, 2)[2]",
        "IndexRangeError",
        "user.py:1: member 2 of an ensemble of 2.",
    ),
    Case(
        "pickle.dumps(mgjit.ensemble(product, 2))",
        "ArgumentError",
        "user.py:1: an ensemble cannot be copied or pickled, as its members live in the objects "
        "of this program. Keep what they have: [member.copy(model) for member in ensemble].",
    ),
    Case(
        "product.loop([1.0, 2.0], threads=0)",
        "ArgumentValueError",
        "user.py:1: threads must be at least 1, not 0.",
    ),
    Case(
        "product.loop([1.0, 2.0], threads=2.0)",
        "ArgumentError",
        "user.py:1: threads must be an int or None, not float 2.0.",
    ),
    Case(
        "mgjit.compile(lambda x: s.__setitem__(0, x)).loop([1.0, 2.0], threads=2)",
        "SharedWriteError",
        "user.py:1: .loop(threads=) runs rows side by side, which is for steps that only read. "
        "<lambda> writes s[0] (user.py:1). Leave threads= out, or make a step of the part that "
        "only reads, such as the prediction. Several models can be trained side by side: "
        "mgjit.ensemble(step, n).",
    ),
]
