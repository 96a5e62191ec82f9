"""`python -m mgjit run script.py`: what a script prints, writes, raises and returns is what Python does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.script.running import ROOT, SCRIPTS, both, explained, seen

#: Scripts, and how many iterations or epochs of theirs are enough.
QUICK = {
    "module_loop": 12, "ragged": 6, "sampler": 8, "arguments": 6, "accumulation": 6, "divides_by_zero": 14,
    "several_modules": 3, "styles": 40,
}  # fmt: skip
SLOW = {
    "trainer_class": 6, "early_stopping": 300, "schedule": 60, "evaluation": 300, "generator": 60, "progress_bar": 60,
    "reinforce": 40, "plain_floats": 120, "network_by_hand": 60, "adam": 60, "overflows": 200, "no_training": 5,
    "refused": 60, "main_nested": 4, "several_models": 6, "while_loop": 8, "dropout": 6,
}  # fmt: skip
pytestmark = pytest.mark.skipif(shutil.which("tcc") is None and shutil.which("gcc") is None, reason="needs a compiler")


def test_every_script_is_compared() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.py")} - {"engine", "micrograd_demo"} == QUICK.keys() | SLOW.keys()


@pytest.mark.parametrize("name", QUICK)
def test_script(name: str, tmp_path: Path) -> None:
    both(tmp_path, SCRIPTS / f"{name}.py", [str(QUICK[name])])


@pytest.mark.long
@pytest.mark.parametrize("name", SLOW)
def test_longer_script(name: str, tmp_path: Path) -> None:
    both(tmp_path, SCRIPTS / f"{name}.py", [str(SLOW[name])])


def compiled_calls(text: str) -> int:
    """How many calls `--explain` says were compiled."""
    return sum(int(number.replace(",", "")) for number in re.findall(r"([\d,]+) compiled calls", text))


def test_a_loop_runs_compiled(tmp_path: Path) -> None:
    text = explained(tmp_path, SCRIPTS / "module_loop.py", ["12"])
    assert compiled_calls(text) == 11
    assert "module_loop.py:14: lines 15 to 21 are a step" in text


def test_a_short_loop_is_left_alone(tmp_path: Path) -> None:
    text = explained(tmp_path, SCRIPTS / "module_loop.py", ["12"], options=())
    assert "was not tried: the loop did not run long enough" in text


@pytest.mark.parametrize("name", ["logging", "tqdm"])
def test_a_file_with_the_name_of_a_module_that_mgjit_imports_is_left_alone(name: str, tmp_path: Path) -> None:
    for file in ("module_loop", "engine"):
        shutil.copy(SCRIPTS / f"{file}.py", tmp_path)
    (tmp_path / f"{name}.py").write_text("print('imported')\n")
    text = explained(tmp_path, tmp_path / "module_loop.py", ["12"])
    assert f"modules called {name}, and would get those of its folder. Rename them." in text


def test_the_current_folder_is_not_looked_into(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "logging.py").write_text("print('imported')\n")
    run = subprocess.run(
        [sys.executable, "-m", "mgjit", "run", "--eager", str(SCRIPTS / "module_loop.py"), "12"],
        cwd=tmp_path / "plain", env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert "imported" not in run.stdout


def test_a_call_that_divides_by_zero_is_undone_and_raises(tmp_path: Path) -> None:
    text = explained(tmp_path, SCRIPTS / "divides_by_zero.py", ["14"])
    assert "3 compiled calls, 1 others in Python, 1 of them undone" in text


def test_a_refusal_is_explained(tmp_path: Path) -> None:
    text = explained(tmp_path, SCRIPTS / "refused.py", ["6"])
    assert "0 compiled calls" in text
    assert "one changes the variable log" in text


def test_named_loop(tmp_path: Path) -> None:
    script = SCRIPTS / "main_nested.py"
    text = explained(tmp_path, script, ["4"], options=["--eager", "--loop", f"{script}:14"])
    assert "main_nested.py:14" in text
    assert "main_nested.py:17" not in text


def written(folder: Path, text: str) -> Path:
    """A script with this text."""
    path = folder / "script.py"
    path.write_text(text)
    return path


TRAINS = """
import sys
w = [0.5, -0.25]
for step in range(8):
    e = [sum(a * b for a, b in zip(w, x)) - y for x, y in (([1.0, 2.0], 3.0), ([2.0, -1.0], 0.5))]
    w[0] -= 0.1 * (e[0] * 1.0 + e[1] * 2.0)
    w[1] -= 0.1 * (e[0] * 2.0 - e[1] * 1.0)
