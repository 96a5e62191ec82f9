from __future__ import annotations

import gzip
import hashlib
import struct
from pathlib import Path

import pytest

from mgjit import data as datasets

EXPECTED_TEST_LABELS = [3, 1, 4, 8, 1, 2, 6, 0, 1, 6, 1, 0, 9, 6, 0, 8, 0, 9, 3, 9]


def idx(shape: tuple[int, ...], body: bytes, kind: int = 8) -> bytes:
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + body


def write_pair(folder: Path, prefix: str, count: int, *, gz: bool = False, first_pixel: int = 0) -> None:
    """`count` images of 2 x 3 pixels; image k is `first_pixel + k` all over and its label is k % 10."""
    images = idx((count, 2, 3), b"".join(bytes([(first_pixel + k) % 256]) * 6 for k in range(count)))
    labels = idx((count,), bytes(k % 10 for k in range(count)))
    for name, content in (("images-idx3-ubyte", images), ("labels-idx1-ubyte", labels)):
        path = folder / f"{prefix}-{name}{'.gz' if gz else ''}"
        path.write_bytes(gzip.compress(content) if gz else content)


class TestReadIdx:
    @pytest.mark.parametrize("gz", [False, True])
    def test_reads_shape_and_bytes(self, tmp_path: Path, gz: bool) -> None:
        content = idx((2, 3), b"abcdef")
        path = tmp_path / "file"
        path.write_bytes(gzip.compress(content) if gz else content)
        assert datasets.read_idx(path) == ((2, 3), b"abcdef")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "starts with nothing"),
            (b"PK\x03\x04", "not an IDX file"),
            (idx((), b""), "not an IDX file"),
            (idx((1,), b"abcd", kind=0x0D), "type 0x0d"),
            (idx((5,), b"")[:6], "inside its header"),
            (idx((5,), b"abcd"), "promises 5 bytes"),
            (idx((5,), b"abcdef"), "promises 5 bytes"),
            (gzip.compress(idx((5,), b"abcde"), mtime=0)[:-9], "cannot read"),
            (b"\x1f\x8bnot really gzip", "cannot read"),
        ],
    )
    def test_damage_is_named_with_the_file(self, tmp_path: Path, content: bytes, message: str) -> None:
        path = tmp_path / "broken"
        path.write_bytes(content)
        with pytest.raises(datasets.DatasetError, match=message) as caught:
            datasets.read_idx(path)
        assert str(path) in str(caught.value)

    def test_a_damaged_gzip_body_is_named(self, tmp_path: Path) -> None:
        raw = bytearray(gzip.compress(idx((300,), bytes(range(150)) * 2)))
        raw[20] ^= 0xFF
        path = tmp_path / "broken.gz"
        path.write_bytes(raw)
        with pytest.raises(datasets.DatasetError, match="cannot read"):
            datasets.read_idx(path)

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(datasets.DatasetError, match="cannot read"):
            datasets.read_idx(tmp_path / "nothing")


class TestReadPair:
    @pytest.mark.parametrize(
        ("images", "labels", "message"),
        [
            (idx((2, 6), bytes(12)), idx((2,), bytes(2)), "has 2 dimensions"),
            (idx((2, 2, 3), bytes(12)), idx((3,), bytes(3)), r"\(3,\) for 2 images"),
            (idx((1, 2, 3), bytes(6)), idx((1,), b"\x0a"), "label 10"),
            (idx((0, 2, 3), b""), idx((0,), b""), "no image"),
        ],
    )
    def test_files_that_do_not_fit(self, tmp_path: Path, images: bytes, labels: bytes, message: str) -> None:
        (tmp_path / "i").write_bytes(images)
        (tmp_path / "l").write_bytes(labels)
        with pytest.raises(datasets.DatasetError, match=message):
            datasets.read_pair(tmp_path / "i", tmp_path / "l")


