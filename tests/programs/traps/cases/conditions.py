"""Conditions on traced numbers."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

CASES = [
    Trap(
        "`a < b < c` with anything in the middle",
        """\
def mid(x): return x * 1.0
@mgjit.compile
def step(x, y):
    a = 1.0 if 0 < mid(x) < y else 2.0
    b = 0 < x + 1 <= y * 2 < 10
    c = 0 < y < 5
    return a, b, c, (x if -1 < x * y < 1 else y)
for x, y in ((0.5, 2.0), (3.0, 2.0), (-1.0, 2.0), (2.0, 2.0), (0.1, 0.2)): check(step(x, y))
""",
    ),
    Trap(
        "a choice between two nodes of one's own class",
        """\
ws = [Node(0.5), Node(-0.25), Node(2.0)]
@mgjit.compile
def step(x):
    a = ws[0] * x + ws[1]
    b = ws[1] * x * x
    c = a if a.data > b.data else b
    d = ws[0] if x > 1 else ws[2]
    loss = c * c + d * a
    for w in ws: w.grad = 0.0
    loss.backward()
    for w in ws: w.data -= 0.01 * w.grad
    return loss.data
for x in (0.5, 3.0, -2.0, 1.0, 1.5, -0.1): check(step(x), [(p.data, p.grad) for p in ws])
""",
    ),
    Trap(
        "the same in a class with closures",
        """\
class M:
    def __init__(self, data, prev=()):
        self.data, self.grad, self._prev, self._backward = data, 0.0, prev, lambda: None
    def __add__(self, o):
        out = M(self.data + o.data, (self, o))
        def back():
            self.grad += out.grad; o.grad += out.grad
        out._backward = back
        return out
    def __mul__(self, o):
        out = M(self.data * o.data, (self, o))
        def back():
            self.grad += o.data * out.grad; o.grad += self.data * out.grad
        out._backward = back
        return out
    def backward(self):
        topo, seen = [], set()
        def build(v):
            if v not in seen:
                seen.add(v)
                for c in v._prev: build(c)
                topo.append(v)
        build(self)
        self.grad = 1.0
        for v in reversed(topo): v._backward()
ws = [M(0.5), M(-0.25), M(2.0)]
@mgjit.compile
def step(x):
    a = ws[0] * M(x) + ws[1]
    b = ws[1] * M(x * x)
    c = a if a.data > b.data else b
    loss = c * c + a
    for w in ws: w.grad = 0.0
    loss.backward()
    for w in ws: w.data -= 0.01 * w.grad
    return loss.data
for x in (0.5, 3.0, -2.0, 1.0, 1.5, -0.1): check(step(x), [(p.data, p.grad) for p in ws])
""",
    ),
    Trap(
        "`if`, `elif` and `else` that assign names or return",
        """\
def clip(g):
    if g > 1.0:
        return 1.0
    elif g < -1.0:
        return -1.0
    return g
def huber(r):
    a = abs(r)
    if a <= 1.0:
        return 0.5 * r * r
    b = a - 0.5
    return b
def sgn(x):
    if x > 0: s = 1
    elif x < 0: s = -1
    else: s = 0
    return s
@mgjit.compile
def step(x):
    if x > 0.5:
        y = x * 2
        z = 1.0
    else:
        y = -x
        z = 2.0
    if y > 3: y += 1.0
    t = 0.0
    if x < 0:
        for k in range(3): t = t + y * k
    return y, z, clip(x), huber(x), sgn(x), t
for x in (0.7, -0.3, 2.0, -5.0, 0.0, -0.0, 1.0, -1.0): check(step(x))
""",
    ),
    Trap(
        "`if` that returns one of two nodes",
        """\
ws = [Node(0.5), Node(-0.25)]
def relu(n):
    if n.data > 0:
        return n
    return n * 0.0
@mgjit.compile
def step(x):
    loss = relu(ws[0] * x + ws[1]) * relu(ws[1] * x)
    loss = loss + ws[0]
    for w in ws: w.grad = 0.0
    loss.backward()
    for w in ws: w.data -= 0.01 * w.grad
    return loss.data
for x in (0.5, 3.0, -2.0, 1.0, 1.5, -0.1): check(step(x), [(p.data, p.grad) for p in ws])
""",
        "PlainWarning",
        "step runs as plain Python: two traced indices or tests choose among the same nodes of a graph, ...",
    ),
    Trap(
        "the same with tests that are known",
        """\
def f(x, mode=None, k=3):
    if mode is None: return x
    if mode == "a":
        x = x + 1
    if k > 2:
        if k > 5: return x
        y = x * k
    else:
        y = 0.0
    return y
@mgjit.compile
def step(x): return f(x), f(x, "a"), f(x, "b", 7), f(x, "b", 1)
for x in (0.7, -0.3): check(step(x))
""",
    ),
    Trap(
        "a recursion that an int argument ends",
        """\
