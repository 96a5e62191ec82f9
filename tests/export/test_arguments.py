"""Arguments of all kinds as parameters of exported C."""

from __future__ import annotations

import collections
import dataclasses
from array import array
from pathlib import Path
from typing import Any

import pytest

import mgjit
from tests.export.compiling import checked

pytestmark = pytest.mark.once

W = [mgjit.Value(0.1 * k + 0.1) for k in range(6)]


def prototype(folder: Path, step: Any, *calls: tuple[Any, ...], compiler: str = "gcc") -> str:
    """The parameters of an exported function, which must compute the recorded bits."""
    step.export(folder, "net", calls=calls)
    assert "all bits" in checked(folder, "net", compiler)
    text = (folder / "net.h").read_text("ascii")
    return text[text.index("net_run(net_memory *memory") :].split(";")[0].replace("net_run(net_memory *memory", "")


def test_numbers_by_value_and_lists_without_copy(tmp_path: Path) -> None:
    step = mgjit.compile(lambda x, n, rows, ks: W[0] * x + n * rows[1][2] + ks[0])
    found = prototype(tmp_path, step, (1.5, 3, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [7, 8]))
    assert found == ", double x, int32_t n, const double rows[6], const int32_t ks[2], double result[1])"


@dataclasses.dataclass
class Config:
    rate: float
    parts: list[float]
    is_deep: bool = True


Point = collections.namedtuple("Point", "x y")


def test_containers_are_one_array_whose_parts_are_named(tmp_path: Path) -> None:
    def step(config: Any, point: Any, batch: Any, more: Any) -> Any:
        total = config.rate * config.parts[1] + point.x - point.y + more["a"] * more["b"][0]
        return total + sum(W[k] * x for xs, k in batch for x in xs for k in (k,) for k in range(2))

    calls = (Config(0.5, [1.0, 2.0]), Point(3.0, 4.0), [([1.0, 2.0], 1), ([3.0], 0)], {"a": 5, "b": [6.0, 7.0]})
    found = prototype(tmp_path, mgjit.compile(step), calls)
    sizes = "const double config[3], const double point[2], const double batch[5], const double more[3]"
    assert found == f", {sizes}, double result[1])"
    text = (tmp_path / "net.h").read_text("ascii")
    for line in ("config[1]: config.parts", "point[1]: point[1]", "batch[3]: batch[1][0]", "more[1]: more['b']"):
        assert line in text
    assert "config.is_deep is fixed: True" in text


def test_buffers_have_their_own_elements(tmp_path: Path) -> None:
    step = mgjit.compile(lambda raw, h, nested: W[0] * sum(raw) + h[0] + nested["x"][1])
    found = prototype(tmp_path, step, (b"\x01\xff", array("h", [-5]), {"x": array("f", [1.0, 2.5]), "y": 1.0}))
    parts = "const uint8_t raw[2], const int16_t h[1], const double nested[1], const float nested_x[2]"
    assert found == f", {parts}, double result[1])"


def test_numpy_arrays(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    step = mgjit.compile(lambda a, b: sum(w * x for w, x in zip(W, a)) + b[0][1])
    found = prototype(tmp_path, step, (numpy.arange(6.0), numpy.ones((2, 3), dtype=numpy.float32)))
    assert found == ", const double a[6], const float b[6], double result[1])"


NAMES = ["int", "memory", "result", "weights", "x0", "x7", "k", "call", "int32_t", "NAN", "net_run", "net_memory", "y"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_mean_something_else_in_c(name: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {"W": W}
    source = tmp_path / "step.py"
    first = f"{name}_" if name == "int" else name
    source.write_text(f"def step({first}, rows, n):\n    return W[0] * {first} + rows[n] + rows[0] * W[1]\n")
    exec(compile(source.read_text(), str(source), "exec"), names)  # noqa: S102 - a step
    prototype(tmp_path, mgjit.compile(names["step"]), (2.0, [1.0, 2.0, 3.0], 1), compiler="tcc")


def test_names_beyond_ascii_and_alike(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    source = tmp_path / "step.py"
    source.write_text("def step(é, ü, double):\n    return é + 2 * ü - double\n", "utf-8")
    exec(compile(source.read_text("utf-8"), str(source), "exec"), names)  # noqa: S102 - a step
    found = prototype(tmp_path, mgjit.compile(names["step"]), (1.0, 2.0, 3.0))
    assert found == ", double x, double x_2, double the_double, double result[1])"


def test_nothing_in_nothing_out(tmp_path: Path) -> None:
    state = mgjit.state([1.0, 2.0])

    @mgjit.compile
    def step() -> None:
        state[0] = state[1] * 1.5 + state[0]

    assert prototype(tmp_path, step, (), ()) == ")"


def test_defaults_and_empty_lists(tmp_path: Path) -> None:
    def step(x: Any, scale: Any = 2.0, empty: Any = (), nothing: Any = None) -> Any:
        return W[0] * x * scale

    assert prototype(tmp_path, mgjit.compile(step), (1.0,)) == ", double x, double scale, double result[1])"


def test_results_of_all_kinds(tmp_path: Path) -> None:
    def step(x: Any) -> Any:
        return {"loss": W[0] * x, "is_large": x > 1.0, "count": 3, "rows": [x, x * 2, (x * 3,)]}

    prototype(tmp_path, mgjit.compile(step), (1.5,))
    text = (tmp_path / "net.h").read_text("ascii")
    for line in ("result[0]: ['loss']", "result[1]: ['is_large'], a bool", "['rows'][2][0]"):
        assert line in text


def test_a_step_without_a_lock(tmp_path: Path) -> None:
    step = mgjit.compile(lock=False)(lambda x: W[0] * x)
    assert prototype(tmp_path, step, (1.5,)) == ", double x, double result[1])"


def test_long_straight_lines_are_cut_into_functions(tmp_path: Path) -> None:
    import random

    draw = random.Random(5)
    plan = [(draw.randrange(3), draw.random()) for _ in range(2500)]

    def step(x: Any, y: Any) -> Any:
        for kind, c in plan:
            if kind == 0:
                x = x * c + y
            elif kind == 1:
                y = y * 0.5 - x * c
            else:
                x = (x * 0.3 + c) / (1 + y * y)
        return x, y

    prototype(tmp_path, mgjit.compile(step), (1.0, 2.0))
    assert "net_block0(" in (tmp_path / "net.c").read_text("ascii")
