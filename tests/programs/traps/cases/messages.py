"""What is refused besides."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

CASES = [
    Trap(
        "a Value and a tensor in one expression",
        """\
t = mgjit.tensor.tensor([1.0, 2.0])
@mgjit.compile
def step(x):
    try: return (w * x).data, float((Value(x) + t.sum()).data)
    except Exception: return 0.0
for x in (1.0, 2.0): check(step(x))
""",
        "PlainWarning",
        "a value of an earlier trace is used here. Values of a trace live only while the step is being traced ...",
    ),
    Trap(
        "an object in an attribute of an object that an index has chosen",
        """\
ws = [Node(0.5), Node(-0.25)]
for n in ws: n.best = None
@mgjit.compile
def step(i, x):
    chosen = ws[i]
    chosen.best = [x]
    return chosen.data * x
for i in (0, 1, 0): check(step(i, 2.0), [n.best for n in ws])
""",
        "TraceError",
        ".best of an object that a traced index has chosen can be assigned a number in place of a "
        "number, not list in place of NoneType.",
    ),
    Trap(
        "a text in a row that an index has chosen",
        """\
rows = [[1.0, 2.0], [3.0, 4.0]]
@mgjit.compile
def step(i, x):
    rows[i][0] = "none"
    return rows[i][1] * x
for i in (0, 1, 0): check(step(i, 2.0), rows)
""",
        "TraceError",
        "in a row that a traced index has chosen, numbers can be assigned in place of numbers, not a str.",
    ),
    Trap(
        "an append to a row that an index has chosen",
        """\
rows = [[1.0, 2.0], [3.0, 4.0]]
@mgjit.compile
def step(i, x):
    rows[i].append(x)
    return rows[i][1] * x
for i in (0, 1, 0): check(step(i, 2.0), rows)
""",
        "TraceError",
        "a traced index chooses this row of a table. Its elements can be read and assigned, but its "
        "length stays, and it cannot be compared with other lists.",
    ),
    Trap(
        "a part of a tensor that the step assigns",
        """\
t = mgjit.tensor.tensor([1.0, 2.0, 3.0])
@mgjit.compile
def step(a):
    a[0] = a[1] * 2.0
    return float(a.sum().item())
for _ in range(3): check(step(t[1:]))
check(t.tolist())
""",
        "PlainWarning",
        "the step assigns to elements of a tensor among its arguments",
    ),
    Trap(
        "a result that contains itself",
        """\
@mgjit.compile
def step(x):
    found = [x * 2.0]
    found.append(found)
    return found
for x in (1.0, 2.0): check(step(x)[0], len(step(x)))
""",
        "PlainWarning",
        "the step returns a list that contains itself",
    ),
    Trap(
        "the id() of an argument",
        """\
@mgjit.compile
def step(xs):
    return xs[0] if id(xs) % 2 == 0 else xs[1] * 0.0
a = [1.0, 2.0]
for _ in range(3): check(step(a))
""",
        "PlainWarning",
        "it asks for the id() of an argument, which is another number in each call",
    ),
    Trap(
        "two arguments that are parts of one buffer",
        """\
@mgjit.compile
def step(a, b):
    a[0] = b[0] * 2.0
    return a[0]
store = array.array("d", [1.0, 2.0, 3.0])
view = memoryview(store)
for _ in range(3): check(step(view[:2], view[1:]), list(store))
""",
        "PlainWarning",
        "arguments a and b are parts of one buffer",
    ),
    Trap(
        "complex numbers",
        """\
@mgjit.compile
def step(x):
    return abs(x * (1.0 + 2.0j))
for x in (1.0, 2.0, 3.0): check(step(x))
""",
        "PlainWarning",
        "the step computes with complex numbers",
    ),
    Trap(
        "random.choice from a set",
        """\
import random
@mgjit.compile
def step(x):
    return random.choice("ab") + "c" if x is None else random.choice({1.0: 0, 0: 2.0}) * x
random.seed(1)
for x in (1.0, 2.0): check(step(x))
""",
        "RandomnessError",
        "choice() cannot draw from a dict in a compiled step. Use a list, a tuple or a range, or draw "
        "outside of the step.",
    ),
    Trap(
        "random.shuffle of objects from outside",
        """\
import random
ws = [Node(0.5), Node(-0.25), Node(2.0)]
@mgjit.compile
def step(x):
    random.shuffle(ws)
    return ws[0].data * x
