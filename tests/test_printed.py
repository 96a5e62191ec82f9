"""docs/ir.md, docs/passes.md and docs/how-it-works show what the passes and the printer make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from mgjit.compiler.pipeline.order import PASSES
from mgjit.ir.printer import print_program
from tests import printed
from tests.lowering import STAGES
from tests.nests import random_choosing, random_program

pytestmark = pytest.mark.once

IR, PASSES_MD, _ = (document.read_text(encoding="utf-8") for document in printed.DOCUMENTS)


@pytest.mark.parametrize("document", printed.DOCUMENTS, ids=lambda path: path.name)
def test_01_every_block_is_true(document: Path) -> None:
    """Otherwise run `python -m tests.printed --write`, and read what has changed."""
    text = document.read_text(encoding="utf-8")
    filled = printed.filled(text)
    assert filled == text
    assert filled.count("```") >= 10


def test_02_a_block_that_is_not_true() -> None:
    """It would be noticed."""
    changed = PASSES_MD.replace("multiply(p0[i], x0[i])", "multiply(x0[i], p0[i])")
    assert changed != PASSES_MD
    assert printed.filled(changed) == PASSES_MD


def test_03_every_pass_has_a_section() -> None:
    """In their order; what is shown before and after differs, and the section says why the pass exists."""
    titles = [title.split(", ") for title in re.findall(r"^## (.*)$", PASSES_MD, re.MULTILINE)]
    assert sorted(name for title in titles for name in title) == sorted(["lift", *(one.name for one in PASSES)])
    first = [STAGES.index(title[0]) for title in titles]
    assert first == sorted(first)
    for section in PASSES_MD.split("\n## ")[1:]:
        prose = section.partition("\n")[2].partition("<!--")[0]
        assert len(prose.split()) >= 10, section
        for what in re.findall(r"<!-- (\w+ before [^\n]*) -->", section):
            after = what.replace(" before ", " after ", 1)
            assert f"<!-- {after} -->" in section
            assert printed.block(what) != printed.block(after), what


# ---- the grammar ------------------------------------------------------------------------------------------


class Grammar:
    """Recognises what a grammar in docs/ir.md describes, by trying everything."""

    def __init__(self, text: str) -> None:
        self.rules = {name: self.parsed(rule) for name, rule in re.findall(r"^(\w+) += (.*)$", text, re.MULTILINE)}

    def parsed(self, rule: str) -> object:
        """A rule as nested tuples: of alternatives, which are lists of words."""
        words = re.findall(r'"[^"]*"|/(?:[^/])*/|[\[\]{}|]|\w+', rule)
        words.append("")

        def alternatives(end: str) -> tuple[str, list[list[object]]]:
            found: list[list[object]] = [[]]
            while words[0] != end:
                word = words.pop(0)
                if word == "|":
                    found.append([])
                elif word in "[{":
                    found[-1].append((word, alternatives("]" if word == "[" else "}")[1]))
                else:
                    found[-1].append(word)
            words.pop(0)
            return end, found

        return alternatives("")[1]

    def matches(self, text: str) -> bool:
        """Whether a text is a line."""

        @cache
        def ends_of_rule(name: str, start: int) -> frozenset[int]:
            return frozenset(ends_of_any(self.rules[name], start))

        def ends_of_any(options: object, start: int) -> Iterator[int]:
            assert isinstance(options, list)
            for option in options:
                yield from ends(option, start)

        def ends(option: list[object], start: int) -> Iterator[int]:
            if not option:
                yield start
                return
            for middle in set(ends_of_word(option[0], start)):
                yield from ends(option[1:], middle)

        def ends_of_word(word: object, start: int) -> Iterator[int]:
            if isinstance(word, tuple):
                yield start
                for middle in set(ends_of_any(word[1], start)):
                    if middle > start:
                        yield from ends_of_word(word, middle) if word[0] == "{" else [middle]
            elif isinstance(word, str) and word[0] == '"':
                if text.startswith(word[1:-1], start):
                    yield start + len(word) - 2
            elif isinstance(word, str) and word[0] == "/":
                for end in range(start + 1, len(text) + 1):
                    if re.fullmatch(word[1:-1], text[start:end]):
                        yield end
            else:
                assert isinstance(word, str)
                yield from ends_of_rule(word, start)

        return len(text) in ends_of_rule("line", 0)


GRAMMAR = Grammar(IR[IR.index("```ebnf") :].partition("```\n")[0])


def test_04_the_grammar_describes_what_is_printed() -> None:
    """All blocks of both documents, and random Programs."""
    blocks = re.findall(r"```text\n(.*?)```", IR + PASSES_MD, re.DOTALL)
    texts = [*blocks, *(print_program(make(seed)) for seed in range(20) for make in (random_program, random_choosing))]
    lines = {line.strip() for text in texts for line in text.splitlines()}
    assert len(lines) > 300
    assert [line for line in lines if not GRAMMAR.matches(line)] == []
    used = {rule for rule in GRAMMAR.rules if any(rule in line for line in IR.splitlines())}
    assert used == set(GRAMMAR.rules)


@pytest.mark.parametrize(
    "line",
    [
        "for i in 0 .. :", "for i in 3 .. 1:", "for i in 0 .. 3", "%0 = add(p0[i], )", "add(p0[i], 1.0)", "t0[i] = 1.0",
        "%0 = t0 = copy(1.0)", "%0 = copy((1.0 if i == 1 else 2.0))", "block", "tables: entries", "nothing",
        "%0 = t0[i + + 1] = copy(1.0)", "padded rows of p0: 3 x 4", "for i in 0 .. 3, as lanes, 4 at once:",
    ],
)  # fmt: skip
def test_05_and_nothing_else(line: str) -> None:
    """What is not printed."""
    assert not GRAMMAR.matches(line)
