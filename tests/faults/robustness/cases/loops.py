"""Bad inputs: loops, phases."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case

LOOP = [
    Case(
        "product.loop()",
        "ArgumentError",
        "user.py:1: .loop(x): missing a required argument: 'x'.",
    ),
    Case(
        "product.loop(1.0)",
        "ColumnError",
        "user.py:1: .loop needs a column, a list or array with one item a step; got only arguments that "
        "are the same for every step. Call the step itself for one step, or repeat one of them: [x] * "
        "steps.",
    ),
    Case(
        "product.loop([1.0], [2.0])",
        "ArgumentError",
        "user.py:1: .loop(x): too many positional arguments.",
    ),
    Case(
        "product.loop(y=[1.0])",
        "ArgumentError",
        "user.py:1: .loop(x): missing a required argument: 'x'.",
    ),
    Case(
        "product.loop(iter([1.0]))",
        "ColumnError",
        "user.py:1: the column x is a ..., which has no rows to count and check before the "
        "first step. Pass a list: list(x).",
    ),
    Case(
        "product.loop({1.0, 2.0})",
        "ColumnError",
        "user.py:1: the column x is a set, which has no rows to count and check before the first step. "
        "Pass a list: list(x).",
    ),
    Case(
        "product.loop(x for x in [1.0])",
        "ColumnError",
        "user.py:1: the column x is a generator, which has no rows to count and check before the first "
        "step. Pass a list: list(x).",
    ),
    Case(
        'product.loop([1.0, "2"])',
        "ColumnError",
        "user.py:1: a row of .loop has another structure than row 0: x was number, is '2'. Make the rows "
        "alike (one kind of number; lengths may differ), or call the step for each of them. (Row 1 of .loop; "
        "nothing was computed.)",
    ),
    Case(
        "product.loop([1.0, None])",
        "ColumnError",
        "user.py:1: a row of .loop has another structure than row 0: x was number, is None. Make the "
        "rows alike (one kind of number; lengths may differ), or call the step for each of them. (Row 1 of "
        ".loop; nothing was computed.)",
    ),
    Case(
        "product.loop([1.0, [2.0]])",
        "ColumnError",
        "user.py:1: a row of .loop has another structure than row 0: x was number, is 1 number in a list. Make "
        "the rows alike (one kind of number; lengths may differ), or call the step for each of them. (Row 1 of "
        ".loop; nothing was computed.)",
    ),
    Case(
        "product.loop([1.0, 2])",
        "ColumnError",
        "user.py:1: a row of .loop has another structure than row 0: x was number, is integer. Make the "
        "rows alike (one kind of number; lengths may differ), or call the step for each of them. (Row 1 of "
        ".loop; nothing was computed.)",
        goes_on=True,
    ),
    Case(
        "product.loop([1.0, 1j])",
        "ArgumentError",
        "user.py:1: argument x is a complex, which cannot be an input of a compiled step. Pass a list, a "
        "tuple, a dict or an array of numbers. (Row 1 of .loop; nothing was computed.)",
    ),
    Case(
        "product.loop([1.0, 2**60])",
        "ColumnError",
        "user.py:1: a row of .loop has another structure than row 0: x was number, is integer. Make the "
        "rows alike (one kind of number; lengths may differ), or call the step for each of them. (Row 1 of "
        ".loop; nothing was computed.)",
        goes_on=True,
    ),
    Case(
        "product.loop([2**60, 1])",
        "ArgumentValueError",
        "user.py:1: argument x has the integer 1152921504606846976, which float64 cannot hold exactly "
        "(the limit is 2**53). Pass float(x) to accept rounding, or name it in static=.",
        goes_on=True,
    ),
    Case(
        'product.loop("12")',
        "ColumnError",
        "user.py:1: .loop needs a column, a list or array with one item a step; got only arguments that "
        "are the same for every step. Call the step itself for one step, or repeat one of them: [x] * "
        "steps.",
    ),
    Case(
        "product.loop(None)",
        "ColumnError",
        "user.py:1: .loop needs a column, a list or array with one item a step; got only arguments that "
        "are the same for every step. Call the step itself for one step, or repeat one of them: [x] * "
        "steps.",
    ),
    Case(
        "mgjit.compile(lambda x, y: x * y * w).loop([1.0, 2.0], [1.0])",
        "ColumnError",
        "user.py:1: the columns of .loop differ in length: x has 2 rows, y has 1. Every list and array "
        "is a column; repeat what is the same for every step: [y] * steps.",
    ),
    Case(
        "mgjit.compile(lambda x, y: x * y * w).loop(1.0, 2.0)",
        "ColumnError",
        "user.py:1: .loop needs a column, a list or array with one item a step; got only arguments that "
        "are the same for every step. Call the step itself for one step, or repeat one of them: [x] * "
        "steps.",
    ),
    Case(
        "total.loop([[1.0], None])",
        "ColumnError",
        "user.py:1: a row of .loop has another structure than row 0: xs was 1 number in a list, is None. Make the "
        "rows alike (one kind of number; lengths may differ), or call the step for each of them. (Row 1 of "
        ".loop; nothing was computed.)",
    ),
    Case(
        "total.loop(np.zeros((2, 2, 0)))",
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the Array []. Pass numbers, or "
        "lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "total.loop(np.zeros((2, 2), dtype=complex))",
        "ArgumentError",
        "user.py:1: argument xs is a buffer with elements of format '...'; a step takes native integers "
        "of up to 64 bits, float32 and float64. Convert it first, e.g. x.astype(float).",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([1.0, 2.0], i) * w).loop([0, 1, 2])",
        "IndexRangeError",
        "user.py:1: the index 2 in row 2 is not an integer in 0 .. 1. Nothing was computed or written.",
    ),
    Case(
        "mgjit.compile(lambda i: mgjit.take([1.0, 2.0], i) * w).loop([0.0, 0.5])",
        "IndexRangeError",
        "user.py:1: the index 0.5 in row 1 is not an integer in 0 .. 1. Nothing was computed or written.",
    ),
    Case(
        "product.loop(range(3), 2.0)",
        "ArgumentError",
        "user.py:1: .loop(x): too many positional arguments.",
    ),
    Case(
        'product.loop({"a": [1.0]})',
        "ColumnError",
        "user.py:1: .loop needs a column, a list or array with one item a step; got only arguments that "
        "are the same for every step. Call the step itself for one step, or repeat one of them: [x] * "
        "steps.",
    ),
]

PHASES = [
    Case(
        "product.backward()",
        "PhaseError",
        "user.py:1: .backward() continues .forward(), which has not just been called. Call "
        "step.forward(*args), then step.backward(), then step.update().",
    ),
    Case(
        "product.update()",
        "PhaseError",
        "user.py:1: .update() continues .backward(), which has not just been called. Call "
        "step.forward(*args), then step.backward(), then step.update().",
    ),
    Case(
        "product.forward(1.0); product.update()",
        "PhaseError",
        "user.py:1: .update() continues .backward(), which has not just been called. Call "
        "step.forward(*args), then step.backward(), then step.update().",
    ),
    Case(
        "product.forward(1.0); product.backward(); product.backward()",
        "PhaseError",
        "user.py:1: .backward() continues .forward(), which has not just been called. Call "
        "step.forward(*args), then step.backward(), then step.update().",
    ),
    Case(
        "product.forward(1.0); product(1.0); product.backward()",
        "PhaseError",
        "user.py:1: .backward() continues .forward(), which has not just been called. Call "
        "step.forward(*args), then step.backward(), then step.update().",
    ),
    Case(
        "product.forward()",
        "ArgumentError",
        "user.py:1: <lambda>(x): missing a required argument: 'x'.",
    ),
    Case(
        'product.forward("x")',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the str 'x'. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "product.lower()",
        "ArgumentError",
        "user.py:1: <lambda>(x): missing a required argument: 'x'.",
    ),
    Case(
        'product.lower("x")',
        "TraceError",
        "prelude.py:...: a number or a Value is needed here, not the str 'x'. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
]