random.seed(1)
for x in (1.0, 2.0, 3.0): check(step(x), [n.data for n in ws])
""",
        "PlainWarning",
        "the step shuffles a list from outside, whose elements are not numbers",
    ),
    Trap(
        "random.randbytes",
        """\
import random
@mgjit.compile
def step(x):
    return x * random.Random.getrandbits(random._inst, 8) if x < 0 else x * len(random.randbytes(2))
random.seed(1)
for x in (1.0, 2.0, 3.0): check(step(x))
""",
        "RandomnessError",
        "randbytes() gives bytes, and only floats and ints can be drawn in a compiled step. Draw "
        "outside of it and pass what was drawn as an argument.",
    ),
    Trap(
        "random.randrange with a text",
        """\
import random
@mgjit.compile
def step(x):
    return x * random.uniform(fractions(1), 2.0)
class fractions:
    def __init__(self, n): self.n = n
    def __sub__(self, o): return 1.0
    def __rsub__(self, o): return 1.0
    def __add__(self, o): return 1.0 + o
    def __radd__(self, o): return 1.0 + o
random.seed(1)
for x in (1.0, 2.0, 3.0): check(step(x))
""",
        "RandomnessError",
        "the arguments of uniform() must be numbers. Draw outside of the step and pass what was drawn as an argument.",
    ),
    Trap(
        "random.randrange up to 2**60",
        """\
import random
@mgjit.compile
def step(x):
    return x + random.randrange(2**60)
random.seed(1)
for x in (1.0, 2.0, 3.0): check(step(x))
""",
        "RandomnessError",
        "randrange() draws integers of up to 1152921504606846975, and a step holds them exactly up to "
        "9007199254740992. Draw smaller ones, or draw outside of the step.",
    ),
    Trap(
        "more questions than can be answered",
        """\
@mgjit.compile
def step(x):
    n = 0
    while x > 1e-6:
        x = x * 0.999
        n = n + 1
    return n
check(step(1.0)); check(step(2.0))
""",
        "PlainWarning",
        "it asks for more than 1000 numbers on its way",
    ),
    Trap(
        "an assignment to a tensor of whole numbers",
        """\
counts = mgjit.tensor.tensor([1, 2, 3])
@mgjit.compile
def step(x):
    counts[0] = counts[0] + 1
    return x * 2.0
for x in (1.0, 2.0, 3.0): check(step(x), counts.tolist())
""",
        "PlainWarning",
        "the step assigns to elements of a tensor of int64 that is no argument: kernels keep floats "
        "only. Keep x.astype('float64')",
    ),
    Trap(
        "a tensor that was computed outside with a graph",
        """\
t = mgjit.tensor.tensor([1.0, 2.0], requires_grad=True)
u = t * 2.0
@mgjit.compile
def step(x):
    loss = (u * x).sum()
    return float(loss.item())
for x in (1.0, 2.0, 3.0): check(step(x))
""",
        "TraceError",
        "a tensor that was computed outside of the step from tensors with requires_grad=True, which a "
        "backward pass in the step could not reach. Compute it inside, or use its detach().",
    ),
    Trap(
        "mgjit.tensor.take by indices that are computed",
        """\
table = mgjit.tensor.tensor([1.0, 2.0, 3.0])
@mgjit.compile
def step(xs):
    found = (xs * 2.0).astype("int64")
    return float(table[found].sum().item())
for x in ([0.0, 1.0], [0.5, 1.0]): check(step(mgjit.tensor.tensor(x)))
""",
        "TraceError",
        "take by indices that are computed in the step, whose range is not known. Pass them as an "
        "argument, or choose with mgjit.tensor.where or one_hot.",
    ),
    Trap(
        "round(x, 2)",
        """\
@mgjit.compile
def step(x):
    return round(x * w.data, 2)
for x in (1.0, 2.0, 3.0): check(step(x))
""",
        "TraceError",
        "round(x, digits) rounds decimal digits, which compiled steps do not. Round the number that the "
        "step returns, outside of it.",
    ),
    Trap(
        "% of a number that is an int or a float",
        """\
@mgjit.compile
def step(x):
    k = 3 if x > 1.0 else 2.5
    return 7.0 % k
