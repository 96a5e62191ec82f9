from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import data as datasets
from mgjit import nn
from mgjit.cli import curve, demo
from mgjit.cli.main import main
from tests.data.test_data import idx


class Result(float):
    """What a compiled step gives back for a Value."""

    @property
    def data(self) -> float:
        return float(self)


def stand_in(change: Callable[[float], float] = float) -> Callable[..., Any]:
    """Stands for `mgjit.compile`: runs the function as it is, and the loss through `change`."""

    def compile(function: Callable[..., Any], **options: Any) -> Any:
        def step(*args: Any) -> Any:
            result = function(*args)
            return result if isinstance(result, list) else Result(change(result.data))

        step.stats = types.SimpleNamespace(  # type: ignore[attr-defined]
            records=29895, loops=12, statements=23, lines=240, cache="hit", backend="c", compiler="cc 1.2",
            trace_seconds=0.5, roll_seconds=0.25, compile_seconds=0.125,
        )  # fmt: skip
        return step

    return compile


@pytest.fixture
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many digits as a test can afford to train on without a compiler."""
    whole = datasets.digits()
    train, test = whole.train.part(list(range(8))), whole.test.part(list(range(4)))
    few = datasets.Images("digits", train, test, whole.scale)
    monkeypatch.setattr(datasets, "digits", lambda: few)


def run_demo(*options: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "mgjit", "demo", *options],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )


class TestWithoutTheCompiler:
    """What the demo does with the numbers, whatever makes them."""

    @pytest.mark.usefixtures("few_digits")
    def test_says_what_was_built_and_that_it_is_equal(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(mgjit, "compile", stand_in())
        assert main(["demo", "--epochs", "2"]) == 0
        out = capsys.readouterr().out
        for text in (
            "29,895",
            "12 loops",
            "240 lines",
            "trace 0.500, roll 0.250, C compiler 0.125",
            "hit",
            "cc 1.2",
        ):
            assert text in out
        assert "equal bit for bit" in out
        assert re.findall(r"^epoch (\d)/2", out, re.MULTILINE) == ["1", "2"]
        assert re.search(r"times interpreted Python$", out, re.MULTILINE)

    @pytest.mark.usefixtures("few_digits")
    def test_one_bit_is_enough_to_fail(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(mgjit, "compile", stand_in(lambda loss: loss * (1 + sys.float_info.epsilon)))
        assert main(["demo", "--epochs", "1"]) == 1
        assert "NOT EQUAL" in capsys.readouterr().out

    @pytest.mark.usefixtures("few_digits")
    def test_parameters_are_compared_too(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def compile(function: Callable[..., Any], **options: Any) -> Any:
            """Gets every loss right, and leaves a gradient wrong."""
            step = stand_in()(function)

            def spoiled(*args: Any) -> Any:
                result = step(*args)
                if not isinstance(result, list):
                    contents = [cell.cell_contents for cell in function.__closure__ or ()]
                    (model,) = (value for value in contents if isinstance(value, nn.MLP))
                    model.parameters()[-1].grad += 1.0
                return result

            spoiled.stats = step.stats  # type: ignore[attr-defined]
            return spoiled

        monkeypatch.setattr(mgjit, "compile", compile)
        assert main(["demo", "--epochs", "1"]) == 1
        assert "NOT EQUAL" in capsys.readouterr().out

    @pytest.mark.usefixtures("few_digits")
    def test_a_diverging_training_is_shown_and_not_an_error(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        steps = iter(range(10**6))
        monkeypatch.setattr(mgjit, "compile", stand_in(lambda loss: loss if next(steps) < 5 else float("nan")))
        assert main(["demo", "--epochs", "2"]) == 0
        assert "mean loss nan" in capsys.readouterr().out

    @pytest.mark.usefixtures("few_digits")
    def test_the_same_seed_gives_the_same_curve(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(mgjit, "compile", stand_in())

        def losses(seed: str) -> list[str]:
            assert main(["demo", "--epochs", "2", "--seed", seed]) == 0
            return re.findall(r"mean loss (\S+)", capsys.readouterr().out)

        assert losses("1") == losses("1") != losses("2")

    @pytest.mark.usefixtures("few_digits")
    def test_plot(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        saved: dict[Path, list[float]] = {}
        monkeypatch.setattr(curve, "check_png", lambda path: None)
        monkeypatch.setattr(curve, "save_png", lambda path, values, **texts: saved.update({path: list(values)}))
        monkeypatch.setattr(mgjit, "compile", stand_in())
        assert main(["demo", "--epochs", "2", "--plot", str(tmp_path / "a.png")]) == 0
        assert [len(values) for values in saved.values()] == [16]

    def test_a_decorator_that_is_off_is_explained(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("MGJIT_DISABLE", "1")
        assert main(["demo"]) == 2
        assert "MGJIT_DISABLE" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--data", "mnist"], "needs --path"),
            (["--path", "."], "--path is for --data mnist"),
            (["--data", "mnist", "--path", "no-such-folder"], "is not a folder"),
        ],
    )
    def test_options_that_do_not_fit(
        self, capsys: pytest.CaptureFixture[str], options: list[str], message: str
    ) -> None:
        assert main(["demo", *options]) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.out == ""

    @pytest.mark.parametrize(
        "options",
        [
            ["--epochs", "0"],
            ["--epochs", "-1"],
            ["--epochs", "two"],
            ["--lr", "0"],
            ["--lr", "nan"],
            ["--lr", "fast"],
        ],
    )
    def test_numbers_that_make_no_sense(self, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            main(["demo", *options])
        assert caught.value.code == 2
        assert f"argument {options[0]}: {options[1]!r} is not" in capsys.readouterr().err


class TestCompiled:
    """The demo as users run it."""

    def test_digits(self) -> None:
        done = run_demo()
        assert done.returncode == 0, done.stderr.decode()
        out = done.stdout.decode()
        assert "equal bit for bit" in out
        accuracy = re.search(r"^test accuracy ([\d.]+)%", out, re.MULTILINE)
        assert accuracy is not None
        assert float(accuracy[1]) >= 95

    def test_without_a_terminal_there_are_no_control_characters(self) -> None:
        done = run_demo("--epochs", "1")
        assert done.stdout
        text = (done.stdout + done.stderr).replace(b"\r\n", b"\n")
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", text)

    def test_a_stream_that_takes_ascii_only(self) -> None:
        done = run_demo("--epochs", "1", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii()
        assert b" us an image" in done.stdout or b" ms an image" in done.stdout

    def test_the_python_backend(self) -> None:
        done = run_demo("--epochs", "1", "--backend", "python")
        assert done.returncode == 0, done.stderr.decode()
        assert re.search(r"^ +backend +python", done.stdout.decode(), re.MULTILINE)
        assert "equal bit for bit" in done.stdout.decode()

    def test_mnist_files(self, tmp_path: Path) -> None:
        """Images of the real size: a square in one of ten places, the place being the label."""
        pixels = b""
        for k in range(50):
            place = k % 10
            image = bytearray(28 * 28)
            for row in range(5):
                start = (row + 6 * (place // 5)) * 28 + 5 * (place % 5)
                image[start : start + 5] = bytes([200 + k]) * 5
            pixels += image
        (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx((50, 28, 28), pixels))
        (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx((50,), bytes(k % 10 for k in range(50))))
        done = run_demo("--data", "mnist", "--path", str(tmp_path), "--epochs", "20")
        assert done.returncode == 0, done.stderr.decode()
        out = done.stdout.decode()
        assert "40 images to train, 10 to test, 784 pixels" in out
        assert "equal bit for bit" in out
        assert "test accuracy 100.0%" in out

    def test_an_unknown_compiler_is_named(self) -> None:
        done = run_demo("--backend", "c", "--compiler", "no-such-compiler")
        assert done.returncode == 2
        assert b"no-such-compiler" in done.stderr
        assert b"Traceback" not in done.stderr


def test_bits_tell_zeros_apart() -> None:
    assert demo.bits([0.0]) != demo.bits([-0.0])
    assert demo.bits([float("nan"), 1.0]) == demo.bits([float("nan"), 1])