class TestDigits:
    def test_the_data_is_what_the_source_file_says(self) -> None:
        shape, pixels = datasets.read_idx(datasets.DATA / "digits-images-idx3-ubyte.gz")
        _, labels = datasets.read_idx(datasets.DATA / "digits-labels-idx1-ubyte.gz")
        assert shape == (1797, 8, 8)
        assert hashlib.sha256(pixels + labels).hexdigest() in (datasets.DATA / "SOURCE.md").read_text("utf-8")

    def test_rows_are_bytes_and_labels_ints(self) -> None:
        data = datasets.digits()
        assert data.pixels == 64
        for split in (data.train, data.test):
            assert all(type(row) is bytes and len(row) == 64 for row in split.images)
            assert set(split.labels) == set(range(10))
        assert max(map(max, data.train.images)) == data.scale == 16

    def test_the_split_is_fixed_and_keeps_every_image(self) -> None:
        data, again = datasets.digits(), datasets.digits()
        assert data == again
        assert (len(data.train), len(data.test)) == (1437, 360)
        # Written down from the first run: another order would make every published accuracy wrong.
        assert data.test.labels[:20] == EXPECTED_TEST_LABELS
        _, pixels = datasets.read_idx(datasets.DATA / "digits-images-idx3-ubyte.gz")
        rows = [pixels[k : k + 64] for k in range(0, len(pixels), 64)]
        assert sorted(data.train.images + data.test.images) == sorted(rows)


class TestMnist:
    @pytest.mark.parametrize("gz", [False, True])
    def test_both_pairs(self, tmp_path: Path, gz: bool) -> None:
        write_pair(tmp_path, "train", 7, gz=gz)
        write_pair(tmp_path, "t10k", 3, gz=not gz, first_pixel=100)
        data = datasets.mnist(tmp_path)
        assert data.train.images == [bytes([k]) * 6 for k in range(7)]
        assert data.test.images == [bytes([100 + k]) * 6 for k in range(3)]
        assert data.test.labels == [0, 1, 2]
        assert (data.scale, data.pixels) == (255, 6)

    @pytest.mark.parametrize("prefix", ["train", "t10k"])
    def test_one_pair_is_divided_four_to_one(self, tmp_path: Path, prefix: str) -> None:
        write_pair(tmp_path, prefix, 10)
        data = datasets.mnist(tmp_path)
        assert [row[0] for row in data.train.images] == [0, 1, 2, 3, 4, 5, 6, 7]
        assert [row[0] for row in data.test.images] == [8, 9]

    def test_names_with_a_dot(self, tmp_path: Path) -> None:
        write_pair(tmp_path, "t10k", 5)
        for path in list(tmp_path.iterdir()):
            path.rename(path.with_name(path.name.replace("-idx", ".idx")))
        assert len(datasets.mnist(tmp_path).train) == 4

    def test_no_such_folder(self, tmp_path: Path) -> None:
        with pytest.raises(datasets.DatasetError, match="is not a folder"):
            datasets.mnist(tmp_path / "nothing")

    def test_empty_folder_tells_the_names(self, tmp_path: Path) -> None:
        with pytest.raises(datasets.DatasetError, match="t10k-images-idx3-ubyte"):
            datasets.mnist(tmp_path)

    def test_images_without_labels(self, tmp_path: Path) -> None:
        write_pair(tmp_path, "train", 3)
        (tmp_path / "train-labels-idx1-ubyte").unlink()
        with pytest.raises(datasets.DatasetError, match="not its labels"):
            datasets.mnist(tmp_path)

    def test_a_single_image_cannot_be_divided(self, tmp_path: Path) -> None:
        write_pair(tmp_path, "train", 1)
        with pytest.raises(datasets.DatasetError, match="single image"):
            datasets.mnist(tmp_path)

    def test_sizes_that_differ(self, tmp_path: Path) -> None:
        write_pair(tmp_path, "train", 3)
        write_pair(tmp_path, "t10k", 3)
        (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx((3, 2, 2), bytes(12)))
        with pytest.raises(datasets.DatasetError, match="differ in size"):
            datasets.mnist(tmp_path)