for x in (1.0, 2.0, 0.5): check(step(x))
""",
        "TraceError",
        "// and % of a number that is an int or a float, depending on the numbers of the step, are not "
        "available. Write 0.0 instead of 0, so that it is a float in both cases.",
    ),
    Trap(
        "arithmetic on a whole array",
        """\
@mgjit.compile
def step(xs):
    import numpy as np
    return float(np.sum(xs * 2.0))
import numpy as np
for x in (1.0, 2.0, 0.5): check(step(np.array([x, 1.0])))
""",
        "PlainWarning",
        "it computes with a whole array, argument xs. mgjit compiles what is computed with single "
        "elements: [2 * x for x in row]; or pass a tensor, ...",
    ),
    Trap(
        "arithmetic with a whole array.array",
        """\
@mgjit.compile
def step(xs):
    return sum(xs + array.array("d", [1.0]))
for x in (1.0, 2.0, 0.5): check(step(array.array("d", [x, 1.0])))
""",
        "TraceError",
        "arithmetic on a whole array is not traced. Loop over its elements: [2 * x for x in row].",
    ),
    Trap(
        "breakpoint()",
        """\
import sys
sys.breakpointhook = lambda *a, **k: None
@mgjit.compile
def step(x):
    breakpoint()
    return w.data * x
for x in (1.0, 2.0, 0.5): check(step(x))
""",
        "PlainWarning",
        "it stops for a debugger",
    ),
    Trap(
        "print to a stream of one's own",
        """\
class Log:
    def __init__(self): self.lines = []
    def write(self, text): self.lines.append(text)
log = Log()
@mgjit.compile
def step(x):
    print("step", file=log)
    return w.data * x
for x in (1.0, 2.0, 0.5): check(step(x), log.lines)
""",
        "PlainWarning",
        "the step prints to a Log, which may do anything",
    ),
    Trap(
        "which of two lists, and its length changes",
        """\
a, b = [1.0, 2.0], [3.0, 4.0]
@mgjit.compile
def step(x):
    chosen = a if x > 1.0 else b
    chosen.append(x)
    return chosen[0]
for x in (1.0, 0.5, 3.0): check(step(x), a, b)
""",
        "TraceError",
        "which of two lists or dicts is meant depends on a traced number, and the step changes it, or "
        "one of the two. Read its numbers only, or write out new ones on both sides: `[*a] if ...",
    ),
    Trap(
        "an assertion about a Value",
        """\
@mgjit.compile
def step(x):
    y = w * x
    if y: return y.data
    return 0.0
for x in (1.0, 0.5, 3.0): check(step(x))
""",
        "TraceError",
        "`if y` asks for a number that is known only when the compiled step runs. Write a conditional "
        "expression (`a if test else b`, mgjit.where, max, min), which is computed both ways, ...",
    ),
    Trap(
        "the type of a number that may be an int",
        """\
@mgjit.compile
def step(x):
    k = 1 if x > 1.0 else 0.5
    return 2.0 if isinstance(k, int) else 3.0
for x in (1.0, 0.5, 3.0): check(step(x))
""",
        "PlainWarning",
        "it asks for the type of a number that is an int in some calls and a float in others",
    ),
    Trap(
        "an index that an earlier call has left, and that may be outside",
        """\
class M:
    def __init__(self): self.at = 0
m, table = M(), [1.0, 2.0, 3.0]
@mgjit.compile
def step(i, x):
    found = table[m.at] * x
    m.at = i
    return found
for i in (0, 1, 2): check(step(i, 1.0), m.at)
""",
        "TraceError",
        "the index is an int that an earlier call has left in M.at, and what this step assigns there is "
        "not known to be in range(3). Assign a number that is drawn from this range, or pass ...",
    ),
    Trap(
        "a traced number in an object of C",
        """\
fn = functools.lru_cache(None)(lambda: collections.deque())
@mgjit.compile
def step(x):
    fn().append(x * 2.0)
    return x
for x in (1.0, 0.5, 3.0): check(step(x), list(fn()))
""",
        "SideEffectWarning",
        "the step leaves a number in ...",
    ),
    Trap(
        "a number that is deleted",
        """\
class M:
    def __init__(self): self.a = 1.0
m = M()
@mgjit.compile
def step(x):
    m.a = m.a * x
    found = m.a
    del m.a
    return found
for x in (1.0, 0.5, 3.0):
    m.a = 2.0
    check(step(x))
