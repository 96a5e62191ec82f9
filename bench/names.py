"""The names of PyTorch that people use most, called in both libraries by the same text.

Of each call, the numbers, types and shapes of the results are compared, and the gradients of a weighted sum of them;
layers have the weights of PyTorch's.  Random numbers are compared by their shapes, types and bounds.  A name is

- same: it gives the same;
- otherwise: it is not there, and the error shows what to write;
- missing: it is not there;
- wrong: it gives something else, or raises another error.

Run: python bench/names.py [NAME ...]     (PyTorch and NumPy must be installed)
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import mgjit

torch.set_default_dtype(torch.float64)
#: The largest difference that counts as the same, relative to numbers above 1.
TOLERANCE = 1e-9

Call = Callable[[Any], Any]
# In a call, `o` has the names of a library (t, nn, F, optim, schedules, data), and tensors that require gradients: `x`,
# `y` (3, 4), `u` (between 0 and 1), `s` (4, 4), `v` (5,), `b` (2, 3, 4), `image` (2, 4, 6, 6); `k` is of whole numbers.


def layer(make: Call, *names: str) -> Call:
    """A call of a layer, with the weights of PyTorch's, of some of the tensors."""

    def call(o: Any) -> Any:
        made = o.weights(make(o))
        return made(*(getattr(o, name) for name in names))

    return call


def trained(make: Callable[[Any, Any], Any]) -> Call:
    """A linear layer after five steps of an optimiser."""

    def call(o: Any) -> Any:
        model = o.weights(o.nn.Linear(4, 2))
        optimizer = make(o, list(model.parameters()))
        for _ in range(5):
            optimizer.zero_grad()
            (model(o.x.detach()) ** 2).mean().backward()
            optimizer.step()
        return model.weight, model.bias

    return call


def scheduled(make: Callable[[Any, Any], Any], *given: float) -> Call:
    """The learning rates of ten steps of a schedule."""

    def call(o: Any) -> Any:
        optimizer = o.optim.SGD([o.t.zeros(2, requires_grad=True)], lr=0.5)
        schedule, rates = make(o, optimizer), []
        for k in range(10):
            optimizer.step()
            schedule.step(*(given[k : k + 1]))
            rates.append(optimizer.param_groups[0]["lr"])
        return rates

    return call


def random_numbers(draw: Call, low: float, high: float) -> Call:
    """What does not depend on the generator."""

    def call(o: Any) -> Any:
        made = draw(o)
        return made.shape, made.dtype, bool((made >= low).all()), bool((made < high).all())

    return call


