"""Bad inputs: options, what is decorated."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case

OPTIONS = [
    Case(
        'mgjit.compile(dtype="float16")',
        "ArgumentValueError",
        "user.py:1: dtype must be one of 'float64', 'float32', not str 'float16'.",
    ),
    Case(
        "mgjit.compile(dtype=float)",
        "ArgumentValueError",
        "user.py:1: dtype must be one of 'float64', 'float32', not type <class 'float'>.",
    ),
    Case(
        "mgjit.compile(dtype=None)",
        "ArgumentValueError",
        "user.py:1: dtype must be one of 'float64', 'float32', not NoneType None.",
    ),
    Case(
        'mgjit.compile(dtype=["float64"])',
        "ArgumentValueError",
        "user.py:1: dtype must be one of 'float64', 'float32', not list ['float64'].",
    ),
    Case(
        'mgjit.compile(mode="quick")',
        "ArgumentValueError",
        "user.py:1: mode must be one of 'strict', 'fast', not str 'quick'.",
    ),
    Case(
        "mgjit.compile(mode=1)",
        "ArgumentValueError",
        "user.py:1: mode must be one of 'strict', 'fast', not int 1.",
    ),
    Case(
        "mgjit.compile(mode={})",
        "ArgumentValueError",
        "user.py:1: mode must be one of 'strict', 'fast', not dict {}.",
    ),
    Case(
        'mgjit.compile(backend="cuda")',
        "ArgumentValueError",
        "user.py:1: backend must be one of 'auto', 'c', 'python', not str 'cuda'.",
    ),
    Case(
        "mgjit.compile(backend=None)",
        "ArgumentValueError",
        "user.py:1: backend must be one of 'auto', 'c', 'python', not NoneType None.",
    ),
    Case(
        'mgjit.compile(compiler="no-such-compiler", backend="c")(lambda x: w * x)(1.0)',
        "CompilerError",
        "there is no C compiler 'no-such-compiler' (asked for by compiler= or MGJIT_CC). Looked for: the "
        "file 'no-such-compiler', an executable 'no-such-compiler' on PATH. Found on this machine: .... "
        "Leave compiler= and MGJIT_CC out to let mgjit choose.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(compiler=3)",
        "ArgumentError",
        "user.py:1: compiler must be None or a str, not int 3.",
    ),
    Case(
        'mgjit.compile(compiler=["gcc", "-O2"])',
        "ArgumentError",
        "user.py:1: compiler must be None or a str, not list ['gcc', '-O2'].",
    ),
    Case(
        'mgjit.compile(static="y")(lambda x: x)',
        "ArgumentError",
        "user.py:1: static=['y'] names no parameter of <lambda>(x).",
    ),
    Case(
        'mgjit.compile(static=["x", "y"])(lambda x: x)',
        "ArgumentError",
        "user.py:1: static=['y'] names no parameter of <lambda>(x).",
    ),
    Case(
        "mgjit.compile(static=1)",
        "ArgumentError",
        "user.py:1: static must be the name of a parameter, or a list of names, not int 1.",
    ),
    Case(
        "mgjit.compile(static=[1])(lambda x: x)",
        "ArgumentError",
        "user.py:1: static must be the name of a parameter, or a list of names, not list [1].",
    ),
    Case(
        "mgjit.compile(static=None)",
        "ArgumentError",
        "user.py:1: static must be the name of a parameter, or a list of names, not NoneType None.",
    ),
    Case(
        'mgjit.compile(grads="no")',
        "ArgumentError",
        "user.py:1: grads must be True or False, not str 'no'.",
    ),
    Case(
        "mgjit.compile(grads=None)",
        "ArgumentError",
        "user.py:1: grads must be True or False, not NoneType None.",
    ),
    Case(
        'mgjit.compile(cache="yes")',
        "ArgumentError",
        "user.py:1: cache must be True or False, not str 'yes'.",
    ),
    Case(
        "mgjit.compile(cache=2)",
        "ArgumentError",
        "user.py:1: cache must be True or False, not int 2.",
    ),
    Case(
        'mgjit.compile(background="no")',
        "ArgumentError",
        "user.py:1: background must be True or False, not str 'no'.",
    ),
    Case(
        "mgjit.compile(limit=0)",
        "ArgumentValueError",
        "user.py:1: limit and warn_after must be at least 1, not 0, 10.",
    ),
    Case(
        "mgjit.compile(limit=-1)",
        "ArgumentValueError",
        "user.py:1: limit and warn_after must be at least 1, not -1, 10.",
    ),
    Case(
        'mgjit.compile(limit="64")',
        "ArgumentError",
        "user.py:1: limit must be None or an int, not str '64'.",
    ),
    Case(
        "mgjit.compile(limit=1.5)",
        "ArgumentError",
        "user.py:1: limit must be None or an int, not float 1.5.",
    ),
    Case(
        "mgjit.compile(limit=True)",
        "ArgumentError",
        "user.py:1: limit must be None or an int, not bool True.",
    ),
    Case(
        "mgjit.compile(limit='none')",
        "ArgumentError",
        "user.py:1: limit must be None or an int, not str 'none'.",
    ),
    Case(
        "mgjit.compile(warn_after=0.5)",
        "ArgumentError",
        "user.py:1: warn_after must be an int, not float 0.5.",
    ),
    Case(
        "mgjit.compile(warn_after=-3)",
        "ArgumentValueError",
        "user.py:1: limit and warn_after must be at least 1, not None, -3.",
    ),
    Case(
        'mgjit.compile(warn_after="10")',
        "ArgumentError",
        "user.py:1: warn_after must be an int, not str '10'.",
    ),
    Case(
        "mgjit.compile(threads=0)",
        "ArgumentValueError",
        "user.py:1: threads must be from 1 to 256, not 0.",
    ),
    Case(
        'mgjit.compile(threads="all")',
        "ArgumentError",
        "user.py:1: threads must be an int, not str 'all'.",
    ),
    Case(
        'mgjit.compile(lock="no")',
        "ArgumentError",
        "user.py:1: lock must be True or False, not str 'no'.",
    ),
    Case(
        "mgjit.compile(lock=None)",
        "ArgumentError",
        "user.py:1: lock must be True or False, not NoneType None.",
    ),
    Case(
        "mgjit.compile(optimisation=3)",
        "ArgumentError",
        "user.py:1: optimisation must be None or a str, not int 3.",
    ),
    Case(
        'mgjit.compile(optimisation=["-O2"])',
        "ArgumentError",
        "user.py:1: optimisation must be None or a str, not list ['-O2'].",
    ),
    Case(
        'mgjit.compile(optimisation="--no-such-flag", backend="c", cache=False)(lambda x: w * x * 1.25)(1.0)',
        "CompilerError",
        "... failed with exit code ...",
        goes_on=True,
    ),
    Case(
        'mgjit.compile("float32")',
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the str 'float32': it needs a function.",
    ),
]

DECORATED = [
    Case(
        "mgjit.compile(3)",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the int 3: it needs a function.",
    ),
    Case(
        "mgjit.compile(None)(3)",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the int 3: it needs a function.",
    ),
    Case(
        "mgjit.compile([])",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the list []: it needs a function.",
    ),
    Case(
        "mgjit.compile(math)",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the module math: it needs a function.",
    ),
    Case(
        "mgjit.compile(staticmethod(lambda x: x))",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the staticmethod <lambda>: put it below @staticmethod "
        "or @classmethod, not above.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(classmethod(lambda x: x))",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the classmethod <lambda>: put it below @staticmethod "
        "or @classmethod, not above.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(property(lambda x: x))",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the property ...: put it on a method, which is called, "
        "not on a property.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(mgjit.nn.MLP)",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the type MLP: put it on the method that is the step, "
        "not on the class.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(int)",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the type int: put it on the method that is the step, "
        "not on the class.",
        goes_on=True,
    ),
    Case(
        'mgjit.compile(type("Model", (), {}))',
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the type Model: put it on the method that is the step, "
        "not on the class.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(math.sqrt)(2.0)",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the builtin_function... sqrt: a function of C "
        "computes without Values: write a function around it.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(max)(1.0, 2.0)",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the builtin_function... max: a function of C "
        "computes without Values: write a function around it.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(len)([1.0])",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the builtin_function... len: a function of C "
        "computes without Values: write a function around it.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(print)",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the builtin_function... print: a function of C "
        "computes without Values: write a function around it.",
        goes_on=True,
    ),
    Case(
        "def step(x):\n    yield x\nmgjit.compile(step)(1.0)",
        "ArgumentError",
        "user.py:3: @mgjit.compile cannot compile the function step: a generator is run later, step by "
        "step: return a list instead of yielding.",
        goes_on=True,
    ),
    Case(
        "async def step(x):\n    return x\nmgjit.compile(step)(1.0)",
        "ArgumentError",
        "user.py:3: @mgjit.compile cannot compile the function step: a coroutine is run later, by an "
        "event loop: compile the part without await.",
        goes_on=True,
    ),
    Case(
        "async def step(x):\n    yield x\nmgjit.compile(step)(1.0)",
        "ArgumentError",
        "user.py:3: @mgjit.compile cannot compile the function step: an asynchronous generator is run "
        "later: compile the part without await and yield.",
        goes_on=True,
    ),
    Case(
        "mgjit.compile(w)",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the Value Value(data=2.0, grad=0.0): it needs a function.",
    ),
    Case(
        "mgjit.compile(s)",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the State mgjit.state([1.0, 2.0]): it needs a function.",
    ),
    Case(
        "mgjit.compile(functools.cached_property(lambda x: x))",
        "ArgumentError",
        "user.py:1: @mgjit.compile cannot compile the cached_property ...: put it on the method "
        "below, which is called.",
        goes_on=True,
    ),
    Case(
        "class Bare:\n    __signature__ = 3\n    def __call__(self, x):\n        return w * x\n"
        "mgjit.compile(Bare())(1.0)",
        "ArgumentError",
        "user.py:5: @mgjit.compile cannot compile the Bare <user.Bare object at 0x...>: Python does not know its "
        "parameters: write a function around it.",
        goes_on=True,
    ),
]
