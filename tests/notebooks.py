"""The notebooks in examples/: each is a script, cell by cell, and what it shows.

    python -m tests.notebooks --write       runs the scripts as notebooks and writes them

1. The docstring of a script becomes a cell of text, and `# %%` begins another cell of code.
2. A notebook ends with a cell that shows what the script has written into a file.
3. What it has printed and shown is kept; counts of executions and times of cells are not.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
#: The scripts that are also notebooks, and what is shown at the end.
SHOWN = {
    "moons": "from IPython.display import SVG\n\nSVG(painting)",
    "microgpt": "print(train_step.stats.table())",
    "report": "report",
}


def cells_of(name: str) -> list[tuple[str, str]]:
    """The cells of a notebook: kind and source."""
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    code = text.split('"""', 2)[2]
    head, _, rest = docstring.partition("\n")
    body = rest.partition("\nRun: ")[0].strip()
    found = [("markdown", f"# {name}\n\n{head}\n\n{body}".strip())]
    found += [("code", part.strip()) for part in code.split("# %%\n") if part.strip()]
    return [*found, ("code", SHOWN[name])]


def notebook_of(name: str) -> Any:
    """The notebook of a script, which has not been run."""
    made = nbformat.v4.new_notebook()
    for number, (kind, source) in enumerate(cells_of(name)):
        cell = nbformat.v4.new_markdown_cell(source) if kind == "markdown" else nbformat.v4.new_code_cell(source)
        cell["id"] = f"{name}-{number}"
        made.cells.append(cell)
    made.metadata["language_info"] = {"name": "python"}
    return made


def run(notebook: Any, where: Path, **environment: str) -> None:
    """Run a notebook in a folder, by this interpreter; its outputs are put in it."""
    kernel = where / "share" / "jupyter" / "kernels" / "tested"
    kernel.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "tested", "language": "python"}))
    path = os.pathsep.join([os.getcwd(), *sys.path])
    own = {
        "JUPYTER_PATH": str(where / "share" / "jupyter"), "IPYTHONDIR": str(where / "ipython"), "PYTHONPATH": path,
        **environment,
    }  # fmt: skip
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="tested").execute(cwd=str(where))
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def write() -> None:
    """Run all notebooks, and write them."""
    for name in SHOWN:
        notebook = notebook_of(name)
        with tempfile.TemporaryDirectory() as where:
            run(notebook, Path(where))
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.execution_count, cell.metadata = None, {}
                for output in cell.outputs:
                    if "execution_count" in output:
                        output["execution_count"] = None
        notebook.metadata.pop("kernelspec", None)
        nbformat.write(notebook, EXAMPLES / f"{name}.ipynb")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write()