"""


@pytest.mark.parametrize(
    "ending",
    [
        "sys.exit(3)",
        "sys.exit('a message')",
        "raise SystemExit",
        "raise KeyError(w[0])",
        "def f():\n    try:\n        1 / 0\n    except ArithmeticError as e:\n        raise ValueError(w) from e\nf()",
        "print(__name__, __file__ == sys.argv[0], sorted(k for k in globals() if 'mgjit' in k), __spec__)",
        "import atexit\natexit.register(print, 'the end')\nprint(w, file=sys.stderr)",
        "import warnings\nwarnings.warn('careful')\nprint(e, w, step)",
        "import logging\nlogging.basicConfig(level=1)\nfor step in range(6):\n    w[0] -= 0.1 * sum([w[0] * 1.0])",
    ],
)
def test_end_of_a_script(ending: str, tmp_path: Path) -> None:
    both(tmp_path, written(tmp_path, TRAINS + ending + "\n"))


@pytest.mark.parametrize("text", ["for x in:\n", "x = '\\d'\nfor i in range(3): x = i is 3\n", "# \xe4\nprint(1)\n"])
def test_text_that_python_complains_of(text: str, tmp_path: Path) -> None:
    both(tmp_path, written(tmp_path, text))


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="it makes paths absolute in another way")
def test_a_relative_path(tmp_path: Path) -> None:
    script = Path("..") / written(tmp_path, TRAINS + "print(__file__, sys.argv[0])\n1 / 0\n").name
    plain = seen(tmp_path / "one", [str(script)])
    run = seen(tmp_path / "two", ["-m", "mgjit", "run", "--eager", str(script)])
    assert (plain.out, plain.err) == tuple(text.replace("two", "one") for text in (run.out, run.err))


@pytest.mark.parametrize("words", [["-m", "pkg", "--a"], ["-m", "pkg.no"], ["-c"], ["-", "x"]])
def test_modules_and_texts(words: list[str], tmp_path: Path) -> None:
    """What a program is started as makes no difference: its variables, arguments and tracebacks are its own."""
    text = (SCRIPTS / "module_loop.py").read_text().replace("for step in range(steps)", "for step in range(12)")
    text = text.replace("if len(sys.argv) > 1 else", "if not sys.argv else")
    text += "print(sys.argv, sys.path[0], __name__, __package__)\n[][0]\n"
    found = []
    for name, ours in (("plain", []), ("run", ["-m", "mgjit", "run", "--explain", "--eager"])):
        place = tmp_path / name
        (place / "pkg").mkdir(parents=True)
        (place / "pkg" / "__main__.py").write_text(text)
        command = [sys.executable, *ours, *words, *([text] if words == ["-c"] else [])]
        settings = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{SCRIPTS}", "PYTHONDONTWRITEBYTECODE": "1"}
        settings.update({"MGJIT_BACKGROUND": "0"}, **({"MGJIT_CC": "tcc"} if shutil.which("tcc") else {}))
        ended = subprocess.run(
            command, cwd=place, env=settings, input=text, text=True, capture_output=True, check=False
        )
        found.append([one.replace(str(place), "") for one in (ended.stdout, ended.stderr)])
    assert found[1][0] == found[0][0]
    assert found[0][1] in found[1][1]
    assert ("are a step: 11 compiled calls" in found[1][1]) == (words != ["-m", "pkg.no"])


def test_no_such_script(tmp_path: Path) -> None:
    found = seen(tmp_path / "run", ["-m", "mgjit", "run", "nothing.py"])
    assert found.code == 2
    assert "nothing.py" in found.err


def test_a_script_without_training_loads_little(tmp_path: Path) -> None:
    text = "import sys\nprint(sorted({'argparse', 'dataclasses', 'pathlib', 'inspect'} & set(sys.modules)))\n"
    both(tmp_path, written(tmp_path, text + "for k in range(3): print(k)\n"), options=())


def test_imported_modules_are_complained_of_once(tmp_path: Path) -> None:
    (tmp_path / "sibling.py").write_text(f"{TRAINS}\nx = '\\d'\nif step is 7: print(w)\n")
    both(tmp_path, written(tmp_path, "import sibling\n"))


@pytest.mark.parametrize("coding", ["", "# coding: latin-1\n", "\ufeff"])
def test_encodings_and_ends_of_lines(coding: str, tmp_path: Path) -> None:
    text = f"{coding}{TRAINS}    a = 'ä'\nprint(w, a, len(a))\n".replace("\n", "\r\n")
    (tmp_path / "written.py").write_bytes(text.encode("latin-1" if "latin" in coding else "utf-8"))
    both(tmp_path, tmp_path / "written.py")


_WATCHING = """
import atexit


class Watch:
    def __del__(self):
        print("gone", count(weights))


def count(things):
    return len(things)


