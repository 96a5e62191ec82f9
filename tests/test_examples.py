"""The examples run, in a short form; three of them are notebooks, too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
#: What each of them prints in its short form, and what it writes.
PRINTED = {
    "adam": "x -3.142",
    "ensemble": "rate 0.001 ",
    "export_c": "all bits as recorded|no C compiler",
    "frozen": "letters in",
    "microgpt": "step    1  loss",
    "images": "epoch 0  loss .* of 360",
    "mnist": "epoch 0  loss .* of 360",
    "moons": "moons.svg: the boundary",
    "names": "step    8  loss [0-3]",
    "own_class": "step +8  mean loss",
    "ragged": "records became",
    "report": "scores = model",
    "tensors": "right .* of 360",
    "xor": "0 xor 1 = 1",
}
WRITTEN = {"ensemble": "sweep.svg", "moons": "moons.svg", "report": "step.html"}
#: Further models that a script can train.
MODELS = [
    ("names", "lstm"),
    pytest.param("names", "rnn", marks=pytest.mark.long),
    pytest.param("names", "transformer", marks=pytest.mark.long),
    pytest.param("images", "lenet", marks=pytest.mark.long),
]
#: Those that do not count steps in `STEPS`, and are short anyway.
UNCOUNTED = {"adam", "xor"}


@pytest.mark.once
@pytest.mark.parametrize("name", SCRIPTS)
def test_01_a_script_runs(name: str, tmp_path: Path) -> None:
    assert re.search(PRINTED[name], _printed(name, tmp_path))
    if name in WRITTEN:
        assert (tmp_path / WRITTEN[name]).stat().st_size > 1000


def _printed(name: str, folder: Path, *arguments: str, steps: str | None = "8") -> str:
    """What a script prints in its short form, or with its own number of steps."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    if steps is not None:
        environment["STEPS"] = {"images": "1", "mnist": "1"}.get(name, steps)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


GALLERY = (EXAMPLES.parent / "docs" / "examples.md").read_text("utf-8")


@pytest.mark.once
@pytest.mark.parametrize(("name", "shown"), re.findall(r"<!-- (\w+)\.py -->\n```text\n(.*?)```", GALLERY, re.DOTALL))
def test_01_the_gallery_shows_what_a_script_prints(name: str, shown: str, tmp_path: Path) -> None:
    """In its long form."""
    assert _printed(name, tmp_path, steps=None) == shown


@pytest.mark.parametrize("name", SCRIPTS)
def test_02_a_script_is_short_and_has_its_line_in_the_index(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert text.startswith('"""Learn ')
    assert f"Run: python examples/{name}.py" in text
    assert ('os.environ.get("STEPS"' in text) != (name in UNCOUNTED)
    assert f"[{name}.py]({name}.py)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_03_the_notebooks_are_the_scripts() -> None:
    notebooks = _notebooks()
    nbformat = pytest.importorskip("nbformat")
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == set(notebooks.SHOWN)
    for name in notebooks.SHOWN:
        kept = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
        nbformat.validate(kept)
        shown = [(cell.cell_type, cell.source) for cell in kept.cells]
        assert shown == notebooks.cells_of(name), f"{name}: run python -m tests.notebooks --write"
        assert any(cell.get("outputs") for cell in kept.cells)
        assert str(Path.home()) not in (EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8")


@pytest.mark.once
@pytest.mark.parametrize("name", ["moons", "microgpt", "report"])
def test_04_a_notebook_runs(name: str, tmp_path: Path) -> None:
    notebooks = _notebooks()
    notebook = notebooks.notebook_of(name)
    notebooks.run(notebook, tmp_path, STEPS="8")
    last = notebook.cells[-1].outputs
    data = {kind for output in last for kind in output.get("data", {})}
    assert {"moons": "image/svg+xml", "report": "text/html"}.get(name, "") in data or name == "microgpt"
    assert not any(output.output_type == "error" for cell in notebook.cells for output in cell.get("outputs", []))


@pytest.mark.once
@pytest.mark.parametrize(("name", "model"), MODELS)
def test_05_each_model_of_a_script_is_trained(name: str, model: str, tmp_path: Path) -> None:
    assert re.search(PRINTED[name], _printed(name, tmp_path, "--model", model))


def _notebooks():  # type: ignore[no-untyped-def]  # the module needs a kernel, which PyPy has not
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    from tests import notebooks

    return notebooks
