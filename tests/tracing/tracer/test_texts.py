"""tracer/texts.py: what numpy writes of an array is asked for at each call."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import mgjit
from mgjit.errors import PlainWarning
from mgjit.tracing.tracer.texts import _writing

numpy = pytest.importorskip("numpy")

ROW = numpy.array([0.123456789, 2.0])


class Pair(NamedTuple):
    row: Any
    number: float


PAIR = Pair(ROW, 0.5)

TEXTS = [
    "str(ROW)", "repr(ROW)", "f'{ROW}'", "'%s' % ROW", "'{}'.format(ROW)", "str([ROW])", "ROW.__str__()", "format(ROW)",
    "str(PAIR)", "f'{PAIR!r}'", "', '.join(map(str, [ROW]))", "len(str({'a': ROW}))", "ascii(ROW)",
]  # fmt: skip


@pytest.fixture(autouse=True)
def options(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those of numpy, put back; and what users have."""
    monkeypatch.delenv("MGJIT_REFUSE")
    before = numpy.get_printoptions()
    yield
    numpy.set_printoptions(**before)


@pytest.mark.parametrize("text", TEXTS)
def test_an_array_is_written_as_numpy_is_told(text: str) -> None:
    codes = [function.__code__ for function in _writing()]
    assert len(codes) == 2
    plain: Any = eval(f"lambda x: ({text}, x * 2.0)", globals())  # noqa: S307
    step = mgjit.compile(plain, background=False, verify="never")
    for precision in (8, 2, 4):
        numpy.set_printoptions(precision=precision)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlainWarning)
            assert [step(0.5), step(1.5)] == [plain(0.5), plain(1.5)]
    assert "writes an array as text" in step.stats.plain_reasons[0]
    assert [function.__code__ for function in _writing()] == codes


def test_other_threads_write_meanwhile() -> None:
    written: list[str] = []

    def step(x: float) -> float:
        thread = threading.Thread(target=lambda: written.append(str(ROW)))
        thread.start()
        thread.join()
        return x * 2.0

    assert mgjit.tracing.tracer.texts.refusing_texts(lambda: step(0.5)) == 1.0
    assert written == [str(ROW)]
