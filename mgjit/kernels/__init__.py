"""The kernels of a step: which one fits a call, and when one is made, of which code."""
