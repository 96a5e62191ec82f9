"""Notes are found by what they say, in this process and in others, and are listed."""

from __future__ import annotations

from pathlib import Path

from mgjit.compiler.cache.about import NAME as ABOUT
from mgjit.compiler.cache.key import entry_key
from mgjit.compiler.cache.notes import has_note, put_note, remove_note, this_python
from mgjit.compiler.cache.store import Store

PARTS = {"compared": "structure", "python": this_python()}


def test_01_a_note_is_found_by_its_parts(tmp_path: Path) -> None:
    """By no others, and in another process as well, whose store has nothing in memory."""
    store = Store(tmp_path)
    assert not has_note(store, PARTS)
    put_note(store, PARTS, "step (compared)")
    assert has_note(Store(tmp_path), PARTS)
    assert not has_note(store, {**PARTS, "compared": "another"})
    remove_note(store, PARTS)
    assert not has_note(Store(tmp_path), PARTS)


def test_02_a_note_says_where_it_comes_from(tmp_path: Path) -> None:
    store = Store(tmp_path)
    put_note(store, PARTS, "step (compared)")
    entry = store.get(entry_key(PARTS))
    assert entry is not None
    about = entry.metadata[ABOUT]
    assert (about["step"], about["key"]) == ("step (compared)", PARTS)
    assert entry.binary == b""
