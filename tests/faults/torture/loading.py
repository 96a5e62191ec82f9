"""Programs in odd places: each is a new interpreter, and prints the numbers of one step.

The oracle is the same program with MGJIT_DISABLE=1.  Each place is played twice: the first time the step is compiled,
the second time its entry must be found, whatever the program has instead of a file.
"""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import mgjit

from .harness import Place, Skip, Torture, require

PACKAGE = Path(mgjit.__file__).resolve().parent

PROGRAM = """\
import json
import mgjit
weights = [mgjit.Value(0.5 * place) for place in range(4)]
@mgjit.compile
def step(x):
    loss = sum((w * x - 1.0) ** 2 for w in weights)
    for w in weights:
        w.grad = 0.0
    loss.backward()
    for w in weights:
        w.data -= 0.01 * w.grad
    return loss

losses = [step(x) for x in (0.5, 0.75, 1.0)]
numbers = [getattr(loss, "data", loss) for loss in losses] + [w.data for w in weights] + [w.grad for w in weights]
cache = step.stats.cache if hasattr(step, "stats") else ""
print(json.dumps({"numbers": [n.hex() for n in numbers], "cache": cache, "mgjit": mgjit.__file__}))
"""


class Run:
    """How to start the program: an argument list, its standard input, and changes to the environment."""

    def __init__(self, *arguments: str, text: str | None = None, path: Path | None = None, within: Path | None = None):
        self.argv = [sys.executable, *arguments]
        self.text = text
        self.path = path or PACKAGE.parent
        self.within = within or self.path  # where the package that is imported must lie


def a_file(place: Place) -> Run:
    """A script, as usual."""
    return Run(str(_written(place.root / "program.py", PROGRAM)))


def the_command_line(_place: Place) -> Run:
    """`python -c`: there is no file."""
    return Run("-c", PROGRAM)


def standard_input(_place: Place) -> Run:
    """`python < file`: the file is called <stdin>."""
    return Run("-", text=PROGRAM)


def the_interactive_console(_place: Place) -> Run:
    """`python -i`, line by line."""
    return Run("-i", "-q", text=PROGRAM)


def a_notebook(_place: Place) -> Run:
    """Cells: each compiled by itself under a made-up name, executed in one namespace."""
    cells = PROGRAM.replace("\n@mgjit", "\n# cell\n@mgjit").replace("\n\nlosses", "\n# cell\nlosses").split("# cell\n")
    return Run(
        "-c",
        f"space = {{'__name__': '__main__'}}\nfor number, cell in enumerate({cells!r}):\n"
        "    exec(compile(cell, f'<ipython-input-{number}>', 'exec'), space)",
    )


def exec_without_names(_place: Place) -> Run:
    """`exec` of a text in an empty namespace, inside a function."""
    return Run("-c", f"def run():\n    exec({PROGRAM!r}, {{}})\nrun()")


def a_code_object(place: Place) -> Run:
    """A program of which only the bytecode exists, in another directory."""
    source = _written(place.root / "program.py", PROGRAM)
    if not place.root.joinpath("program.pyc").exists():
        require(compileall.compile_file(str(source), quiet=1, legacy=True), "the program does not compile")
    source.unlink()
    return Run(str(place.root / "program.pyc"))


def a_zip(place: Place) -> Run:
    """The package is imported from a zip archive."""
    archive = place.root / "library.zip"
    if not archive.exists():
        with zipfile.ZipFile(archive, "w") as file:
            for path in _sources():
                file.write(path, path.relative_to(PACKAGE.parent))
    return Run("-c", PROGRAM, path=archive)


def an_application_in_a_zip(place: Place) -> Run:
    """`python application.zip`: the program and the package are in one archive."""
    archive = place.root / "application.zip"
    if not archive.exists():
        with zipfile.ZipFile(archive, "w") as file:
            for path in _sources():
                file.write(path, path.relative_to(PACKAGE.parent))
            file.writestr("__main__.py", PROGRAM)
    return Run(str(archive), path=place.home, within=archive)


def bytecode_only(place: Place) -> Run:
    """The package is installed without its sources."""
    library = _copied(place)
    if (library / "mgjit" / "__init__.py").exists():
        compileall.compile_dir(str(library), quiet=1, legacy=True, workers=1)
        for source in library.rglob("*.py"):
            source.unlink()
    return Run("-c", PROGRAM, path=library)