def saved(o: Any) -> Any:
    """A state dict, written and read."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        o.t.save({"model": o.weights(o.nn.Linear(4, 2)).state_dict(), "step": 3}, path)
        found = o.t.load(path)
    return found["model"]["weight"], found["model"]["bias"], found["step"]


def compiled(o: Any) -> Any:
    """A function that is compiled, called twice."""
    step = (o.t.compile if o.is_ours else lambda function: function)(lambda x, y: (x * y).sum())
    return step(o.x.detach(), o.y.detach()), step(o.x.detach(), o.y.detach())


def hooked(o: Any) -> Any:
    """What a hook has seen."""
    model, seen = o.weights(o.nn.Linear(4, 2)), []
    handle = model.register_forward_hook(lambda module, given, result: seen.append(result))
    model(o.x)
    handle.remove()
    model(o.x)
    return seen


def cubed(o: Any) -> Any:
    """A function with a derivative of its own."""

    class Cube(o.t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3.0 * x * x * g

    return Cube.apply(o.x)


def own(o: Any) -> Any:
    """A module as people write them."""

    class Net(o.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = o.nn.Parameter(o.t.tensor([1.0, 2.0, 3.0, 4.0]))
            self.register_buffer("mask", o.t.tril(o.t.ones(4, 4)).bool())
            self.layers = o.nn.ModuleList([o.nn.Linear(4, 4), o.nn.ReLU()])

        def forward(self, x: Any) -> Any:
            for part in self.layers:
                x = part(x)
            return (self.scale * x).unsqueeze(1).masked_fill(self.mask == 0, -1.0)

    return o.weights(Net())


def masked(o: Any) -> Any:
    model = own(o)
    return model(o.x), sorted(model.state_dict()), [name for name, _ in model.named_buffers()]


def loaded(o: Any) -> Any:
    model, other = own(o), own(o)
    with o.t.no_grad():
        other.scale.mul_(2.0)
    model.load_state_dict(other.state_dict(), strict=True)
    return model.scale


def applied(o: Any) -> Any:
    model, seen = own(o), []
    model.apply(lambda module: seen.append(type(module).__name__))
    return seen


def inferred(o: Any) -> Any:
    with o.t.inference_mode():
        return (o.x * 2.0).requires_grad


def unlearned(o: Any) -> Any:
    with o.t.no_grad():
        inside = (o.x * 2.0).requires_grad
    return inside, (o.x * 2.0).requires_grad


def assigned(o: Any) -> Any:
    p = o.t.tensor([1.0, 2.0], requires_grad=True)
    p.data -= 0.5
    p.data[0] = 7.0
    return p.data, p.requires_grad


def passed(o: Any) -> Any:
    p = o.t.tensor([1.0, 2.0], requires_grad=True)
    (p * p).sum().backward()
    first = p.grad.clone()
    p.grad = None
    (p * p * p).sum().backward()
    return first, p.grad


def clipped(o: Any) -> Any:
    p = o.t.tensor([1.0, 2.0], requires_grad=True)
    (p * p * 10.0).sum().backward()
    return o.nn.utils.clip_grad_norm_([p], 1.0), p.grad


def batches(o: Any) -> Any:
    whole = o.data.TensorDataset(o.x.detach(), o.k3)
    return [one for batch in o.data.DataLoader(whole, batch_size=2) for one in batch]


def transformer(o: Any) -> Any:
    return o.nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.0, batch_first=True)


def moved(o: Any) -> Any:
    return o.weights(o.nn.Linear(4, 2)).to("cpu").to(o.t.float32).weight.dtype


CALLS: dict[str, Call] = {
    "torch.tensor": lambda o: [o.t.tensor([[1.0, 2.0], [3.0, 4.0]]), o.t.tensor([1, 2]), o.t.tensor(True)],
    "torch.zeros": lambda o: [o.t.zeros(2, 3), o.t.zeros((2, 3), dtype=o.t.long), o.t.zeros(size=(2,))],
    "torch.ones": lambda o: [o.t.ones(2, 3), o.t.ones((2, 3))],
    "torch.full": lambda o: o.t.full((2, 3), 1.5),
    "torch.arange": lambda o: [o.t.arange(5), o.t.arange(1, 9, 2), o.t.arange(0.0, 1.0, 0.25)],
    "torch.linspace": lambda o: [o.t.linspace(0, 1, 5), o.t.linspace(-1.0, 2.0, steps=7)],
    "torch.eye": lambda o: [o.t.eye(3), o.t.eye(2, 3)],
    "torch.zeros_like": lambda o: o.t.zeros_like(o.x),
    "torch.ones_like": lambda o: o.t.ones_like(o.x),
    "torch.rand": random_numbers(lambda o: o.t.rand(20, 3), 0.0, 1.0),
    "torch.randn": random_numbers(lambda o: o.t.randn(20, 3), -9.0, 9.0),
    "torch.randint": random_numbers(lambda o: o.t.randint(2, 7, (50,)), 2, 7),
    "torch.randperm": lambda o: o.t.sort(o.t.randperm(9))[0],
    "torch.manual_seed": lambda o: (o.t.manual_seed(1), o.t.randn(3), o.t.manual_seed(1))[1].shape,
    "torch.multinomial": random_numbers(lambda o: o.t.multinomial(o.u.detach(), num_samples=3), 0, 4),
    "torch.from_numpy": lambda o: o.t.from_numpy(np.array([[1.5, 2.0], [3.0, 4.0]])),
    "torch.cat": lambda o: [o.t.cat([o.x, o.y], dim=1), o.t.cat((o.x, o.y), 0)],
    "torch.stack": lambda o: o.t.stack([o.x, o.y], dim=1),
    "torch.split": lambda o: [o.t.split(o.x, 3, dim=1), o.t.split(o.x, [1, 2], dim=0)],
    "torch.chunk": lambda o: [o.t.chunk(o.x, 3, dim=1), o.x.chunk(2, -1)],
    "torch.where": lambda o: o.t.where(o.x > 0, o.x, o.y * 2),
    "torch.gather": lambda o: [o.t.gather(o.x, 1, o.k3.view(3, 1)), o.x.gather(dim=1, index=o.k3[:2].unsqueeze(1))],
    "torch.tril": lambda o: [o.t.tril(o.x), o.t.tril(o.s, diagonal=-1), o.t.tril(o.t.ones(3, 3))],
    "torch.triu": lambda o: [o.t.triu(o.x), o.t.triu(o.s, diagonal=1), o.s.triu()],
    "torch.matmul": lambda o: o.t.matmul(o.x, o.y.transpose(0, 1)),
    "torch.bmm": lambda o: o.t.bmm(o.b, o.b.transpose(1, 2)),
    "torch.einsum": lambda o: [o.t.einsum("ij,kj->ik", o.x, o.y), o.t.einsum("...ij,...kj->...ik", o.b, o.b)],
    "torch.exp": lambda o: o.t.exp(o.x),
    "torch.log": lambda o: o.t.log(o.u),
    "torch.sqrt": lambda o: o.t.sqrt(o.u),
    "torch.sin": lambda o: o.t.sin(o.x),
    "torch.cos": lambda o: o.t.cos(o.x),
    "torch.tanh": lambda o: o.t.tanh(o.x),
    "torch.sigmoid": lambda o: o.t.sigmoid(o.x),
    "torch.relu": lambda o: o.t.relu(o.x),
    "torch.abs": lambda o: [o.t.abs(o.x), o.x.abs()],
    "torch.pow": lambda o: [o.t.pow(o.x, 3), o.u.pow(0.5), o.t.pow(o.u, o.y)],
    "torch.clamp": lambda o: [o.t.clamp(o.x, min=-0.5), o.x.clamp(-0.5, 0.5), o.x.clamp(max=0.3)],
    "torch.softmax": lambda o: [o.t.softmax(o.x, dim=0), o.x.softmax(dim=-1), o.t.softmax(o.x, -1)],
    "torch.log_softmax": lambda o: o.t.log_softmax(o.x, dim=0),
    "torch.logsumexp": lambda o: o.t.logsumexp(o.x, dim=1, keepdim=True),
    "torch.sum": lambda o: [o.t.sum(o.x), o.x.sum(dim=1), o.x.sum(0, keepdim=True), o.b.sum((0, 2))],
    "torch.mean": lambda o: [o.t.mean(o.x), o.x.mean(dim=1), o.x.mean(-1, keepdim=True)],
    "torch.var": lambda o: [o.t.var(o.x, dim=1), o.x.var(dim=0, unbiased=False), o.x.var(dim=1, keepdim=True)],
    "torch.std": lambda o: [o.t.std(o.x, dim=1), o.x.std(dim=0, keepdim=True), o.x.std(dim=1, correction=0)],
    "torch.max(dim)": lambda o: [*o.t.max(o.x, dim=1), o.x.max(), o.x.min(dim=0, keepdim=True).values],
    "torch.argmax": lambda o: [o.t.argmax(o.x, dim=1), o.x.argmax(-1), o.x.argmax(dim=0, keepdim=True)],
    "torch.norm": lambda o: [o.t.norm(o.x), o.x.norm(dim=1), o.x.norm(p=1, dim=0), o.x.norm(2, dim=-1, keepdim=True)],
    "torch.cumsum": lambda o: [o.t.cumsum(o.x, dim=1), o.x.cumsum(0), o.k.cumsum(-1)],
    "torch.sort": lambda o: [*o.t.sort(o.x, dim=0), *o.x.sort(descending=True), o.x.argsort(dim=1)],
    "torch.topk": lambda o: [*o.t.topk(o.x, 2), *o.x.topk(2, dim=0), o.x.topk(k=1, largest=False).values],
    "torch.allclose": lambda o: [o.t.allclose(o.x, o.x + 1e-9), o.t.allclose(o.x, o.y), o.x.allclose(o.x, atol=1.0)],
    "torch.isnan": lambda o: [o.t.isnan(o.t.tensor([1.0, float("nan")])), o.x.isfinite(), o.t.isinf(o.x)],
    "torch.maximum": lambda o: o.t.maximum(o.x, o.y),
    "torch.sign": lambda o: [o.t.sign(o.x), o.x.sign(), o.t.sign(o.k - 1)],
    "torch.erf": lambda o: o.t.erf(o.x),
    "torch.no_grad": unlearned,
    "torch.inference_mode": inferred,
    "torch.compile": compiled,
    "torch.save": saved,
    "torch.load": saved,
    "torch.device": lambda o: [str(o.t.device("cpu")), o.t.zeros(2, device=o.t.device("cpu")), str(o.x.device)],
    "torch.float32": lambda o: [o.t.zeros(2, dtype=o.t.float32), o.x.to(o.t.float32)],
    "torch.func.grad": lambda o: o.t.func.grad(lambda z: (z**3).sum())(o.x.detach()),
    "torch.func.vmap": lambda o: o.t.func.vmap(lambda a, b: (a * b).sum())(o.x, o.y),
    "torch.autograd.grad": lambda o: o.t.autograd.grad((o.x**3).sum(), o.x, create_graph=True)[0] ** 2,
    "torch.autograd.Function": cubed,
    "Tensor.view": lambda o: [o.x.view(4, 3), o.x.view(-1), o.x.view((2, -1))],
    "Tensor.reshape": lambda o: [o.x.reshape(4, 3), o.x.reshape((2, -1))],
    "Tensor.permute": lambda o: [o.b.permute(2, 0, 1), o.b.permute((1, 0, 2)), o.b.permute(dims=(0, 2, 1))],
    "Tensor.transpose": lambda o: [o.b.transpose(1, 2), o.b.transpose(-1, 0), o.b.transpose(dim0=0, dim1=1)],
    "Tensor.unsqueeze": lambda o: [o.x.unsqueeze(0), o.x.unsqueeze(-1), o.x.unsqueeze(dim=1)],
    "Tensor.squeeze": lambda o: [o.x.unsqueeze(0).squeeze(), o.x.unsqueeze(1).squeeze(dim=1)],
    "Tensor.expand": lambda o: [o.x.expand(2, 3, 4), o.x.unsqueeze(0).expand(2, -1, -1)],
    "Tensor.repeat": lambda o: [o.x.repeat(2, 1), o.v.repeat(2, 2, 1), o.v.repeat((3,))],
    "Tensor.flatten": lambda o: [o.b.flatten(), o.b.flatten(1), o.b.flatten(start_dim=0, end_dim=1)],
    "Tensor.size": lambda o: [tuple(o.b.size()), o.b.size(1), o.b.size(dim=-1)],
    "Tensor.shape": lambda o: [tuple(o.b.shape), o.b.shape[0]],
    "Tensor.numel": lambda o: o.b.numel(),
    "Tensor.dim": lambda o: o.b.dim(),
    "Tensor.item": lambda o: [o.x.sum().item(), o.k.max().item()],
    "Tensor.tolist": lambda o: [o.x.tolist(), o.k.tolist()],
    "Tensor.numpy": lambda o: o.x.detach().numpy().tolist(),
    "Tensor.detach": lambda o: [o.x.detach(), o.x.detach().requires_grad],
    "Tensor.clone": lambda o: o.x.clone(),
    "Tensor.to": lambda o: [o.x.to("cpu"), o.x.to(o.t.float32), o.k.to(o.t.float64), o.x.to(dtype=o.t.int64)],
    "Tensor.float": lambda o: [o.x.float(), o.k.float(), o.x.double()],
    "Tensor.long": lambda o: [o.x.long(), o.k.bool(), (o.x > 0).long()],
    "Tensor.cpu": lambda o: [o.x.cpu(), o.x.detach().cpu().numpy().tolist()],
    "Tensor.data": assigned,
    "Tensor.grad": passed,
    "Tensor.backward": passed,
    "Tensor.requires_grad_": lambda o: [o.t.zeros(2).requires_grad_(), o.t.zeros(2).requires_grad_(False)],
    "Tensor.contiguous": lambda o: o.b.transpose(1, 2).contiguous().view(2, -1),
    "Tensor.T": lambda o: [o.x.T, o.x.t()],
    "nn.Module": lambda o: own(o)(o.x),
    "nn.Parameter": lambda o: [o.nn.Parameter(o.t.zeros(2)), o.nn.Parameter(o.t.zeros(2)).requires_grad],
    "nn.Sequential": layer(lambda o: o.nn.Sequential(o.nn.Linear(4, 3), o.nn.Tanh(), o.nn.Linear(3, 2)), "x"),
    "nn.ModuleList": masked,
    "nn.ModuleDict": layer(lambda o: chosen(o), "x"),  # noqa: PLW0108 - defined below
    "nn.Linear": layer(lambda o: o.nn.Linear(4, 3), "x"),
    "nn.Embedding": layer(lambda o: o.nn.Embedding(5, 3), "k"),
    "nn.Flatten": layer(lambda o: o.nn.Flatten(), "b"),
    "nn.Conv1d": layer(lambda o: o.nn.Conv1d(3, 2, 2, stride=2, padding=1), "b"),
    "nn.Conv2d": layer(lambda o: o.nn.Conv2d(4, 3, kernel_size=3, padding=1), "image"),
    "nn.ConvTranspose2d": layer(lambda o: o.nn.ConvTranspose2d(4, 3, 3, 2, padding=1, output_padding=1), "image"),
    "nn.MaxPool2d": layer(lambda o: o.nn.MaxPool2d(2, stride=2), "image"),
    "nn.AdaptiveAvgPool2d": layer(lambda o: o.nn.AdaptiveAvgPool2d((4, 2)), "image"),
    "nn.LayerNorm": layer(lambda o: o.nn.LayerNorm(4), "x"),
    "nn.BatchNorm1d": layer(lambda o: o.nn.BatchNorm1d(4), "x"),
    "nn.BatchNorm2d": layer(lambda o: o.nn.BatchNorm2d(4), "image"),
    "nn.GroupNorm": layer(lambda o: o.nn.GroupNorm(2, 4), "image"),
    "nn.Dropout": lambda o: [o.nn.Dropout(p=0.5, inplace=False).eval()(o.x), o.nn.Dropout(0.0)(o.x)],
    "nn.RNN": layer(lambda o: o.nn.RNN(4, 3, batch_first=True), "b"),
    "nn.LSTM": layer(lambda o: o.nn.LSTM(4, 3, num_layers=2), "b"),
    "nn.GRU": layer(lambda o: o.nn.GRU(4, 3, bidirectional=True), "b"),
    "nn.MultiheadAttention": layer(lambda o: o.nn.MultiheadAttention(4, 2, batch_first=True), "b", "b", "b"),
    "nn.TransformerEncoderLayer": layer(transformer, "b"),
    "nn.ReLU": layer(lambda o: o.nn.ReLU(inplace=False), "x"),
    "nn.LeakyReLU": layer(lambda o: o.nn.LeakyReLU(0.2), "x"),
    "nn.GELU": layer(lambda o: o.nn.GELU(), "x"),
    "nn.SiLU": layer(lambda o: o.nn.SiLU(), "x"),
    "nn.Sigmoid": layer(lambda o: o.nn.Sigmoid(), "x"),
    "nn.Tanh": layer(lambda o: o.nn.Tanh(), "x"),
    "nn.Softmax": layer(lambda o: o.nn.Softmax(dim=1), "x"),
    "nn.CrossEntropyLoss": layer(lambda o: o.nn.CrossEntropyLoss(), "x", "ignored"),
    "nn.NLLLoss": layer(lambda o: o.nn.NLLLoss(), "x", "k3"),
    "nn.MSELoss": layer(lambda o: o.nn.MSELoss(), "x", "y"),
    "nn.L1Loss": layer(lambda o: o.nn.L1Loss(reduction="sum"), "x", "y"),
    "nn.BCEWithLogitsLoss": layer(lambda o: o.nn.BCEWithLogitsLoss(), "x", "u"),
    "nn.KLDivLoss": lambda o: [
        o.nn.KLDivLoss(reduction="batchmean")(o.x.log_softmax(dim=1), o.u),
        o.nn.KLDivLoss(reduction="sum", log_target=True)(o.x, o.y),
    ],
    "F.relu": lambda o: [o.F.relu(o.x), o.F.relu(o.x, inplace=False)],
    "F.softmax": lambda o: [o.F.softmax(o.x, dim=1), o.F.softmax(o.x, dim=0)],
    "F.cross_entropy": lambda o: [o.F.cross_entropy(o.x, o.ignored), o.F.cross_entropy(o.x, o.k3, reduction="none")],
    "F.mse_loss": lambda o: o.F.mse_loss(o.x, o.y),
    "F.one_hot": lambda o: [o.F.one_hot(o.k, num_classes=5), o.F.one_hot(o.k)],
    "F.pad": lambda o: [o.F.pad(o.x, (1, 2)), o.F.pad(o.b, (1, 0, 2, 1), value=0.5), o.F.pad(o.x, (0, 1), "constant")],
    "F.normalize": lambda o: [o.F.normalize(o.x, dim=1), o.F.normalize(o.x, p=1.0, dim=0)],
    "F.interpolate": lambda o: [
        o.F.interpolate(o.image, scale_factor=2, mode="nearest"), o.F.interpolate(o.image, size=(4, 9)),
        o.F.interpolate(o.image, scale_factor=2, mode="bilinear", align_corners=False),
        o.F.interpolate(o.image, size=(4, 9), mode="bilinear", align_corners=True),
    ],
    "F.dropout": lambda o: [o.F.dropout(o.x, p=0.5, training=False), o.F.dropout(o.x, 0.0)],
    "F.scaled_dot_product_attention": lambda o: o.F.scaled_dot_product_attention(o.b, o.b, o.b, is_causal=True),
    "optim.SGD": trained(lambda o, p: o.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, maximize=False)),
    "optim.Adam": trained(lambda o, p: o.optim.Adam(p, lr=0.1, maximize=True, foreach=False)),
    "optim.AdamW": trained(lambda o, p: o.optim.AdamW(p, lr=0.1, betas=(0.8, 0.9), fused=False)),
    "optim.RMSprop": trained(lambda o, p: o.optim.RMSprop(p, lr=0.1)),
    "lr_scheduler.StepLR": scheduled(lambda o, one: o.schedules.StepLR(one, step_size=3, gamma=0.5)),
    "lr_scheduler.CosineAnnealingLR": scheduled(lambda o, one: o.schedules.CosineAnnealingLR(one, T_max=10)),
    "lr_scheduler.OneCycleLR": scheduled(lambda o, one: o.schedules.OneCycleLR(one, max_lr=1.0, total_steps=12)),
    "lr_scheduler.ReduceLROnPlateau": scheduled(
        lambda o, one: o.schedules.ReduceLROnPlateau(one, factor=0.5, patience=1),
        *(3.0, 2.0, 2.0, 2.5, 2.5, 1.0, 1.0, 1.0, 1.0, 1.0),
    ),
    "lr_scheduler.LambdaLR": scheduled(lambda o, one: o.schedules.LambdaLR(one, lr_lambda=lambda k: 0.9**k)),
    "nn.utils.clip_grad_norm_": clipped,
    "utils.data.DataLoader": batches,
    "utils.data.TensorDataset": lambda o: [*(whole := o.data.TensorDataset(o.x.detach(), o.k3))[1], len(whole)],
    "Module.state_dict": lambda o: [*own(o).state_dict().items()],
    "Module.load_state_dict": loaded,
    "Module.to": moved,
    "Module.train": lambda o: [own(o).train().training, own(o).train(False).layers.training],
    "Module.eval": lambda o: own(o).eval().training,
    "Module.parameters": lambda o: [*own(o).parameters(), next(own(o).parameters())],
    "Module.named_parameters": lambda o: [*own(o).named_parameters()],
    "Module.register_buffer": masked,
    "Module.register_forward_hook": hooked,
    "Module.apply": applied,
}  # fmt: skip


def chosen(o: Any) -> Any:
    """A module with a dict of others."""

    class Made(o.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = o.nn.ModuleDict({"first": o.nn.Linear(4, 3), "second": o.nn.Linear(4, 3)})

        def forward(self, x: Any) -> Any:
            return self.parts["first"](x) * sum(part(x) for part in self.parts.values())

    return Made()


# ---- the two libraries ----------------------------------------------------------------------------------------------


def libraries() -> tuple[Any, Any]:
    """PyTorch and ours, each with the same tensors."""
    import mgjit.nn as nn
    import mgjit.nn.functional as F
    import mgjit.optim as optim
    from mgjit import tensor

    theirs = SimpleNamespace(
        t=torch, nn=torch.nn, F=torch.nn.functional, optim=torch.optim, schedules=torch.optim.lr_scheduler,
        data=torch.utils.data, is_ours=False,
    )  # fmt: skip
    ours = SimpleNamespace(
        t=tensor, nn=nn, F=F, optim=optim, schedules=optim.lr_scheduler, data=_Later("data"), is_ours=True
    )
    draw = np.random.default_rng(7)
    arrays = {name: draw.normal(size=shape) for name, shape in (
        ("x", (3, 4)), ("y", (3, 4)), ("s", (4, 4)), ("v", (5,)), ("b", (2, 3, 4)), ("image", (2, 4, 6, 6)),
    )}  # fmt: skip
    arrays["u"] = draw.uniform(0.1, 0.9, size=(3, 4))
    whole = {"k": draw.integers(0, 4, (2, 3)), "k3": np.array([2, 0, 3]), "ignored": np.array([2, -100, 1])}
    for name, array in {**arrays, **whole}.items():
        is_float = name in arrays
        setattr(theirs, name, torch.from_numpy(array.copy()).requires_grad_(is_float))
        setattr(ours, name, tensor.asarray(array, requires_grad=is_float))
    states: list[Any] = []
    theirs.weights, ours.weights = _keeps(states), _takes(states)
    theirs.floats = ours.floats = list(arrays)
    return theirs, ours


class _Later:
    """A module that may not be there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(mgjit, self._name), name)


