"""`python -m mgjit run --report FILE script.py`."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree

import pytest

from tests.script.running import SCRIPTS, seen

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(shutil.which("tcc") is None and shutil.which("gcc") is None, reason="needs a compiler"),
]


def page_of(files):
    """The words of the page that was written."""
    html = files["out.html"].decode("utf-8")
    assert "http" not in html
    tree = ElementTree.fromstring(html.partition("\n")[2])  # noqa: S314 - it is our own
    return " ".join(" ".join(tree.itertext()).split())


def test_the_page_is_about_the_loops_and_the_script_runs_as_ever(tmp_path):
    script = [str(SCRIPTS / "module_loop.py"), "12"]
    plain = seen(tmp_path / "plain", script)
    run = seen(tmp_path / "run", ["-m", "mgjit", "run", "--eager", "--report", "out.html", *script])
    assert (run.out, run.err, run.code) == (plain.out, plain.err, plain.code)
    words = page_of(run.files)
    assert "module_loop.py, lines 15 to 21" in words
    assert "loss.backward()" in words
    assert "a call, in its kernel" in words or "less than 0.03 µs" in words


def test_of_a_script_without_loops_and_of_loops_that_were_not_tried(tmp_path):
    script = tmp_path / "none.py"
    script.write_text("print(sum(range(10)))\n")
    run = seen(tmp_path / "none", ["-m", "mgjit", "run", "--report", "out.html", str(script)])
    assert (run.out, run.err, run.code) == ("45\n", "", 0)
    assert "No compiled step was called." in page_of(run.files)
    words = ["-m", "mgjit", "run", "--report", "out.html", str(SCRIPTS / "module_loop.py"), "3"]
    assert "are a step that was not tried: the loop did not run long enough" in page_of(
        seen(tmp_path / "x", words).files
    )


def test_the_exit_code_is_the_scripts_even_if_the_page_cannot_be_written(tmp_path):
    script = tmp_path / "ends.py"
    script.write_text("import sys\nsys.exit(5)\n")
    run = seen(tmp_path / "run", ["-m", "mgjit", "run", "--report", "no/such/folder/out.html", str(script)])
    assert run.code == 5
    assert "mgjit: error: the report cannot be written" in run.err
