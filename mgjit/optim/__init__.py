"""Optimisers, schedules of learning rates, and the clipping of gradients, under the names that PyTorch has for them.

All of it is ordinary code over tensors and numbers, written as a user would write it: a trace records it like the rest
of the step, with which it is compiled, and outside of a step it runs as it stands.
"""

from typing import Any

from ..tensor.spellings import missing
from . import lr_scheduler
from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, RMSprop
from .clip import clip_grad_norm_, clip_grad_value_
from .group import Group
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Group",
    "Optimizer",
    "RMSprop",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr_scheduler",
]


def __getattr__(name: str) -> Any:
    raise missing(__name__, globals(), name)
