"""PyTorch's place for what limits gradients (optim/clip.py)."""

from typing import Any


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, **named: Any) -> Any:
    """See `mgjit.optim.clip_grad_norm_`."""
    from ..optim import clip_grad_norm_ as clip

    return clip(parameters, max_norm, norm_type)


def clip_grad_value_(parameters: Any, clip_value: float, **named: Any) -> None:
    """See `mgjit.optim.clip_grad_value_`."""
    from ..optim import clip_grad_value_ as clip

    clip(parameters, clip_value)