atexit.register(lambda: print("the end", count(weights)))
watch, cycle = Watch(), Watch()
cycle.itself = cycle
"""


@pytest.mark.parametrize("effect", ["file.write('a pass\\n')", "print('a pass')", "logging.info('a pass')"])
def test_what_is_written_in_the_middle_of_a_step(tmp_path: Path, effect: str) -> None:
    """Nothing is written twice, and nothing is lost."""
    script = tmp_path / "script.py"
    script.write_text(_WRITING.replace("EFFECT", effect))
    assert both(tmp_path, script).out


@pytest.mark.parametrize("ending", ["", _WATCHING])
def test_a_file_that_is_left_open(tmp_path: Path, ending: str) -> None:
    """Python's end closes it, also where kernels keep the script's variables; what `__del__` calls is still there."""
    script = tmp_path / "script.py"
    script.write_text(_WRITING.replace("EFFECT", "pass") + ending)
    assert compiled_calls(explained(tmp_path, script)) > 0


def test_del_at_the_end_of_a_script_that_runs_as_it_stands(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("weights = [1.0]\n" + _WATCHING)
    both(tmp_path, script)


_WRITING = """
import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
file = open("losses.txt", "w")


class Node:
    def __init__(self, data, parts=(), factors=()):
        self.data, self.grad, self.parts, self.factors = data, 0, parts, factors

    def __add__(self, other):
        return Node(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other):
        return Node(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self, gradient=1):
        EFFECT
        self.grad += gradient
        for part, factor in zip(self.parts, self.factors):
            part.backward(factor * gradient)


weights = [Node(0.1 * k) for k in range(20)]
for number in range(30):
    loss = Node(0.0)
    for k, weight in enumerate(weights):
        loss = loss + weight * weight * Node(0.5 + 0.01 * k)
    for weight in weights:
        weight.grad = 0
    loss.backward()
    for weight in weights:
        weight.data -= 0.1 * weight.grad
    file.write(f"{loss.data}\\n")
print(sum(weight.data for weight in weights))
"""


INTERRUPTED = """
import atexit, os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: print("exit", sys.last_type))
weights = [0.5] * 5
for epoch in range(300):
    for k in range(5):
        weights[k] -= 0.1 * weights[k]
    if epoch == 200:
        os.kill(os.getpid(), signal.SIGINT)
print("not reached")
"""


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal")
def test_after_an_interruption(tmp_path: Path) -> None:
    """What is registered for the exit runs, the exit code is that of Python, and `--explain` speaks."""
    text = explained(tmp_path, written(tmp_path, INTERRUPTED), options=())
    assert "lines 6 to 7 are a step, which was not tried" in text


def test_a_script_may_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_DISABLE", "1")
    text = explained(tmp_path, SCRIPTS / "module_loop.py", ["12"])
    assert text.endswith("module_loop.py: runs as it stands, since MGJIT_DISABLE is set\n")


@pytest.mark.parametrize("tool", ["sys.settrace(lambda *_: None)", "sys.monitoring.use_tool_id(1, 'coverage')"])
def test_a_script_whose_lines_are_watched_runs_as_it_stands(tmp_path: Path, tool: str) -> None:
    """A compiled call has no lines, and coverage.py would look for the file of the step's own copy."""
    if not hasattr(sys, tool.split("(")[0].split(".")[1]):
        pytest.skip("there is no sys.monitoring")
    code = f"import sys; from mgjit.__main__ import _run; {tool}; sys.exit(_run())"
    script = [str(SCRIPTS / "module_loop.py"), "12"]
    run = seen(tmp_path / "run", ["-c", code, "run", "--explain", *script])
    assert run.out == seen(tmp_path / "plain", script).out
    assert "runs as it stands, since coverage.py, a debugger or another tracer watches" in run.err


NESTED = ROOT / "bench" / "nested"
#: Scripts with loops inside of their models, how many steps are enough, and the line of the loop to be compiled.
OF_MODELS = {
    "state_space": (12, 37), "attention": (6, 38), "mixture": (1, 34), "beam_search": (100, 36),
    "lstm_by_hand": (1, 70), "ode": (2, 29), "tagger": (40, 35),
}  # fmt: skip


@pytest.mark.once
@pytest.mark.parametrize("name", OF_MODELS)
@pytest.mark.sampled(one_of=3)
def test_of_loops_inside_of_a_model_the_one_around_them_is_the_step(name: str, tmp_path: Path) -> None:
    """Whatever becomes of the loops within, which may be tried before it."""
    steps, line = OF_MODELS[name]
    text = explained(tmp_path, NESTED / f"{name}.py", [str(steps)])
    assert re.search(rf":{line}: [^:]*: [1-9][\d,]* compiled calls", text), text


@pytest.mark.once
@pytest.mark.parametrize(("name", "steps"), [("layers_of_gru", 5), ("particles", 20), ("denoiser", 300)])
def test_of_loops_inside_of_a_model_that_cannot_be_steps(name: str, steps: int, tmp_path: Path) -> None:
    both(tmp_path, NESTED / f"{name}.py", [str(steps)])


@pytest.mark.parametrize("module", ["import nothing_of_this_name\n", "def f(:\n", "x = 1 / 0\n"])
def test_errors_of_imported_modules_have_no_frame_of_ours(module: str, tmp_path: Path) -> None:
    """The traceback is the one of Python."""
    (tmp_path / "helping.py").write_text(f"for k in range(3):\n    y = k\n{module}")
    script = tmp_path / "main.py"
    script.write_text("import helping\n")
    both(tmp_path, script)
