from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from mgjit.cli import curve


class TestColumns:
    def test_fewer_values_than_columns_stay_as_they_are(self) -> None:
        assert curve.columns([3.0, 1.0, 2.0], 10) == [3.0, 1.0, 2.0]

    def test_equal_stretches_are_averaged(self) -> None:
        assert curve.columns([1.0, 3.0, 5.0, 7.0], 2) == [2.0, 6.0]

    def test_every_value_belongs_to_one_stretch(self) -> None:
        means = curve.columns([1.0] * 1001, 64)
        assert means == [1.0] * 64

    def test_infinities_are_left_out(self) -> None:
        means = curve.columns([1.0, math.inf, math.nan, -math.inf], 2)
        assert means[0] == 1.0
        assert math.isnan(means[1])

    def test_nothing(self) -> None:
        assert curve.columns([], 5) == []


class TestRender:
    def test_a_falling_line(self) -> None:
        assert curve.render([4.0, 3.0, 2.0, 1.0], height=2, encoding="utf-8").splitlines() == [
            "4 ┤█▄",
            "  ┤███▄",
            "0 └────",
        ]

    def test_ascii_when_the_stream_takes_nothing_else(self) -> None:
        text = curve.render([4.0, 3.0, 2.0, 1.0], height=4, encoding="ascii")
        assert text.isascii()
        assert text.splitlines() == ["4 |#", "  |##", "  |###", "  |####", "0 +----"]

    @pytest.mark.parametrize("encoding", [None, "no-such-encoding", "latin-1"])
    def test_unknown_or_poor_encodings_get_ascii(self, encoding: str | None) -> None:
        assert curve.render([1.0, 2.0], encoding=encoding).isascii()

    def test_at_most_as_wide_and_high_as_asked(self) -> None:
        lines = curve.render([float(k % 7) for k in range(5000)], width=30, height=5).splitlines()
        assert len(lines) == 6
        assert max(len(line.split("┤")[-1]) for line in lines[:-1]) == 30

    def test_negative_values_lower_the_base(self) -> None:
        lines = curve.render([-2.0, 0.0, 2.0], height=2, encoding="ascii").splitlines()
        assert lines == [" 2 |  #", "   | ##", "-2 +---"]

    def test_a_constant_zero_is_a_flat_line(self) -> None:
        assert curve.render([0.0, 0.0], height=1, encoding="ascii").splitlines() == ["0 |", "0 +--"]

    def test_a_stretch_without_finite_values_is_a_gap(self) -> None:
        assert curve.render([1.0, math.nan, 1.0], height=1, encoding="ascii").splitlines()[0] == "1 |# #"

    def test_the_largest_floats_do_not_overflow(self) -> None:
        top = sys.float_info.max
        lines = curve.render([-top, 0.0, top], height=2, encoding="ascii").splitlines()
        assert [line.split("|")[-1] for line in lines[:2]] == ["  #", " ##"]
        assert curve.render([top, top, 0.0], width=1, encoding="ascii") == "(no finite value to draw)"

    @pytest.mark.parametrize("values", [[], [math.nan], [math.inf, -math.inf]])
    def test_nothing_to_draw(self, values: list[float]) -> None:
        assert curve.render(values) == "(no finite value to draw)"

    def test_no_control_characters(self) -> None:
        text = curve.render([1.0, 0.5, 0.1])
        assert all(character.isprintable() for character in text.replace("\n", ""))


class TestPng:
    def test_without_matplotlib_the_error_says_how_to_get_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(curve.PlotError, match=r"mgjit\[plot\]"):
            curve.save_png(tmp_path / "a.png", [1.0], title="t", xlabel="x", ylabel="y")

    def test_the_file_is_a_png(self, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        path = tmp_path / "loss.png"
        curve.save_png(path, [2.0, math.nan, 1.0], title="a title", xlabel="image", ylabel="loss")
        assert path.read_bytes().startswith(b"\x89PNG\r\n")

    def test_a_missing_folder_is_found_before_the_work(self, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        with pytest.raises(curve.PlotError, match="folder does not exist"):
            curve.check_png(tmp_path / "nothing" / "a.png")

    def test_a_path_that_cannot_be_written(self, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        with pytest.raises(curve.PlotError, match="cannot save"):
            curve.save_png(tmp_path, [1.0], title="t", xlabel="x", ylabel="y")