def power(x, n): return x * power(x, n - 1) if n > 0 else 1.0
def fact(n):
    if n <= 1: return 1
    return n * fact(n - 1)
@mgjit.compile
def step(x, n): return power(x, n), fact(n)
for x, n in ((0.5, 3), (2.0, 5), (0.5, 3)): check(step(x, n))
""",
    ),
    Trap(
        "`if` that assigns one of two Values",
        """\
@mgjit.compile
def step(x):
    if w.data * x > 1.0:
        loss = w * x
    else:
        loss = w * w
    w.grad = 0.0
    loss.backward()
    w.data -= 0.1 * w.grad
    return loss
for x in (0.7, -0.3, 2.0, 3.0): check(step(x), w.data, w.grad)
""",
    ),
    Trap(
        "numbers that only `__init__` assigns decide",
        """\
class L:
    def __init__(self, n, dropout): self.n, self.dropout, self.calls = n, dropout, 0
    def __call__(self, xs):
        assert len(xs) == self.n
        self.calls += 1
        if self.dropout > 0: xs = [x * (1 - self.dropout) for x in xs]
        return sum(x * t for x, t in zip(xs, mgjit.one_hot(1, self.n)))
net = L(3, 0.5)
@mgjit.compile
def step(xs): return net(xs)
for k in range(3): check(step([1.0, 2.0 + k, 3.0]), net.calls)
net.dropout = 0.0
for k in range(3): check(step([1.0, 2.0 + k, 3.0]), net.calls)
""",
    ),
    Trap(
        "ids of nodes in a list",
        """\
class V(Node):
    count = 0
    def __init__(self, data, children=(), grads=()):
        super().__init__(data, children, grads)
        V.count += 1
        self.id = V.count
    def __add__(self, o): return V(self.data + o.data, (self, o), (1.0, 1.0))
    def __mul__(self, o): return V(self.data * o.data, (self, o), (o.data, self.data))
    def backward(self):
        order, visited = [], []
        def visit(n):
            if n.id in visited: return
            visited.append(n.id)
            for c in n._children: visit(c)
            order.append(n)
        visit(self)
        self.grad = 1.0
        for n in reversed(order):
            for c, g in zip(n._children, n._grads): c.grad += g * n.grad
ws = [V(0.1 * i) for i in range(3)]
@mgjit.compile
def step(x):
    loss = ws[0] * V(x) + ws[1] * ws[2]
    for w in ws: w.grad = 0.0
    loss.backward()
    for w in ws: w.data -= 0.1 * w.grad
    return loss.data
for x in (0.7, -0.3, 2.0, 3.0): check(step(x), [(p.data, p.grad) for p in ws], V.count)
""",
    ),
    Trap(
        "`if` with other effects than assigning numbers",
        """\
log = []
@mgjit.compile
def step(x):
    if x > 0:
        log.append(1)
    return x
check(step(1.0))
""",
    ),
    Trap(
        "an argmax",
        """\
@mgjit.compile
def step(xs):
    return max(range(3), key=lambda i: xs[i])
check(step([1.0, 3.0, 2.0]))
""",
    ),
    Trap(
        "a recursion that a float ends",
        """\
def halves(x):
    return 1.0 if x < 1.0 else halves(x / 2.0) + 1.0
@mgjit.compile
def step(x):
    return halves(x)
check(step(5.0))
""",
    ),
    Trap(
        "any and all of comparisons of traced numbers",
        """\
@mgjit.compile
def step(xs, t):
    few = any(x > t for x in xs), all([x > t for x in xs]), any([]), all([]), any([0.0, xs[0]]), all([1, xs[1]])
    return few, 1.0 if any(x < 0 for x in xs) else 2.0, any([1, xs[0] > 9]), all([0, xs[0] > 9]), not all(xs)
for i in range(7): check(step([0.1 * i - 0.3, -0.2, 0.3 - 0.1 * i], 0.0))
check(step([math.nan, 0.0, -0.0], 0.0))
""",
    ),
    Trap(
        "an update that is left out where a gradient is not finite",
        """\
ps = [Node(0.2 * i + 0.1) for i in range(4)]
@mgjit.compile
def step(x):
    loss = sum((p * p * x for p in ps), Node(0.0))
    for p in ps: p.grad = 0.0
    loss.backward()
    ok = all(math.isfinite(p.grad) for p in ps) and math.isfinite(loss.data)
    for p in ps: p.data -= 0.05 * p.grad if ok else 0.0
    return loss.data, ok
for x in (1.0, 2.0, math.inf, -1.0, math.nan, 3.0): check(step(x), [(p.data, p.grad) for p in ps])
""",
    ),
    Trap(
        "a handler of ZeroDivisionError around a division",
        """\
@mgjit.compile
def step(a, b):
    try:
        return a / b
    except ZeroDivisionError:
        return 0.0
