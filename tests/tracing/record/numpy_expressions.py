"""Expressions of numpy's functions and numbers in a step, by what becomes of them.

Each is a function of x, y (floats), n (an int), a (numpy.float64), v (a numpy array of float64), xs (a list of
floats), us (a list of numpy.float64), w (a list of floats that the step may change) and s (an object with the float
`f`, the float64 `g` and the int `i`).
"""

from __future__ import annotations

#: These are compiled.
COMPILED = """
np.sqrt(x * x)
np.sqrt(abs(y)) + 1
1.0 / (1.0 + np.sqrt(y * y))
np.sqrt(n * n)
np.add(x, y)
np.subtract(x, y)
np.multiply(x, 2.0)
np.multiply(3, y)
np.divide(x, 4)
np.divide(n, 4)
np.true_divide(x, 3.0)
np.add(x, n)
np.negative(x)
np.positive(y)
np.absolute(y)
np.abs(x - y)
np.fabs(y)
np.square(x)
np.square(x - y) * 0.5
np.reciprocal(x)
np.floor(x * 3)
np.ceil(x * 3)
np.trunc(y * 5)
np.rint(y * 5)
np.sign(y)
np.sign(x - x)
np.sign(-(x - x))
np.maximum(x, y)
np.minimum(x, y)
np.maximum(0, y)
np.maximum(0.0, y) * 2
np.maximum(y, 0)
np.maximum(-0.0, x - x)
np.maximum(x - x, -0.0)
np.minimum(x - x, -0.0)
np.minimum(-0.0, x - x)
np.fmax(x, y)
np.fmin(x, y)
np.fmax(-0.0, x - x)
np.fmin(x - x, -0.0)
np.maximum(x, np.inf - np.inf)
np.fmax(x, np.inf - np.inf)
np.fmin(np.nan, y)
np.clip(y, 0, 1)
np.clip(y, -1.0, 1.0)
np.clip(x, 0.5, None)
np.clip(x, None, 0.5)
np.clip(x - x, -0.0, 1.0)
np.clip(-(x - x), 0.0, 1.0)
np.clip(x, np.float64(0.25), y)
np.clip(a, -1, 1)
np.isnan(x)
np.isfinite(x)
np.isinf(y)
np.isnan(x * np.inf - x * np.inf)
np.less(x, y)
np.less_equal(x, x)
np.greater(x, y)
np.greater_equal(x, y)
np.equal(x, x)
np.not_equal(x, y)
1.0 if np.isnan(x) else 2.0
x if np.less(x, y) else y
np.sqrt(x * x) if np.isfinite(y) else np.sqrt(y * y)
np.float64(2.0) * x
x * np.float64(2.0)
np.float64(2.0) + x
x - np.float64(0.1)
np.float64(0.1) - x
np.float64(0.3) / x
x / np.float64(0.3)
x ** np.float64(2.0)
x * np.int64(3)
np.int64(3) * x
np.float64(1.5) < x
x >= np.float64(0.5)
a
a + 1
a + x
x + a
a - x
x - a
a * n
n * a
a / 3
3 / a
a * a
-a
+a
abs(a)
a ** 2
a ** 3.0
2.0 ** a
abs(a) ** 0.5
a < x
x < a
a == a
a != x
a >= 0
a if a > 0 else -a
x if a > x else y
not a > 0
1.0 if a > 0 and x > 0 else 2.0
1.0 if a > 0 or not x > 0 else 2.0
any([a > 0, x > 0])
np.tanh(s.f) * x
x - np.tanh(s.g)
(a > 0) * x
x * (a > 0)
(a > x) * a
float(a)
float(a) * x
float(np.sqrt(x * x))
int(a * 10)
round(a)
round(np.float64(0.5) + x)
a.item() + x
math.exp(a)
math.sqrt(a * a)
math.tanh(a) + 1
math.floor(a)
math.isnan(a)
math.log(abs(a) + 1)
math.radians(a)
math.degrees(a)
math.isclose(a, x)
math.fabs(a)
math.pow(abs(a), x)
math.atan2(a, x)
math.prod([a, x])
max(a, a + 1)
min(a, a * 2)
max(x, y) + a
sum([a, x, y])
sum([x, y, a])
sum([x, y, x * y])
sum([a, a])
sum(us)
sum(xs) + a
sum(u * t for u, t in zip(us, xs))
sum(u * u for u in us)
us[0]
us[0] + us[1]
us[0] * xs[0]
[u * 2 for u in us]
xs[0] + xs[1]
v[0]
v[0] * x
x - v[1]
v[0] + v[1] * v[2]
v[2] ** 2
v[0] > v[1]
v[-1]
sum(v)
sum(t * t for t in v)
sum(t * u for t, u in zip(xs, v))
sum([t * u for t, u in zip(v, us)])
[t + 1 for t in v]
max(v)
min(v[0], v[1])
(v[0], x, n)
{'loss': v[0] * 2, 'x': x}
np.sqrt(v[0] * v[0])
np.maximum(v[0], 0.0)
np.square(v[1])
v.shape[0] * x
len(v) * a
v[n % 3]
s.f * x
s.g * x
s.g
s.g + s.f
s.i * s.g
np.sqrt(s.f * s.f)
np.maximum(s.g, 0.0)
np.sqrt(w[0] * w[0]) + w[1]
w[0] + a
set_float64(s, s.g + x)
set_float64(s, np.sqrt(s.g * s.g))
set_float64(s, v[0] * 0.1)
set_float(s, s.f + x)
set_float(s, float(a))
set_float(s, float(np.square(s.f)))
set_us(us, us[0] - 0.1 * x)
np.float64(0.5) * s.f
np.subtract(s.g, 1)
np.add(1, s.f)
np.sqrt(abs(math.sin(x)))
math.sin(np.sqrt(x * x))
math.exp(-np.square(x))
1.0 / (1.0 + math.exp(-a))
np.rint(a * 10) / 10
np.floor(a) + np.ceil(x)
[np.sqrt(t * t) for t in xs]
sum(np.square(t) for t in xs)
sum([np.square(t) for t in xs]) / len(xs)
math.sqrt(sum(t * t for t in v))
np.sqrt(sum(t * t for t in v))
np.sqrt(sum(t * t for t in xs))
"""

