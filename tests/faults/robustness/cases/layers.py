"""Bad inputs: layers and losses over tensors."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case

LAYERS = [
    Case(
        "mgjit.nn.Linear(2, 1, generator=random.Random(1))(mgjit.tensor.ones((3, 4)))",
        "ShapeError",
        "user.py:1: Linear(in_features=2, out_features=1, bias=True) of shape (3, 4): the last extent must be 2.",
    ),
    Case(
        "mgjit.nn.Linear(2, 1, generator=random.Random(1))([[1.0, 2.0]])",
        "ArgumentError",
        "user.py:1: Linear needs a tensor, not the list [[1.0, 2.0]]: mgjit.tensor.asarray(x) makes one.",
    ),
    Case(
        "mgjit.nn.Linear(2.5, 1)",
        "ArgumentValueError",
        "user.py:1: in_features must be an int of at least 0, not the float 2.5.",
    ),
    Case(
        "mgjit.nn.Embedding(3, 2, generator=random.Random(1))(mgjit.tensor.asarray([0, 3]))",
        "IndexRangeError",
        "user.py:1: take: index 3 is not in range(3).",
    ),
    Case(
        "mgjit.nn.Conv2d(3, 4, 3, generator=random.Random(1))(mgjit.tensor.ones((1, 8, 8, 3)))",
        "ShapeError",
        "user.py:1: Conv2d(3, 4, kernel_size=(3, 3), stride=1) of shape (1, 8, 8, 3): (N, 3, 2 axes), or without N.",
    ),
    Case(
        "mgjit.nn.functional.max_pool2d(mgjit.tensor.ones((1, 1, 2, 2)), 3)",
        "ShapeError",
        "user.py:1: max_pool2d of shape (1, 1, 2, 2), with the padding: no window of 3 x 3 fits.",
    ),
    Case(
        "mgjit.nn.Dropout(1.5)",
        "ArgumentValueError",
        "user.py:1: p must be a number from 0 to 1, not 1.5.",
    ),
    Case(
        "mgjit.nn.functional.mse_loss(mgjit.tensor.ones((3, 1)), mgjit.tensor.ones(3))",
        "ShapeError",
        "user.py:1: mse_loss of shapes (3, 1) and (3,), which must be equal. reshape() or broadcast_to() one of them.",
    ),
    Case(
        "mgjit.nn.functional.cross_entropy(mgjit.tensor.ones((2, 3)), mgjit.tensor.asarray([0, 3]))",
        "IndexRangeError",
        "user.py:1: take_along_axis: index 3 is not in range(3).",
    ),
    Case(
        "mgjit.nn.functional.cross_entropy(mgjit.tensor.ones((2, 3)), mgjit.tensor.asarray([0.0, 1.0]))",
        "ArgumentError",
        "user.py:1: cross_entropy needs labels of type int64, not float64.",
    ),
    Case(
        "mgjit.nn.Module()(1.0)",
        "ArgumentError",
        "user.py:1: Module has no method forward(self, x), which calls of a module run.",
    ),
    Case(
        'model.load_state_dict({"w": 1.0})',
        "ArgumentError",
        "user.py:1: load_state_dict of MLP: missing: layers.0.neurons.0.w.0, ... With strict=False these names are "
        "passed over.",
    ),
    Case(
        'mgjit.nn.save({}, "model.pt")',
        "ArgumentValueError",
        "user.py:1: 'model.pt' must end with .npz or .safetensors.",
    ),
]