""",
        "SideEffectWarning",
        "the step deletes M.a, where a number was",
    ),
    Trap(
        "a list of two names that becomes another list",
        """\
class M:
    def __init__(self): self.a = [1.0, 2.0]; self.b = self.a
m = M()
@mgjit.compile
def step(x):
    m.a = [v * x for v in m.a]
    return m.a[0] + m.b[0]
for x in (1.0, 0.5, 3.0): check(step(x), m.a, m.b)
""",
        "PlainWarning",
        "M.a becomes another list, and the old one has other names",
    ),
    Trap(
        "a list that is changed and then becomes another one",
        """\
class M:
    def __init__(self): self.a = [1.0, 2.0]
m = M()
@mgjit.compile
def step(x):
    m.a[0] = x
    m.a = [v * x for v in m.a]
    return m.a[0]
for x in (1.0, 0.5, 3.0): check(step(x), m.a)
""",
        "PlainWarning",
        "M.a becomes another list after the step has changed the old one",
    ),
    Trap(
        "a part of a tensor that is left in an attribute",
        """\
class M:
    def __init__(self): self.last = None
m = M(); t = mgjit.tensor.tensor([1.0, 2.0])
@mgjit.compile
def step(x):
    m.last = t[1:]
    return float((t * x).sum().item())
for x in (1.0, 0.5, 3.0): check(step(x), m.last.tolist())
""",
        "LeakError",
        "the step leaves a tensor in M.last that a compiled call cannot make anew: a part of one from "
        "outside, or one of the call before. Keep x.copy(); or assign to the elements of a tensor ...",
    ),
    Trap(
        "a length that the step changes",
        """\
class M:
    def __init__(self): self.n = 1
m = M()
@mgjit.compile
def step(x):
    m.n = m.n + 1
    return sum([x] * m.n)
for x in (1.0, 0.5, 3.0): check(step(x), m.n)
""",
        "TraceError",
        "M.n is used as a length, an index or a key, and the step also changes it, so that each call "
        "would be another step. Count outside of the step, and pass the number as an argument; ...",
    ),
    Trap(
        "a list of two names, which the step returns and replaces",
        """\
class M:
    def __init__(self): self.a = [1.0, 2.0]
m = M()
@mgjit.compile
def step(x):
    before = m.a
    m.a = [v * x for v in before]
    return before
for x in (1.0, 0.5, 3.0): check(step(x), m.a)
""",
        "PlainWarning",
        "the step returns the list that was M.a, and puts another one there",
    ),
    Trap(
        "whether an argument is a list that takes turns",
        """\
class M:
    def __init__(self): self.a = [1.0, 2.0]
m = M()
@mgjit.compile
def step(xs, x):
    same = xs is m.a
    m.a = [v * x for v in m.a]
    return 1.0 if same else 2.0
for x in (1.0, 0.5, 3.0): check(step([1.0, 2.0], x), m.a)
""",
        "PlainWarning",
        "the step asks which list is M.a, where lists take turns",
    ),
    Trap(
        "a step that gets a dataset of ever new constants",
        """\
class Row:
    def __init__(self, k): self.k = k; self.name = str(k)
@mgjit.compile
def step(row, x):
    return x * len(row.name) * w.data
for k in range(40): check(step(Row(k), 0.1 * k))
""",
        "PlainWarning",
        "nearly each call would be another trace, since row was ...",
    ),
    Trap(
        "a deque of numbers that the step returns",
        """\
@mgjit.compile
def step(x):
    return collections.UserList([x, 2.0 * x])
for x in (1.0, 2.0, 3.0): check(list(step(x)))
""",
        "PlainWarning",
        "the step returns a UserList with traced values inside",
    ),
    Trap(
        "a new lock that the step returns",
        """\
@mgjit.compile
def step(x):
    return x * 2.0, types.SimpleNamespace()
for x in (1.0, 2.0, 3.0): check(step(x)[0])
""",
        "PlainWarning",
        "the step makes the SimpleNamespace that it returns",
    ),
    Trap(
        "an index in a list of ints that is out of range",
        """\
state, table = [0, 1.0], [1.0, 2.0, 3.0]
@mgjit.compile
def step(x):
    found = table[state[0]] * x
    state[0] = (state[0] + 1) % 3
    return found
