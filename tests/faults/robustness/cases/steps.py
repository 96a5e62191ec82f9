"""Bad inputs: steps."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case

STEPS = [
    Case(
        "mgjit.compile(eval('lambda x: int(x) * w'))(1.0)",
        "TraceError",
        "<string>:1: int() and rounding need a real number. Compute the integer outside of the step and "
        "pass it as an argument.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: float(w * x))(1.0)",
        "TraceError",
        "user.py:1: a number of the step is known only when the compiled step runs. Call a function of math by a "
        "name (f(x), or map(f, xs)), not by a partial or key=; write x.data for float(x) of a Value, and do the rest "
        "outside of the step.",
    ),
    Case(
        "mgjit.compile(lambda x: complex(x))(1.0)",
        "TraceError",
        "user.py:1: a number of the step is known only when the compiled step runs. Call a function of math by a "
        "name (f(x), or map(f, xs)), not by a partial or key=; write x.data for float(x) of a Value, and do the rest "
        "outside of the step.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda n: [w] * n)(2.0)",
        "TraceError",
        "user.py:1: a run-time number cannot be a list index, a key, a length or a range. Use "
        "mgjit.take(table, index), or name the argument in @mgjit.compile(static=(...)) when few "
        "different values occur.",
    ),
    Case(
        "mgjit.compile(lambda n: [w for _ in range(n)])(2.0)",
        "TraceError",
        "user.py:1: a run-time number cannot be a list index, a key, a length or a range. Use "
        "mgjit.take(table, index), or name the argument in @mgjit.compile(static=(...)) when few "
        "different values occur.",
    ),
    Case(
        "mgjit.compile(lambda n: {0: w}[n])(0.0)",
        "TraceError",
        "user.py:1: a run-time number cannot be a list index, a key, a length or a range. Use "
        "mgjit.take(table, index), or name the argument in @mgjit.compile(static=(...)) when few "
        "different values occur.",
        goes_on=True,
    ),
    Case(
        'mgjit.compile(lambda x: f"{x:.2f}")(1.0)',
        "TraceError",
        "user.py:1: a traced value has no digits to print. Return it from the step and print the result.",
        goes_on=True,
    ),
    Case(
        'mgjit.compile(lambda x: "%.2f" % x)(1.0)',
        "TraceError",
        "user.py:1: a number of the step is known only when the compiled step runs. Call a function of math by a "
        "name (f(x), or map(f, xs)), not by a partial or key=; write x.data for float(x) of a Value, and do the rest "
        "outside of the step.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: x << 1)(3)",
        "TraceError",
        "user.py:1: bit operations are not available on traced values. Compute them outside of the step.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: ~x)(3)",
        "TraceError",
        "user.py:1: bit operations are not available on traced values. Compute them outside of the step.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: w ** w)(1.0)",
        "TraceError",
        "user.py:1: Value ** Value is not defined: write mgjit.exp(b * mgjit.log(a)).",
    ),
    Case(
        "mgjit.compile(lambda x: w ** None)(1.0)",
        "TraceError",
        "user.py:1: a number or a Value is needed here, not the NoneType None. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "mgjit.compile(lambda x: w * random.betavariate(x, 1.0))(1.0)",
        "RandomnessError",
        "user.py:1: the arguments of betavariate() are traced numbers, which are known only when the compiled step "
        "runs. Draw with constants and compute the rest, such as mu + sigma * random.gauss(0.0, 1.0), or draw outside "
        "of the step.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: w * np.random.rand())(1.0)",
        "RandomnessError",
        "user.py:1: the step drew random numbers while it was traced in a way that cannot be followed, and they would "
        "be the same in every later call. Call the methods of random, or of a random.Random, by their names; or draw "
        "outside of the step and pass the numbers in as arguments.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: w * random.Random().random())(1.0)",
        "RandomnessError",
        "user.py:1: the step seeded a generator from the system while it was traced, which would not happen in later "
        "calls. Do it outside of the step that begins at user.py:1, and pass numbers in as arguments.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: w * (random.seed(1) or x))(1.0)",
        "RandomnessError",
        "user.py:1: the step called seed() of a generator that is not its own while it was traced, which would "
        "not happen in later calls. Do it outside of the step that begins at user.py:1, and pass numbers in as "
        "arguments.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: (kept.append(w * x), w * x)[1])(1.0); kept[0] + 1.0",
        "LeakError",
        "user.py:1: the step leaves a traced value in the variable kept, and a compiled call has no such "
        "objects. Return the number and keep it outside of the step; if this is a list that the step "
        "fills anew in each call, such as a tape, empty it at the end of the step: tape.clear().",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: (kept.append(Value(x)), w * x)[1])(1.0); kept[0].data",
        "LeakError",
        "user.py:1: the step leaves a Value with traced values in the variable kept, and a compiled call has no such "
        "objects. Return the number and keep it outside of the step; if this is a list that the step "
        "fills anew in each call, such as a tape, empty it at the end of the step: tape.clear().",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: {w * x})(1.0)",
        "TraceError",
        "user.py:1: the step returns a set around traced values, which would be dead outside of the "
        "trace. Return numbers, Values, or lists, tuples, dicts and dataclasses of them.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: (w * y for y in [x]))(1.0)",
        "TraceError",
        "user.py:1: the step returns a generator around traced values, which would be dead outside of "
        "the trace. Return numbers, Values, or lists, tuples, dicts and dataclasses of them.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: lambda: w * x)(1.0)",
        "TraceError",
        "user.py:1: the step returns a function around traced values, which would be dead outside of the "
        "trace. Return numbers, Values, or lists, tuples, dicts and dataclasses of them.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: iter([w * x]))(1.0)",
        "TraceError",
        "user.py:1: the step returns a ... around traced values, which would be dead outside "
        "of the trace. Return numbers, Values, or lists, tuples, dicts and dataclasses of them.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(lambda x: missing_name * x)(1.0)",
        "NameError",
        "name 'missing_name' is not defined",
    ),
    Case(
        "mgjit.compile(lambda x: 1 / 0)(1.0)",
        "ZeroDivisionError",
        "division by zero",
    ),
    Case(
        "def recurse(x): return recurse(x)\nmgjit.compile(recurse)(1.0)",
        "RecursionError",
        "maximum recursion depth exceeded...",
    ),
    Case(
        "def step(x):\n    (w * x).data = 3.0\nmgjit.compile(step)(1.0)",
        "TraceError",
        "user.py:2: only parameters (Values that existed before the step, or were made by Value(...)) "
        "can be assigned. Write a new expression instead of changing .data of a computed Value.",
        goes_on=True,
    ),
    Case(
        "def step(x):\n    (w * x).grad = 3.0\nmgjit.compile(step)(1.0)",
        "TraceError",
        "user.py:2: .grad of a computed Value cannot be assigned. Each backward() resets the gradients "
        "of computed Values by itself; only parameters accumulate.",
        goes_on=True,
    ),
    Case(
        'def step(x):\n    w.data = "3"\nmgjit.compile(step)(1.0)',
        "TraceError",
        "user.py:2: a number or a Value is needed here, not the str '3'. Pass numbers, or lists, tuples, "
        "dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "def step(x):\n    w.data = w\nmgjit.compile(step)(1.0)",
        "TraceError",
        "user.py:2: a number or a Value is needed here, not the Value Value(data=2.0, grad=0.0). Pass "
        "numbers, or lists, tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        "def step(x):\n    w.grad = None\nmgjit.compile(step)(1.0)",
        "TraceError",
        "user.py:2: a number or a Value is needed here, not the NoneType None. Pass numbers, or lists, "
        "tuples, dicts and arrays whose elements the step uses one by one.",
    ),
    Case(
        'def step(x):\n    w.data = 5.0\n    raise KeyError("mine")\nmgjit.compile(step)(1.0)',
        "KeyError",
        "'mine'",
    ),
    Case(
        'def step(x):\n    w.data = 5.0\n    assert False, "mine"\nmgjit.compile(step)(1.0)',
        "AssertionError",
        "mine",
    ),
    Case(
        "def step(x):\n    w.data = 5.0\n    raise KeyboardInterrupt\nmgjit.compile(step)(1.0)",
        "KeyboardInterrupt",
        "",
    ),
    Case(
        "def step(x):\n    w.data = 5.0\n    raise SystemExit(3)\nmgjit.compile(step)(1.0)",
        "SystemExit",
        "3",
    ),
    Case(
        'def step(x):\n    return open("/no/such/file")\nmgjit.compile(step)(1.0)',
        "FileNotFoundError",
        "[Errno 2] No such file or directory: '/no/such/file'",
    ),
    Case(
        "def step(x):\n    return product.loop([x])\nmgjit.compile(step)(1.0)",
        "PhaseError",
        "user.py:2: .loop() runs a kernel and cannot be part of the step that is being traced. Call "
        "<lambda>(...) itself there: it becomes part of the trace.",
        goes_on=True,
    ),
    Case(
        "def step(x):\n    return product.forward(x)\nmgjit.compile(step)(1.0)",
        "PhaseError",
        "user.py:2: .forward() runs a kernel and cannot be part of the step that is being traced. Call "
        "<lambda>(...) itself there: it becomes part of the trace.",
        goes_on=True,
    ),
    Case(
        "def step(x):\n    return product.lower(x)\nmgjit.compile(step)(1.0)",
        "PhaseError",
        "user.py:2: .lower() runs a kernel and cannot be part of the step that is being traced. Call "
        "<lambda>(...) itself there: it becomes part of the trace.",
        goes_on=True,
    ),
    Case(
        "def step(x):\n    (w * x).backward()\n    return w.grad\nmgjit.freeze(step, 1.0)",
        "FreezeError",
        "user.py:1: a result of the step needs what only training computes, gradients or parameters that have been "
        "updated (its result). Freeze a function that returns the other results only, such as the scores.",
    ),
    Case(
        "def step(x):\n    w.data = x\n    return w * x\nmgjit.freeze(step, 1.0)",
        "FreezeError",
        "user.py:1: the step assigns numbers of its parameters without a call of backward(), so that its forward part "
        "cannot be told from its update. Write what is to be frozen as a function of its own, and keep what it assigns "
        "in mgjit.state, in lists, or in tensors without requires_grad.",
    ),
    Case(
        "frozen = mgjit.freeze(model, [1.0, 2.0])\nmgjit.compile(lambda x: frozen([x, x])[0] * w)(1.0)",
        "PhaseError",
        "user.py:2: the frozen MLP is called in a step that is being traced, which would compute with the model as it "
        "is now. Call it before that step, and pass its result as an argument.",
    ),
    Case(
        "mgjit.freeze(model, [1.0, 2.0]).backward()",
        "PhaseError",
        "user.py:1: the frozen MLP has a forward phase only.",
    ),
    Case(
        "mgjit.freeze(mgjit.freeze(model, [1.0, 2.0]), [1.0, 2.0])",
        "ArgumentError",
        "user.py:1: MLP is frozen already. Pass what it was frozen from.",
    ),
]
