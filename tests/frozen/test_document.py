"""docs/howto/freeze.md: its examples run, and give the numbers of plain Python."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.export.compiling import checked

DOCUMENT = (Path(__file__).parents[2] / "docs" / "howto" / "freeze.md").read_text("utf-8")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples define, run one after the other."""
    source = tmp_path_factory.mktemp("document") / "example.py"
    source.write_text("\n\n".join(re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)))
    found: dict[str, Any] = {"__name__": "example"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(source.parent)
        exec(compile(source.read_text(), str(source), "exec"), found)  # noqa: S102 - the examples
    found["folder"] = source.parent
    return found


def test_01_what_is_explained(names: dict[str, Any]) -> None:
    """As it is printed there."""
    assert names["predict"].explain() in DOCUMENT


def test_02_letters_of_plain_python(names: dict[str, Any]) -> None:
    """Whether keys and values are in states, in lists, or inside of the step."""

    def by_state(step: Any) -> list[int]:
        letter, letters = 0, []
        for position in range(names["POSITIONS"]):
            letter = step(letter, position, 0.5)
            letters.append(letter)
        return letters

    def by_lists(step: Any) -> list[int]:
        letter, letters = 0, []
        keys: list[Any] = []
        values: list[Any] = []
        for _ in range(3):
            letter = step(letter, keys, values, 0.5)
            letters.append(letter)
        return letters

    def drawn(make: Any, *arguments: Any) -> Any:
        random.seed(11)
        return make(*arguments)

    expected = drawn(names["sample"], 0.5)
    assert drawn(by_state, names["next_letter"]) == drawn(by_state, names["step"]) == expected
    assert drawn(by_lists, names["next_of_lists"]) == drawn(by_lists, names["grows"]) == expected[:3]
    assert len(names["columns"]) == names["POSITIONS"]
    assert set(names["columns"][0]) <= set(range(names["LETTERS"]))
    assert names["second"] in range(names["LETTERS"])


def test_03_the_exported_tensors(names: dict[str, Any]) -> None:
    """The C checks itself."""
    assert "all bits as recorded" in checked(names["folder"] / "classifier", "classifier")