for x in (1.0, 2.0, 3.0): check(step(x), state)
state[0] = -1
check(step(1.0), state)
""",
        "IndexRangeError",
        "the index is -1, in the variable state, and the table has 3 elements.",
    ),
    Trap(
        "an error that carries a traced number to its handler",
        """\
class Stop(Exception): pass
def inner(x):
    raise Stop(x * 2.0)
@mgjit.compile
def step(x):
    return inner(x)
for x in (1.0, 0.5, 3.0):
    try: step(x)
    except Stop as error: check(error.args[0])
""",
        "PlainWarning",
        "the step raises Stop with numbers that it has computed",
    ),
    Trap(
        "a label that says to look for no label",
        """\
from mgjit import tensor
@mgjit.compile
def step(xs, labels):
    return float(nn.functional.cross_entropy(xs, labels).item())
a = tensor.tensor([[1.0, 2.0], [0.5, 0.1]])
for labels in ([0, 1], [1, 1], [0, -100]):
    try: check(step(a, tensor.tensor(labels)))
    except Exception as e: check(type(e).__name__)
""",
        "PlainWarning",
        "there is a label -100, which a step looks for if it is told to: write ignore_index=-100",
    ),
    Trap(
        "lists of different lengths by a traced index (with lock=False)",
        """\
rows = [[1.0, 2.0], [3.0]]
@mgjit.compile(lock=False)
def step(i, x):
    return sum(rows[i]) * x
for i in (0, 1, 0): check(step(i, 2.0))
""",
        "TraceError",
        "which of 2 objects is meant depends on a traced number, and they are not alike (list; their "
        "lengths may differ). Look up numbers, parameters, or lists of them with equal lengths.",
    ),
    Trap(
        "a look-up among nodes whose graph is kept in an unknown way (with lock=False)",
        """\
class Odd:
    def __init__(self, data, how=None): self.data, self.grad, self.how = data, 0.0, how
    def __mul__(self, x):
        def how(g): self.grad += x * g
        return Odd(self.data * x, {"a": how})
    def backward(self):
        self.how["a"](1.0)
ws = [Odd(0.5), Odd(-0.25)]
@mgjit.compile(lock=False)
def step(i, x):
    made = [n * x for n in ws]
    chosen = made[i]
    chosen.backward()
    return chosen.data
for i in (0, 1, 0): check(step(i, 2.0), [n.grad for n in ws])
""",
        "TraceError",
        "which Odd is meant depends on a traced number, and Odd does not keep its graph in a way that "
        "is known (operands and local derivatives in tuples), so its backward() could not be ...",
    ),
    Trap(
        "an index that is an int of a known range and may be outside (with lock=False)",
        """\
import random
table = [1.0, 2.0, 3.0]
@mgjit.compile(lock=False)
def step(x):
    i = random.randrange(3)
    return table[i - 1] * x if i > 0 else table[i + 1]
random.seed(1)
for x in (1.0, 2.0, 3.0): check(step(x))
""",
        "TraceError",
        "the index is an int from -1 to 1, and the table has 3 elements. Draw or compute it in "
        "range(3), so that every int that it can be is an index.",
    ),
    Trap(
        "a function without source that gets a function (with lock=False)",
        """\
made = {}
exec("def apply(f, x):\\n    for k in range(2):\\n        x = f(x)\\n    return x if x > 0 else -x", made)
@mgjit.compile(lock=False)
def step(x):
    return made["apply"](lambda y: y * 2.0, x)
for x in (1.0, 0.5, -3.0): check(step(x))
""",
        "TraceError",
        "a traced value has no truth value: its number is known only when the compiled step runs. Write "
        "a conditional expression (`a if test else b`), mgjit.where(test, a, b), max or min. ...",
    ),
    Trap(
        "which of two objects of C (with lock=False)",
        """\
a, b = re_a, re_b = collections.deque([1.0]), {1.0}
@mgjit.compile(lock=False)
def step(x):
    chosen = a if x > 1.0 else b
    return len(chosen) * x
for x in (1.0, 0.5, 3.0): check(step(x))
""",
        "TraceError",
        "which of two objects is meant (deque, set) depends on a traced number. Only numbers, Values, "
        "and lists of them can be selected; compute both, and select the numbers.",
    ),
    Trap(
        "which Value is the greatest (with lock=False)",
        """\
