"""Images with labels to train on: the digits that come with the package, and MNIST files from a folder.

    data = mgjit.data.digits()
    data.train.images[0], data.train.labels[0]  # 64 pixels as bytes, and the digit that they show

Both are in the IDX format (big-endian header, one byte a pixel), so there is one reader.  A row of
pixels is `bytes`: it needs no conversion on the way into a compiled step.
"""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from ..errors import MgjitError

DATA = Path(__file__).resolve().parent

_UNSIGNED_BYTE = 8


class DatasetError(MgjitError, ValueError):
    """A file of images or labels is missing or damaged, or the two do not match."""


@dataclass(frozen=True)
class Split:
    """Rows of pixels and their labels; the two lists have the same length."""

    images: list[bytes]
    labels: list[int]

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, indices: list[int]) -> Split:
        """The rows at `indices`, in that order."""
        return Split([self.images[i] for i in indices], [self.labels[i] for i in indices])


@dataclass(frozen=True)
class Images:
    """Data to train and test on; `scale` is the largest value that a pixel can have."""

    name: str
    train: Split
    test: Split
    scale: int

    @property
    def pixels(self) -> int:
        """Number of pixels per image."""
        return len(self.train.images[0])


def read_idx(path: Path) -> tuple[tuple[int, ...], bytes]:
    """The shape and the bytes of an IDX file of unsigned bytes, compressed with gzip or not.

    Raises:
        DatasetError: the file cannot be read, is damaged, or holds something else.
    """
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"cannot read {path}: {error}") from error
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[3] == 0:
        raise DatasetError(f"{path} is not an IDX file: it starts with {raw[:4].hex(' ') or 'nothing'}")
    if raw[2] != _UNSIGNED_BYTE:
        raise DatasetError(f"{path} holds IDX type 0x{raw[2]:02x}; only unsigned bytes (0x08) are read here")
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise DatasetError(f"{path} ends inside its header")
    shape = struct.unpack(f">{raw[3]}I", raw[4:start])
    size = 1
    for length in shape:
        size *= length
    if len(raw) - start != size:
        found = len(raw) - start
        raise DatasetError(f"{path} promises {size:,} bytes of data for the shape {shape} and has {found:,}")
    return shape, raw[start:]


def read_pair(images: Path, labels: Path) -> Split:
    """The images of one IDX file with the labels of another.

    Raises:
        DatasetError: one of them is unusable, or they do not belong together.
    """
    shape, pixels = read_idx(images)
    label_shape, label_bytes = read_idx(labels)
    if len(shape) != 3:
        raise DatasetError(f"{images} has {len(shape)} dimensions; images have 3 (count, rows, columns)")
    if label_shape != shape[:1]:
        raise DatasetError(f"{labels} has the shape {label_shape} for {shape[0]:,} images of {images}")
    if not pixels:
        raise DatasetError(f"{images} has no image in it")
    if max(label_bytes) > 9:
        raise DatasetError(f"{labels} has the label {max(label_bytes)}; digits are 0 to 9")
    size = shape[1] * shape[2]
    return Split([pixels[k : k + size] for k in range(0, len(pixels), size)], list(label_bytes))


def digits() -> Images:
    """The shipped 1,797 digits of 8 x 8 pixels (see mgjit/data/SOURCE.md): 1,437 to train, 360 to test.

    The order is shuffled once, by a fixed seed: neighbours in the file were written by the same hand.
    `random.random()` is the only draw that Python promises to repeat in every version.

    Examples:
        >>> train = mgjit.data.digits().train
        >>> len(train), len(train.images[0]), train.labels[:5]
        (1437, 64, [6, 2, 5, 6, 9])
    """
    everything = read_pair(DATA / "digits-images-idx3-ubyte.gz", DATA / "digits-labels-idx1-ubyte.gz")
    draw = random.Random(20)
    order = sorted(range(len(everything)), key=lambda _: draw.random())
    return Images("digits", everything.part(order[:1437]), everything.part(order[1437:]), 16)


def mnist(folder: str | Path) -> Images:
    """MNIST from a folder of IDX files, gzipped or not.

    With both the train and the t10k files, the split is the published one.  With only one of the two pairs, its first
    four fifths are for training (8,000 of the 10,000 of t10k), the rest for testing.

    Raises:
        DatasetError: the folder does not exist or has neither pair, or a file is damaged.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DatasetError(f"{folder} is not a folder; it should be the folder with the MNIST files")
    train, test = _pair_in(folder, "train"), _pair_in(folder, "t10k")
    if train and test:
        if len(train.images[0]) != len(test.images[0]):
            raise DatasetError(f"the train and t10k images in {folder} differ in size")
        return Images("mnist", train, test, 255)
    only = train or test
    if only is None:
        raise DatasetError(
            f"no MNIST files in {folder}: it needs t10k-images-idx3-ubyte with t10k-labels-idx1-ubyte, "
            "or the same two beginning with train-, each with or without .gz"
        )
    if len(only) < 2:
        raise DatasetError(f"{folder} has a single image; training and testing need two at least")
    cut = max(1, len(only) * 4 // 5)
    return Images("mnist", only.part(list(range(cut))), only.part(list(range(cut, len(only)))), 255)


def _pair_in(folder: Path, prefix: str) -> Split | None:
    images = _file_in(folder, f"{prefix}-images", "idx3")
    labels = _file_in(folder, f"{prefix}-labels", "idx1")
    if images is None and labels is None:
        return None
    if images is None or labels is None:
        raise DatasetError(f"there is {images or labels}, and not its {'images' if labels else 'labels'}")
    return read_pair(images, labels)


def _file_in(folder: Path, stem: str, kind: str) -> Path | None:
    # Some distributions of MNIST unpack to `...-images.idx3-ubyte`.
    for separator in ("-", "."):
        for ending in ("", ".gz"):
            path = folder / f"{stem}{separator}{kind}-ubyte{ending}"
            if path.is_file():
                return path
    return None