#: These run as plain Python.
PLAIN = """
np.tanh(x)
np.exp(x)
np.exp(-x)
1 / (1 + np.exp(-x))
np.log(abs(x) + 1)
np.log1p(x * x)
np.expm1(x)
np.log2(abs(x) + 1)
np.log10(abs(x) + 1)
np.sin(x)
np.cos(x)
np.tan(x)
np.arctan(x)
np.arctan2(x, y)
np.arcsin(x / 10)
np.sinh(x)
np.cosh(x)
np.power(x, 2)
np.power(2.0, x)
np.float_power(x, 2)
np.float64(2.0) ** x
np.cbrt(x)
np.hypot(x, y)
np.exp2(x)
np.logaddexp(x, y)
np.deg2rad(x)
np.remainder(x, 0.7)
np.fmod(x, 0.7)
np.floor_divide(x, 0.7)
np.divmod(x, 0.7)
a // 0.7
a % 0.7
divmod(a, 0.7)
x // a
x % a
round(a, 2)
np.round(x, 2)
np.add(n, n)
np.square(n)
np.maximum(n, 0)
np.negative(n)
n * np.int64(3)
n + np.int64(3)
np.sqrt(x > 0)
x * np.float32(0.1)
np.float32(0.1) * x
x + np.float16(0.1)
np.sqrt(x * x * np.float32(2))
np.array([x, y]).sum()
np.array([x, y])
np.asarray(x)
np.array(x) + 1
np.sum([x, y])
np.sum(xs)
np.mean(xs)
np.mean([x, y, a])
np.std(xs)
np.dot(xs, xs)
np.dot([x, y], [1.0, 2.0])
np.max(xs)
np.min([x, y])
np.argmax([x, y])
np.prod(xs)
np.cumsum(xs)
np.linalg.norm([x, y])
np.where(x > 0, x, 0.0)
np.clip(xs, 0, 1)
np.clip(x, 0, 1, out=None)
np.exp(xs)
np.exp(np.array(xs) - np.max(xs))
np.sqrt(xs)
np.float64(x)
np.float64(x) * 2
np.float32(x)
np.full(2, x)
np.ones(2) * x
x * np.ones(2)
np.ones(2) + x
np.arange(3.0) - a
np.linspace(0, x, 3)
np.zeros(2) < x
v + x
v * v
v.sum()
v.mean()
v @ v
np.dot(v, v)
np.sum(v)
np.mean(v)
np.tanh(v)
np.sqrt(v * v)
np.maximum(v, 0)
np.tanh(v[0])
a > 0 and x > 0
a > 0 or x > 0
x + np.float64(n)
np.exp(us[0])
np.nan_to_num(x)
np.isclose(x, y)
np.allclose([x], [y])
np.real(x)
np.round(a)
np.heaviside(x, 0.5)
np.interp(x, [0, 1], [0, 1])
np.polyval([1.0, 2.0], x)
np.logical_not(x > 0)
np.logical_and(x > 0, y > 0)
np.add.reduce([x, y])
np.multiply.outer(x, y)
np.sqrt(x * x, dtype='float32')
np.sqrt(x * x, out=np.zeros(()))
a.dtype.kind
a.sum()
a.round(2)
a.astype(float)
np.vectorize(abs)(x)
fill(np.zeros(2), x)
put(np.zeros(2), x)
put(np.zeros(2), a)
(a > 0) + 1
(a > 0) + (x > 0)
~(a > 0)
(a > 0) & (x > 0)
sum([a > 0, x > 0])
max(a, x)
max(a, 0.0)
a if a > 0 else 0.0
a if x > 0 else x
np.sqrt(x * x) if y > 0 else 0.0
max(0, a)
int(np.int64(3)) * n + np.tanh(x)
np.trapezoid([x, y]) if hasattr(np, 'trapezoid') else np.trapz([x, y])
np.median(xs)
np.sort(xs)
np.diff(xs)
np.outer(xs, xs)
np.einsum('i->', xs)
np.stack([xs, xs])
np.copysign(x, y)
np.ldexp(x, 2)
np.emath.sqrt(x)
np.angle(x)
np.asarray([a, x]).tolist()
np.append(np.zeros(1), x)
np.concatenate([[x], [y]])
set_float(s, s.f + np.tanh(x))
"""


def lines(text: str) -> list[str]:
    """The expressions of a table."""
    return [line for line in text.splitlines() if line]