ws = [Value(1.0), Value(2.0)]
@mgjit.compile(lock=False)
def step(x):
    found = sorted([v * x for v in ws], key=lambda v: v.data)
    return found[0].data
for x in (1.0, 0.5, -3.0): check(step(x))
""",
        "TraceError",
        "sorted() asks which of several traced numbers is greater, and all else in the step may depend "
        "on that. Return the numbers, and choose or sort outside of the step; the greatest and ...",
    ),
    Trap(
        "a recursion that a traced number ends (with lock=False)",
        """\
def halved(x):
    return halved(x / 2.0) if x > 1.0 else x
@mgjit.compile(lock=False)
def step(x):
    return w.data * halved(x)
for x in (1.0, 0.5, 3.0, 9.0): check(step(x))
""",
        "TraceError",
        "both sides of a condition on a traced number are computed, and a function calls itself there "
        "without end. Let an int argument of the step decide when it ends, or write a loop.",
    ),
    Trap(
        "x += list in a side (with lock=False)",
        """\
@mgjit.compile(lock=False)
def step(x):
    seen = [1.0]
    if x > 1.0:
        seen += [x]
    return sum(seen)
for x in (1.0, 0.5, 3.0): check(step(x))
""",
        "TraceError",
        "both sides of an `if` on a traced number are computed, and one changes a list in place. Write "
        "y = y + ... instead of y += ....",
    ),
    Trap(
        "a side that assigns a property (with lock=False)",
        """\
class Model:
    def __init__(self): self._rate, self.calls = 1.0, 0
    @property
    def rate(self): return self._rate
    @rate.setter
    def rate(self, r): self._rate = r
m = Model()
@mgjit.compile(lock=False)
def step(x):
    if x > 1.0:
        m.rate = m.rate * 0.5
    return m.rate * x
for x in (1.0, 0.5, 3.0): check(step(x), m.rate)
""",
        "PlainWarning",
        "a side of a condition on a traced number assigns Model.rate, which runs a function",
    ),
    Trap(
        "a side that raises (with lock=False)",
        """\
def checked(x):
    if x is None: raise ValueError
    return math.sqrt(x)
@mgjit.compile(lock=False)
def step(x):
    return math.sqrt(x) if x > 0.0 else math.factorial(-1 if False else 3) * int("x") if x < -100 else 0.0
for x in (1.0, 0.5, 3.0): check(step(x))
""",
        "TraceError",
        "both sides of a condition on a traced number are computed, and one raises ValueError, which "
        "Python sees only if it takes that side. Let both sides be fit for all numbers.",
    ),
    Trap(
        "a step that loads a module that nobody has loaded",
        """\
import sys
@mgjit.compile
def step(x):
    import this_is_new
    return this_is_new.K * x
import pathlib, os
for x in (1.0, 1.5, 3.0):
    sys.modules.pop("this_is_new", None)
    pathlib.Path(os.path.dirname(__file__), "this_is_new.py").write_text("K = 2.0")
    sys.path.insert(0, os.path.dirname(__file__))
    check(step(x))
    del sys.path[0]
""",
        "SideEffectWarning",
        "the step loads the module this_is_new",
    ),
    Trap(
        "a captured text that the step changes",
        """\
state = {"phase": "warm", "w": 1.0}
@mgjit.compile
def step(x):
    state["phase"] = "hot" if state["phase"] == "warm" else "warm"
    return state["w"] * x
for x in (1.0, 1.5, 3.0, 2.0): check(step(x), state)
""",
        "SideEffectWarning",
        "the step changes the variable state['phase'] besides numbers that were there before",
    ),
    Trap(
        "a row of a table of the step's own",
        """\
@mgjit.compile
def step(i, x):
    table = [[x, 1.0], [2.0, x]]
    return table[i]
for i in (0, 1, 0): check(step(i, 2.0))
""",
        "PlainWarning",
        "the step returns a row that an index chooses from a table of its own. Write list(row)",
    ),
    Trap(
        "which object an index chooses",
        """\
rows = [[1.0, 2.0], [3.0, 4.0]]
@mgjit.compile(lock=False)
def step(i, x):
    return (1.0 if rows[i] is rows[0] else 2.0) * x
for i in (0, 1, 0): check(step(i, 2.0))
""",
        "TraceError",
        "a traced index chooses an element of a table, and the step asks which object that is. Compare the indices.",
    ),
]
