"""Frozen steps: the forward part of a step, with its parameters as they were when it was frozen."""