def _keeps(states: list[Any]) -> Call:
    def weights(module: Any) -> Any:
        states.append({name: one.detach().numpy().copy() for name, one in module.state_dict().items()})
        return module

    return weights


def _takes(states: list[Any]) -> Call:
    def weights(module: Any) -> Any:
        module.load_state_dict(states.pop(0))
        return module

    return weights


def _leaves(found: Any) -> Iterator[Any]:
    if type(found).__name__ == "DType":
        yield found
        return
    if isinstance(found, dict):
        found = list(found.items())
    if isinstance(found, (list, tuple)) and not hasattr(found, "requires_grad"):
        for one in found:
            yield from _leaves(one)
    else:
        yield found


def outcome(library: Any, call: Call) -> list[Any]:
    """What a call gives: of tensors (type, shape, numbers), then the gradients."""
    found = list(_leaves(call(library)))
    shown: list[Any] = []
    total: Any = None
    for one in found:
        if not hasattr(one, "dtype"):
            is_dtype = type(one).__name__ in ("DType", "dtype")
            shown.append(str(one).rpartition(".")[2] if is_dtype else one)
            continue
        numbers = one.detach().tolist()
        shown.append((str(one.dtype).rpartition(".")[2], tuple(one.shape), numbers))
        if one.requires_grad and shown[-1][0] == "float64":
            weights = library.t.arange(math.prod(one.shape), dtype=one.dtype).reshape(tuple(one.shape)) * 0.25 + 0.5
            part = (one * weights).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
        for name in library.floats:
            gradient = getattr(library, name).grad
            shown.append([0.0] if gradient is None else gradient.reshape(-1).tolist())
    return shown


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        if {str(x), str(y)} & {"[0.0]"} and not np.any(np.array(x if len(x) > 1 else y, dtype=float)):
            return True  # no gradient, and one of zeros
        return len(x) == len(y) and all(map(_same, x, y))
    if isinstance(x, float) and isinstance(y, float):
        return x == y or (x != x and y != y) or abs(x - y) <= TOLERANCE * max(1.0, abs(x))
    return type(x) is type(y) and bool(x == y)


def judged(name: str) -> tuple[str, str]:
    """What becomes of a name, and a remark."""
    theirs, ours = libraries()
    wanted = outcome(theirs, CALLS[name])
    try:
        found = outcome(ours, CALLS[name])
    except AttributeError as error:
        return ("otherwise" if {"Write", "Perhaps"} & set(str(error).split()) else "missing"), str(error)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"
    if _same(wanted, found):
        return "same", ""
    different = next((pair for pair in zip(wanted, found) if not _same(*pair)), (len(wanted), len(found)))
    return "wrong", f"{different[0]} and {different[1]}"


def main() -> None:
    """Print the table, and the counts."""
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for name in sys.argv[1:] or CALLS:
        verdict, remark = judged(name)
        counts[verdict] += 1
        print(f"{name:36s} {verdict:10s} {remark[:150]}".rstrip(), flush=True)
    print(f"{sum(counts.values())} names: " + ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in ("same", "otherwise", "missing", "wrong")
    ))  # fmt: skip


if __name__ == "__main__":
    main()