for b in (2.0, 4.0, 0.0, 1.0): check(step(1.0, b))
""",
    ),
    Trap(
        "a handler of ValueError around math.log",
        """\
ps = [Node(0.5)]
@mgjit.compile
def step(x):
    try: l = math.log(x)
    except ValueError: l = -100.0
    ps[0].data -= 0.1 * l
    return l
for x in (1.0, 2.0, 0.0, -1.0, 3.0): check(step(x), ps[0].data)
""",
    ),
    Trap(
        "contextlib.suppress around a division",
        """\
import contextlib
@mgjit.compile
def step(a, b):
    r = -1.0
    with contextlib.suppress(ZeroDivisionError): r = a / b
    return r
for b in (2.0, 4.0, 0.0, 1.0): check(step(1.0, b))
""",
    ),
    Trap(
        "a handler of IndexError around a look-up",
        """\
t = [0.1, 0.2, 0.3]
@mgjit.compile
def step(i, x):
    try: v = t[i]
    except IndexError: v = 0.0
    return v * x
for i in (0, 1, 2, 1, 5, 0): check(step(i, 2.0))
""",
        "PlainWarning",
        "step runs as plain Python: ...",
    ),
    Trap(
        "a handler that raises another error",
        """\
@mgjit.compile
def step(a, b):
    try:
        return a / b
    except ZeroDivisionError as error:
        raise RuntimeError("b is zero") from error
for b in (2.0, 4.0, 0.5, 1.0): check(step(1.0, b))
""",
    ),
    Trap(
        "`except Exception` around an f-string of a traced number",
        """\
log = []
@mgjit.compile
def step(x):
    try: log.append(f"{x:.3f}")
    except Exception: log.append("?")
    return x * 2
for i in range(4): check(step(0.1 * i), list(log))
""",
        "PlainWarning",
        "step runs as plain Python: ...",
    ),
    Trap(
        "a bare except around a number that shapes the step",
        """\
d = {0: 1.5, 1: 2.5}
@mgjit.compile
def step(x, i):
    try: s = sum([x] * i) * d[i % 2]
    except: s = -1.0
    return s
for i in (1, 2, 3, 1): check(step(0.5, i))
""",
    ),
    Trap(
        "a number and an element of numpy arrays at ints that are arguments",
        """\
import numpy as np
a, b = np.array([0.5, 1.5, 2.5]), np.arange(12.0).reshape(4, 3)
@mgjit.compile
def step(i, j, x):
    return float(a[i]) * x, float(b[i, j]) + x, sum(float(v) * x for v in b[j])
for i, j in ((0, 1), (2, 2), (0, 1), (1, -1)): check(step(i, j, 0.5)); a[i] += 1
""",
    ),
    Trap(
        "a shuffle of a list of samples from outside",
        """\
import random
random.seed(2)
samples = [([0.1 * i, 0.2], 1.0 * i) for i in range(4)]
ws = [Node(0.1), Node(0.2)]
@mgjit.compile
def step(lr):
    random.shuffle(samples)
    for x, y in samples:
        error = ws[0] * x[0] + ws[1] * x[1] + (-y)
        for p in ws: p.grad = 0.0
        (error * error).backward()
        for p in ws: p.data -= lr * p.grad
for i in range(4): check(step(0.1), [(p.data, p.grad) for p in ws], samples)
""",
        "PlainWarning",
        "step runs as plain Python: ...",
    ),
    Trap(
        "a handler of ZeroDivisionError inside of backward()",
        """\
class Q:
    def __init__(s,v,c=(),op=None): s.v=v;s.g=0.0;s.c=c;s.op=op
    def __mul__(s,o): return Q(s.v*o.v,(s,o),"m")
    def __add__(s,o): return Q(s.v+o.v,(s,o),"a")
    def sqrt(s): return Q(math.sqrt(s.v),(s,),"s")
    def backward(s):
        t=[];seen=set()
        def go(n):
            if id(n) in seen: return
            seen.add(id(n)); [go(c) for c in n.c]; t.append(n)
        go(s); s.g=1.0
        for n in reversed(t):
            if n.op=="m": a,b=n.c; a.g+=b.v*n.g; b.g+=a.v*n.g
            elif n.op=="a":
                for c in n.c: c.g+=n.g
            elif n.op=="s":
                try: n.c[0].g+=n.g/(2*n.v)
                except ZeroDivisionError: n.c[0].g+=0.0
ps=[Q(.5),Q(1.5)]
@mgjit.compile
def step(x):
    l=(ps[0]*ps[0]*Q(x)).sqrt()+ps[1]*Q(x)
    for p in ps: p.g=0.0
    l.backward()
    for p in ps: p.v-=.01*p.g
    return l.v
for x in (1.0,2.0,3.0,0.0,1.0): check(step(x),[(p.v,p.g) for p in ps])
""",
    ),
]
