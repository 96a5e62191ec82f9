"""Bad inputs: arguments."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case

ARGUMENTS = [
    Case(
        'product("3")',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the str '3'. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product(None)",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the NoneType None. Pass numbers, or "
        "lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product(2**53 + 1)",
        "ArgumentValueError",
        "user.py:1: argument x has the integer 9007199254740993, which float64 cannot hold exactly (the "
        "limit is 2**53). Pass float(x) to accept rounding, or name it in static=.",
        goes_on=True,
    ),
    Case(
        "product([2**60, 1])",
        "ArgumentValueError",
        "user.py:1: argument x has the integer 1152921504606846976, which float64 cannot hold exactly "
        "(the limit is 2**53). Pass float(x) to accept rounding, or name it in static=.",
    ),
    Case(
        "product(-(2**70))",
        "ArgumentValueError",
        "user.py:1: argument x has the integer -1180591620717411303424, which float64 cannot hold "
        "exactly (the limit is 2**53). Pass float(x) to accept rounding, or name it in static=.",
        goes_on=True,
    ),
    Case(
        "product(10**400)",
        "ArgumentValueError",
        "user.py:1: argument x has the integer 1000000000000000000000000000000000000000, which float64 "
        "cannot hold exactly (the limit is 2**53). Pass float(x) to accept rounding, or name it in "
        "static=.",
    ),
    Case(
        "product(1j)",
        "ArgumentError",
        "user.py:1: argument x is a complex, which cannot be an input of a compiled step. Pass a list, a "
        "tuple, a dict or an array of numbers.",
    ),
    Case(
        'product(decimal.Decimal("0.5"))',
        "ArgumentError",
        "user.py:1: argument x is a Decimal, which computes in its own way, not as a float. Pass "
        "float(x), or name it in static= where it takes few different values.",
        goes_on=True,
    ),
    Case(
        "product(fractions.Fraction(1, 3))",
        "ArgumentError",
        "user.py:1: argument x is a Fraction, which computes in its own way, not as a float. Pass "
        "float(x), or name it in static= where it takes few different values.",
        goes_on=True,
    ),
    Case(
        "product({1.0, 2.0})",
        "ArgumentError",
        "user.py:1: argument x is a set, which cannot be an input of a compiled step. Pass a list, a "
        "tuple, a dict or an array of numbers.",
    ),
    Case(
        "product(frozenset([1.0]))",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the frozenset frozenset({1.0}). Pass "
        "numbers, or lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product(iter([1.0]))",
        "ArgumentError",
        "user.py:1: argument x is a ..., which cannot be an input of a compiled step. Pass a "
        "list, a tuple, a dict or an array of numbers.",
    ),
    Case(
        "product(x for x in [1.0])",
        "ArgumentError",
        "user.py:1: argument x is a generator, which cannot be an input of a compiled step. Pass a list, "
        "a tuple, a dict or an array of numbers.",
    ),
    Case(
        "product(zip([1.0]))",
        "ArgumentError",
        "user.py:1: argument x is a zip, which cannot be an input of a compiled step. Pass a list, a "
        "tuple, a dict or an array of numbers.",
    ),
    Case(
        'product(map(float, "12"))',
        "ArgumentError",
        "user.py:1: argument x is a map, which cannot be an input of a compiled step. Pass a list, a "
        "tuple, a dict or an array of numbers.",
    ),
    Case(
        "product(range(3))",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the range range(0, 3). Pass numbers, or "
        "lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product([])",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the list []. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product({})",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the dict {}. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        'product(b"")',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Array []. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product(object())",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the object .... Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product(float)",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the type <class 'float'>. Pass numbers, "
        "or lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product(lambda: 1.0)",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the function <function <lambda> .... "
        "Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses "
        "one by one.",
    ),
    Case(
        "product(math)",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the module <module 'math' .... Pass "
        "numbers, or lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product(datetime.date(2020, 1, 1))",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the date datetime.date(2020, 1, 1). "
        "Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "total([1.0, None])",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the NoneType None. Pass numbers, or "
        "lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        'total([1.0, "2"])',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the str '2'. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "total([1.0, [2.0]])",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the list [<a number that is being "
        "traced>]. Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses one by "
        "one.",
    ),
    Case(
        "total([[1.0], [1.0, 2.0]])",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the list [<a number that is being "
        "traced>]. Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses one by "
        "one.",
    ),
    Case(
        "total([1.0, 1j])",
        "ArgumentError",
        "user.py:1: argument xs[1] is a complex, which cannot be an input of a compiled step. Pass a "
        "list, a tuple, a dict or an array of numbers.",
    ),
    Case(
        "total([1.0, decimal.Decimal(1)])",
        "ArgumentError",
        "user.py:1: argument xs[1] is a Decimal, which computes in its own way, not as a float. Pass "
        "float(x), or name it in static= where it takes few different values.",
        goes_on=True,
    ),
    Case(
        'total({"a": 1.0})',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the str 'a'. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "cyclic = []; cyclic.append(cyclic); total(cyclic)",
        "ArgumentError",
        "user.py:1: argument xs is nested too deeply, or contains itself. Pass a flat list.",
    ),
    Case(
        'cyclic = {}; cyclic["self"] = cyclic; product(cyclic)',
        "ArgumentError",
        "user.py:1: argument x is nested too deeply, or contains itself. Pass a flat list.",
    ),
    Case(
        "cyclic = [1.0]; cyclic.append((cyclic,)); total(cyclic)",
        "ArgumentError",
        "user.py:1: argument xs is nested too deeply, or contains itself. Pass a flat list.",
    ),
    Case(
        "deep = 1.0\nfor _ in range(2000): deep = [deep]\nproduct(deep)",
        "ArgumentError",
        "user.py:3: argument x is nested too deeply, or contains itself. Pass a flat list.",
    ),
    Case(
        "product()",
        "ArgumentError",
        "user.py:1: <lambda>(x): missing a required argument: 'x'.",
    ),
    Case(
        "product(1.0, 2.0)",
        "ArgumentError",
        "user.py:1: <lambda>(x): too many positional arguments.",
    ),
    Case(
        "product(y=1.0)",
        "ArgumentError",
        "user.py:1: <lambda>(x): missing a required argument: 'x'.",
    ),
    Case(
        "product(1.0, x=2.0)",
        "ArgumentError",
        "user.py:1: <lambda>(x): multiple values for argument 'x'.",
    ),
    Case(
        "product(*range(20))",
        "ArgumentError",
        "user.py:1: <lambda>(x): too many positional arguments.",
    ),
    Case(
        'product(np.array([1.0, 2.0], dtype="complex128"))',
        "ArgumentError",
        "user.py:1: argument x is a buffer with elements of format '...'; a step takes native integers "
        "of up to 64 bits, float32 and float64. Convert it first, e.g. x.astype(float).",
    ),
    Case(
        'product(np.array(["a"]))',
        "ArgumentError",
        "user.py:1: argument x is a buffer with elements of format '...'; a step takes native integers "
        "of up to 64 bits, float32 and float64. Convert it first, e.g. x.astype(float).",
    ),
    Case(
        "product(np.array([object()]))",
        "ArgumentError",
        "user.py:1: argument x is a buffer with elements of format 'O'; a step takes native integers of "
        "up to 64 bits, float32 and float64. Convert it first, e.g. x.astype(float).",
    ),
    Case(
        'product(np.array([1.0], dtype=">f8"))',
        "ArgumentError",
        "user.py:1: argument x is a buffer with elements of format '>d'; a step takes native integers of "
        "up to 64 bits, float32 and float64. Convert it first, e.g. x.astype(float).",
    ),
    Case(
        'product(np.array([1], dtype="float16"))',
        "ArgumentError",
        "user.py:1: argument x is a buffer with elements of format 'e'; a step takes native integers of "
        "up to 64 bits, float32 and float64. Convert it first, e.g. x.astype(float).",
    ),
    Case(
        'product(np.array([1], dtype="datetime64[s]"))',
        "ArgumentError",
        "user.py:1: argument x has no usable buffer: cannot include dtype 'M' in a buffer.",
    ),
    Case(
        'product(np.zeros(2, dtype=[("a", "f8")]))',
        "ArgumentError",
        "user.py:1: argument x is a buffer with elements of format 'T{d:a:}'; a step takes native "
        "integers of up to 64 bits, float32 and float64. Convert it first, e.g. x.astype(float).",
    ),
    Case(
        "product(np.array([True]))",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Array [<a number that is "
        "being traced>]. Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses "
        "one by one.",
    ),
    Case(
        "product(np.complex128(1))",
        "ArgumentError",
        "user.py:1: argument x is a buffer with elements of format '...'; a step takes native integers "
        "of up to 64 bits, float32 and float64. Convert it first, e.g. x.astype(float).",
    ),
    Case(
        "product(np.ma.array([1.0], mask=[True]))",
        "PlainWarning",
        "<lambda> runs as plain Python: prelude.py:...: the step uses a numpy.ma.MaskedArray, which may answer "
        "something else at each call, and a compiled call would not ask again. Ask outside of the step, and pass the "
        "answer as an argument.",
        goes_on=True,
    ),
    Case(
        "product(np.matrix([[1.0]]))",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Array [[<a number that is "
        "being traced>]]. Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses "
        "one by one.",
    ),
    Case(
        "product(np.array([], dtype=float))",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Array []. Pass numbers, or "
        "lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product(np.array(2**60))",
        "PlainWarning",
        "<lambda> runs as plain Python: argument x is an array of no dimension, which computes in its own way. "
        "Pass float(x)",
        goes_on=True,
    ),
    Case(
        "product(np.array([2**60, 1]))",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Array [<a number that is being "
        "traced>, ...]. Pass numbers, or lists, tuples, dicts and arrays whose elements the step "
        "uses one by one.",
    ),
    Case(
        'product(memoryview(b"ab").cast("c"))',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Array [<a number that is being "
        "traced>, ...]. Pass numbers, or lists, tuples, dicts and arrays whose elements the step "
        "uses one by one.",
    ),
    Case(
        'product(array.array("u", "ab"))',
        "ArgumentError",
        "user.py:1: argument x is a buffer with elements of format '...'; a step takes native integers "
        "of up to 64 bits, float32 and float64. Convert it first, e.g. x.astype(float).",
    ),
    Case(
        'product(array.array("q", [2**60]))',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Array [<a number that is "
        "being traced>]. Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses "
        "one by one.",
    ),
    Case(
        'product(memoryview(b"abcd")[::2])',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Array [<a number that is being "
        "traced>, ...]. Pass numbers, or lists, tuples, dicts and arrays whose elements the step "
        "uses one by one.",
    ),
    Case(
        'product(Odd("__float__"))',
        "TraceError",
        "prelude.py:...: the number of the Odd ... would be frozen into the step, and not be seen when "
        "it changes. Write float(...) outside of the step and pass the number as an argument.",
    ),
    Case(
        'product(Odd("__len__"))',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Odd .... Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        'product(Odd("__eq__"))',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Odd .... Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        'product(Odd("__hash__"))',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Odd .... Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        'product(Odd("__repr__"))',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Odd that has no repr. Pass numbers, "
        "or lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        'product({1.0: 2.0, "a": 3.0})',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the dict {1.0: <a number that is being "
        "traced>, ...}. Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses one "
        "by one.",
    ),
    Case(
        "keyed = {w: 1.0}; product(keyed)",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the dict {Value(data=2.0, ...}. "
        "Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses one by "
        "one.",
    ),
    Case(
        "product({math.nan: 1.0})",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the dict {nan: <a number that is being "
        "traced>}. Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses one by "
        "one.",
    ),
    Case(
        "product(floaty)",
        "TraceError",
        "prelude.py:...: the number of the Floaty ... would be frozen into the step, and not be seen "
        "when it changes. Write float(...) outside of the step and pass the number as an argument.",
        goes_on=True,
    ),
    Case(
        "product(w * 2.0)",
        "TraceError",
        "prelude.py:...: the step uses a Value that was computed outside of it, so backward() could not "
        "reach what it was computed from. Compute it inside the step, or pass its .data as a number.",
        goes_on=True,
    ),
    Case(
        "product(kept_from_a_trace())",
        "LeakError",
        "prelude.py:17: the step leaves a traced value in the variable elsewhere, and a compiled call has no such "
        "objects. Return the number and keep it outside of the step; if this is a list that the step "
        "fills anew in each call, such as a tape, empty it at the end of the step: tape.clear().",
        goes_on=True,
    ),
    Case(
        "product([w, w])",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the list [Value(data=2.0, grad=0.0), "
        "...]. Pass numbers, or lists, tuples, dicts and arrays whose elements the step uses one "
        "by one.",
    ),
    Case(
        "product(Value(1.0) + 1.0)",
        "TraceError",
        "prelude.py:...: the step uses a Value that was computed outside of it, so backward() could not "
        "reach what it was computed from. Compute it inside the step, or pass its .data as a number.",
        goes_on=True,
    ),
    Case(
        "product(mgjit.Value)",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the type <class "
        "'mgjit.engine.value.Value'>. Pass numbers, or lists, tuples, dicts and arrays whose elements "
        "the step uses one by one.",
    ),
    Case(
        "product(s)",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the State mgjit.state([1.0, 2.0]). Pass "
        "numbers, or lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product(model)",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the MLP MLP of [Layer of "
        "[ReLUNeuron(2), .... Pass numbers, or lists, tuples, dicts and arrays whose elements the "
        "step uses one by one.",
    ),
]
