"""Bad inputs: exported C, and frozen steps over tensors."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case

EXPORTS = [
    Case(
        "product.export('/dev/null/net', calls=[(1.0,)])",
        "ArgumentValueError",
        "user.py:1: name='<lambda>' is no C identifier, and all names in the exported C begin with it. Use "
        "letters a to z, digits and underscores, and begin with a letter, e.g. name='lambda'.",
    ),
    Case(
        "product.export('/dev/null/net', 'net', calls=[(1.0,)])",
        "ExportError",
        "user.py:1: /dev/null/net cannot be written: Not a directory. Nothing was exported: pass a directory "
        "in which you may create files.",
    ),
    Case(
        "product.export(tempfile.gettempdir(), '2nd net', calls=[(1.0,)])",
        "ArgumentValueError",
        "user.py:1: name='2nd net' is no C identifier, and all names in the exported C begin with it. Use "
        "letters a to z, digits and underscores, and begin with a letter, e.g. name='x2nd_net'.",
    ),
    Case(
        "product.export(tempfile.gettempdir(), 'double', calls=[(1.0,)])",
        "ArgumentValueError",
        "user.py:1: name='double' is a keyword of C or C++, and all names in the exported C begin with it. "
        "Use letters a to z, digits and underscores, and begin with a letter, e.g. name='step_double'.",
    ),
    Case(
        "product.export(tempfile.gettempdir(), 'math', calls=[(1.0,)])",
        "ArgumentValueError",
        "user.py:1: name='math' would make a header math.h, as the C library has one, and all names in the exported C "
        "begin with it. Use letters a to z, digits and underscores, and begin with a letter, e.g. name='step_math'.",
    ),
    Case(
        "product.export(tempfile.gettempdir(), 'net', calls=[1.0])",
        "ArgumentError",
        "user.py:1: calls[0], which is 1.0, is no tuple of arguments. Pass a list with such a tuple for each call: "
        "calls=[(x, y, 0.1)], or calls=[(x,)] if there is one argument.",
    ),
    Case(
        "product.export(7, 'net', calls=[(1.0,)])",
        "ArgumentError",
        "user.py:1: the directory is 7, which is no path. Pass a string or a Path.",
    ),
    Case(
        "product.export(tempfile.gettempdir(), 'net', weights='flash')",
        "ArgumentValueError",
        "user.py:1: weights='flash' is not one of 'inside', 'file': they lie inside of the C file, or in a data file.",
    ),
    Case(
        "product.export(tempfile.gettempdir(), 'net')",
        "ArgumentError",
        "user.py:1: there is no compiled call whose arguments the export could be made for and check itself "
        "with. Pass arguments: step.export(directory, name=..., calls=[(x,)]).",
    ),
    Case(
        "product.export(tempfile.gettempdir(), 'net', calls=[])",
        "ArgumentValueError",
        "user.py:1: calls=[] has no call, and the structure of the arguments is that of the first one. Pass "
        "at least one tuple of arguments.",
    ),
    Case(
        "total.export(tempfile.gettempdir(), 'net', calls=[([1.0],), ([1.0, 2.0],)])",
        "ArgumentError",
        "user.py:1: calls[1] has arguments of another structure than calls[0] (such as other lengths), for "
        "which exported C is not made. Export each structure with a name of its own.",
    ),
    Case(
        "product.export(tempfile.gettempdir(), 'net', calls=[(2**31,)])",
        "ArgumentValueError",
        "user.py:1: argument x is an int beyond 32 bits, and ints are passed to exported C as int32_t. Pass "
        "float(x), which becomes a float or double.",
    ),
    Case(
        "product.export(tempfile.gettempdir(), 'net', calls=[(1.0, 2.0)])",
        "ArgumentError",
        "user.py:1: <lambda>(x): too many positional arguments.",
    ),
    Case(
        "def step(x):\n"
        "    return w * x + random.random()\n"
        "mgjit.compile(step).export(tempfile.gettempdir(), 'net', calls=[(1.0,)])",
        "RandomnessError",
        "user.py:2: the step at user.py:1 draws 1 random number a call: random 1 x, "
        "and exported C has no generator. Draw outside of the step and pass what was drawn as an argument.",
    ),
    Case(
        "def step(name, x):\n"
        "    return w * x * len(name)\n"
        "mgjit.compile(step).export(tempfile.gettempdir(), 'net', calls=[('ab', 1.0)])",
        "ArgumentError",
        "user.py:3: argument name of the step at user.py:1 is the string 'ab'. Exported C has no strings, "
        "and would be for this one only. Pass its characters as a list of ints, or fix it: "
        "@mgjit.compile(static='name').",
    ),
    Case(
        "def step(xs):\n"
        "    xs[0] = xs[1] * w.data\n"
        "mgjit.compile(step).export(tempfile.gettempdir(), 'net', calls=[(array.array('d', [1.0, 2.0]),)])",
        "UnsupportedError",
        "user.py:3: the step at user.py:1 assigns elements of argument xs, and an exported step changes no "
        "argument. Let it return these numbers instead.",
    ),
    Case(
        "t = mgjit.tensor.ones(2, requires_grad=True)\n"
        "def step(x):\n"
        "    with mgjit.no_grad():\n"
        "        t[...] = t * x\n"
        "    return t * x\n"
        "mgjit.freeze(step, 1.0)",
        "FreezeError",
        "user.py:2: the step assigns numbers of its parameters without a call of backward(), so that its "
        "forward part cannot be told from its update. Write what is to be frozen as a function of its own, "
        "and keep what it assigns in mgjit.state, in lists, or in tensors without requires_grad.",
    ),
    Case(
        "t = mgjit.tensor.ones(2, requires_grad=True)\n"
        "def step(x):\n"
        "    (t * x).sum().backward()\n"
        "    return t.grad\n"
        "mgjit.freeze(step, 1.0)",
        "FreezeError",
        "user.py:2: a result of the step needs what only training computes, gradients or parameters that "
        "have been updated (number 1 of the 2 in it). Freeze a function that returns the other results only, "
        "such as the scores.",
    ),
    Case(
        "t = mgjit.tensor.ones(2)\n"
        "frozen = mgjit.freeze(lambda x: t * x, mgjit.tensor.ones(2))\n"
        "frozen([[1.0], [1.0, 2.0]])",
        "ShapeError",
        "user.py:3: a tensor of lists that have different lengths.",
    ),
]
