"""The model."""

from engine import MLP

model = MLP([2, 8, 1], 61)