def a_read_only_install(place: Place) -> Run:
    """Nobody can write to the package's files or beside them."""
    library = _copied(place)
    for directory, _names, names in os.walk(library):
        for name in names:
            os.chmod(os.path.join(directory, name), 0o444)
        os.chmod(directory, 0o555)  # noqa: S103
    run = Run("-c", PROGRAM, path=library)
    if os.geteuid() == 0 and shutil.which("unshare"):  # modes are nothing to root, a read-only mount is
        shell = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
        run.argv = ["unshare", "-m", "sh", "-c", shell, str(library), *run.argv]
        tried = subprocess.run([*run.argv[:-2], "-c", ""], capture_output=True, text=True, check=False)
        if tried.returncode:
            raise Skip(f"no read-only mount: {tried.stderr.strip()}")
    return run


def subinterpreters(_place: Place) -> Run:
    """Two interpreters in one process, which share no object."""
    program = PROGRAM.replace("print(", "output = (")  # where standard output goes is not theirs to say
    return Run("-c", f"program = {program!r}\n{_SUBINTERPRETERS}")


_SUBINTERPRETERS = """
import json, os, sys, tempfile
try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        sys.exit("SKIP this Python has no subinterpreters")
def create():  # those that refuse extension modules such as ctypes would be of no use
    try:
        return interpreters.create("legacy")
    except TypeError:
        return interpreters.create(isolated=False)
outputs = []
for number in range(2):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "output")
        begin, end = f"import sys\\nsys.path[:] = {sys.path!r}\\n", f"\\nopen({path!r}, 'w').write(output)"
        failed = interpreters.run_string(create(), begin + program + end)
        if failed is not None:
            sys.exit(f"the interpreter failed: {failed}")
        with open(path) as file:
            outputs.append(json.load(file))
if outputs[0]["numbers"] != outputs[1]["numbers"] or outputs[1]["cache"] != "hit":
    sys.exit(f"the interpreters differ: {outputs}")
print(json.dumps(outputs[0]))
"""

PLACES: dict[str, Callable[[Place], Run]] = {
    place.__name__.replace("_", " "): place
    for place in (
        a_file,
        the_command_line,
        standard_input,
        the_interactive_console,
        a_notebook,
        exec_without_names,
        a_code_object,
        a_zip,
        an_application_in_a_zip,
        bytecode_only,
        a_read_only_install,
        subinterpreters,
    )
}


def loading(torture: Torture) -> None:
    """All places."""
    right = None
    for name, prepare in torture.progress(list(PLACES.items())):
        with torture.attempt(name):
            place = torture.place()
            try:
                if right is None:
                    right = _output(place, Run("-c", PROGRAM), MGJIT_DISABLE="1")["numbers"]
                for cache in ("miss", "hit"):
                    run = prepare(place)
                    found = _output(place, run)
                    require(found["numbers"] == right, f"{found['numbers']} instead of {right}")
                    require(found["cache"] == cache, f"{found['cache']} instead of a {cache}")
                    require(found["mgjit"].startswith(str(run.within)), f"another package: {found['mgjit']}")
            except Skip as reason:
                torture.count(f"skipped: {reason}")
                continue
            torture.count("places")
            require(not place.leftovers(), f"temporary files are left: {place.leftovers()}")
            place.remove()


def _output(place: Place, run: Run, **more: str) -> dict[str, str]:
    """Run a program and read the line that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(run.path), "PYTHONDONTWRITEBYTECODE": "1"}
    for name, value in {**place.environment, **more}.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    done = subprocess.run(
        run.argv,
        env=environment,
        cwd=place.home,
        input=run.text,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "SKIP " in done.stderr:
        raise Skip(done.stderr.partition("SKIP ")[2].strip())
    _, mark, rest = done.stdout.partition('{"numbers"')  # a console prints its prompt before it
    require(done.returncode == 0 and mark, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    require("Warning" not in done.stderr and "Traceback" not in done.stderr, done.stderr)
    found: dict[str, str] = json.loads((mark + rest).splitlines()[0])
    return found


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _sources() -> list[Path]:
    return [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]


def _copied(place: Place) -> Path:
    """A directory with a copy of the package in it."""
    library = place.root / "library"
    if not library.exists():
        shutil.copytree(PACKAGE, library / "mgjit", ignore=shutil.ignore_patterns("__pycache__"))
    return library


SCENARIOS = {"loading": loading}
