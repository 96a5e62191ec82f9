"""A polynomial by Horner's rule, and its derivative, without any class."""


def polynomial(coefficients, x):
    value, derivative = 0.0, 0.0
    for c in coefficients:
        derivative = derivative * x + value
        value = value * x + c
    return value, derivative


def make():
    calls = [([k * 0.5, -1.0, 0.25, -0.0, 3.0] + [0.1 * j for j in range(300)], 0.9 - k / 7) for k in range(5)]
    return polynomial, calls, lambda: None
