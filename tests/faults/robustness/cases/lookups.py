"""Bad inputs: steps: look-ups and state, steps: arrays, functions and other steps."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case

LOOKUPS = [
    Case(
        "mgjit.compile(lambda xs: mgjit.take(xs, 5))([1.0, 2.0])",
        "IndexRangeError",
        "user.py:1: take: the index 5 is not in range(2).",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([1.0, 2.0], i))(5)",
        "IndexRangeError",
        "user.py:1: the index 5 is not an integer in 0 .. 1. Nothing was computed or written.",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([1.0, 2.0], i))(-1)",
        "IndexRangeError",
        "user.py:1: the index -1 is not an integer in 0 .. 1. Nothing was computed or written. Write a negative "
        "index, which Python counts from the end, as index % len(table).",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([1.0, 2.0], i))(0.5)",
        "IndexRangeError",
        "user.py:1: the index 0.5 is not an integer in 0 .. 1. Nothing was computed or written.",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([1.0, 2.0], i))(math.nan)",
        "IndexRangeError",
        "user.py:1: the index nan is not an integer in 0 .. 1. Nothing was computed or written.",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([], i))(0)",
        "TraceError",
        "user.py:1: mgjit.take from an empty table.",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([1.0, [2.0]], i))(0)",
        "TraceError",
        "user.py:1: a number or a Value is needed here, not the list [2.0]. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([[1.0], [2.0, 3.0]], i))(0)",
        "TraceError",
        "user.py:1: the rows of a table for mgjit.take must have equal lengths.",
        goes_on=True,
    ),
    Case(
        'mgjit.compile(lambda i: mgjit.take([1.0, "2"], i))(0)',
        "TraceError",
        "user.py:1: a number or a Value is needed here, not the str '2'. Pass numbers, or lists, tuples, "
        "dicts and arrays whose elements the step uses one by one.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take(3.0, i))(0)",
        "ArgumentError",
        "user.py:1: take needs a list or tuple to take from, not the float 3.0.",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([1.0, 2.0], i * i))(0)",
        "TraceError",
        "user.py:1: the index of table[i], mgjit.take and mgjit.one_hot must be an int argument of the "
        "step itself, a sum or product of such ints and constants, or a remainder by a constant, so that its range "
        "can be checked before anything is written, and this one is computed in another way. Take the remainder "
        "last, as in (i - 1) % n, or compute the index outside, and pass it as an argument.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([1.0, 2.0], 2 * i - 6))(1)",
        "IndexRangeError",
        "user.py:1: the number that the index is computed from, 1, is not an integer in 3 .. 3. Nothing was computed "
        "or written. Write a negative index, which Python counts from the end, as index % len(table).",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([w, 1.0], i))(0)",
        "TraceError",
        "user.py:1: a number or a Value is needed here, not the Value Value(data=2.0, grad=0.0). Pass "
        "numbers, or lists, tuples, dicts and arrays whose elements the step uses one by one.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([w * 1.0, w * 2.0], i))(0)",
        "TraceError",
        "user.py:1: a look-up by a traced index needs a table of parameters, state or plain numbers that lie "
        "at equal distances. Build the table outside of the step (rows of equal length, in order of first use). "
        "Among Values that are computed in the step, select with a sum of products with mgjit.one_hot(index, n), "
        "also in the undecorated program, whose last bits may then be others.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.one_hot(i, 3))(3)",
        "IndexRangeError",
        "user.py:1: the index 3 is not an integer in 0 .. 2. Nothing was computed or written.",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.one_hot(i, 3))(1.5)",
        "IndexRangeError",
        "user.py:1: the index 1.5 is not an integer in 0 .. 2. Nothing was computed or written.",
    ),
    Case(
        'mgjit.compile(lambda i: mgjit.one_hot(i, "3"))(1)',
        "ArgumentValueError",
        "user.py:1: one_hot needs a length of at least 1, not the str '3'.",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.one_hot(i, -1))(0)",
        "ArgumentValueError",
        "user.py:1: one_hot needs a length of at least 1, not the int -1.",
    ),
    Case(
        "mgjit.compile(lambda i: s[i])(0.0)",
        "TraceError",
        "user.py:1: a run-time number cannot be a list index, a key, a length or a range. Use "
        "mgjit.take(table, index), or name the argument in @mgjit.compile(static=(...)) when few "
        "different values occur.",
    ),
    Case(
        "mgjit.compile(lambda x: s[2] * x)(1.0)",
        "IndexRangeError",
        "user.py:1: index 2 of a State of 2 elements.",
    ),
    Case(
        'mgjit.compile(lambda x: s["a"] * x)(1.0)',
        "ArgumentError",
        "user.py:1: the index of a State is an int, not the str 'a'.",
    ),
    Case(
        "mgjit.compile(lambda x: s[0.0] * x)(1.0)",
        "ArgumentError",
        "user.py:1: the index of a State is an int, not the float 0.0.",
    ),
    Case(
        "def step(x):\n    s[5] = x\nmgjit.compile(step)(1.0)",
        "IndexRangeError",
        "user.py:2: index 5 of a State of 2 elements.",
    ),
    Case(
        'def step(x):\n    s[0] = "x"\nmgjit.compile(step)(1.0)',
        "TraceError",
        "user.py:2: a number or a Value is needed here, not the str 'x'. Pass numbers, or lists, tuples, "
        "dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "def step(x):\n    s[:] = [x]\nmgjit.compile(step)(1.0)",
        "ArgumentValueError",
        "user.py:2: a State has a fixed length: 2 elements cannot become 1. Make a new one: mgjit.state(values).",
    ),
]

OTHER = [
    Case(
        "mgjit.compile(lambda x: model(x))([1.0, 2.0, 3.0])",
        "ArgumentValueError",
        "user.py:1: ReLUNeuron(2) got 3 inputs; it takes 2.",
    ),
    Case(
        "mgjit.compile(lambda x: model(x))(1.0)",
        "ArgumentError",
        "user.py:1: ReLUNeuron(2) needs a list of inputs, not the Number <a number that is being traced>.",
    ),
    Case(
        "mgjit.compile(lambda x: w * floaty)(1.0)",
        "TraceError",
        "user.py:1: the number of the Floaty ... would be frozen into the step, and not be seen when it "
        "changes. Write float(...) outside of the step and pass the number as an argument.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: w * 1j)(1.0)",
        "TraceError",
        "user.py:1: a number or a Value is needed here, not the complex 1j. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        'mgjit.compile(lambda x: mgjit.exp("1"))(1.0)',
        "ArgumentError",
        "user.py:1: exp needs a number or a Value, not the str '1'.",
    ),
    Case(
        "mgjit.compile(lambda x: mgjit.dot([w], [x, x]))(1.0)",
        "ArgumentValueError",
        "user.py:1: dot of 1 and 2 elements: give it two lists of equal lengths.",
    ),
    Case(
        "mgjit.compile(lambda x: mgjit.dot(w, x))(1.0)",
        "ArgumentError",
        "user.py:1: dot needs two lists, not the Value Value(data=2.0, grad=0.0).",
    ),
    Case(
        "mgjit.compile(lambda x: math.fsum([x, 1.0]))(1.0)",
        "TraceError",
        "user.py:1: math.fsum of a traced number is not available; sum(xs) is, also undecorated, whose "
        "last bits may differ. Most functions of math are; compute others outside of the step and pass "
        "the numbers as arguments.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: hash(x))(1.0)",
        "TraceError",
        "user.py:1: a run-time number cannot be a list index, a key, a length or a range. Use "
        "mgjit.take(table, index), or name the argument in @mgjit.compile(static=(...)) when few "
        "different values occur.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: x in {1.0})(1.0)",
        "TraceError",
        "user.py:1: a run-time number cannot be a list index, a key, a length or a range. Use "
        "mgjit.take(table, index), or name the argument in @mgjit.compile(static=(...)) when few "
        "different values occur.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: pickle.dumps(w * x))(1.0)",
        "PlainWarning",
        "<lambda> runs as plain Python: user.py:1: the step uses _pickle.dumps(), which may answer something else at "
        "each call, and a compiled call would not ask again. Ask outside of the step, and pass the answer as an "
        "argument.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: w * x, limit=1)([1.0])",
        "TraceError",
        "user.py:1: a number or a Value is needed here, not the list [<a number that is being traced>]. "
        "Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "one = mgjit.compile(limit=1)(lambda xs: xs[0] * w); one([1.0]); one([1.0, 2.0])",
        "RetraceLimitError",
        "user.py:1: <lambda> has been traced for 1 argument structures, the limit. The first difference "
        "from the last call: xs was 1 number in a list, is 2 numbers. Make the arguments alike (pad them, pass "
        "numbers instead of strings or bools), or raise limit=.",
        goes_on=True,
    ),
    Case(
        "many = mgjit.compile(warn_after=1)(lambda xs: xs[0] * w); many([1.0]); many([1.0, 2.0])",
        "RetraceWarning",
        "<lambda> is being traced for the 2th time; the first difference from the last call: xs was 1 "
        "number in a list, is 2 numbers",
        goes_on=True,
    ),
    Case(
        'single = mgjit.compile(dtype="float32")(lambda x: w * x); product(1.0); single(1.0)',
        "PrecisionError",
        "user.py:1: a parameter of a float64 step is used in a float32 step, but its memory, which both "
        "would share, holds numbers of one kind. Give both steps the same dtype, or let one of them work "
        "on a copy: copy.deepcopy(model).",
        goes_on=True,
    ),
    Case(
        'single = mgjit.compile(dtype="float32")(lambda x: s[0] * x); single(1.0); mgjit.compile(lambda '
        "x: s[0] * x)(1.0)",
        "PrecisionError",
        "user.py:1: a state of a float32 step is used in a float64 step, but its memory, which both "
        "would share, holds numbers of one kind. Give both steps the same dtype, or let one of them work "
        "on a copy: copy.deepcopy(model).",
        goes_on=True,
    ),
    Case(
        'inner = mgjit.compile(dtype="float32")(lambda x: x * 0.1); mgjit.compile(lambda x: inner(x))(1.0)',
        "PrecisionError",
        "user.py:1: <lambda>, a float32 step, is called in a float64 step and would become part of it, "
        "with its numbers. Give both the same dtype, or call the undecorated function.",
        goes_on=True,
    ),
]
