"""The option of the fuzz tests."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz-examples",
        type=int,
        default=None,
        metavar="N",
        help="random programs in each fuzz test, drawn anew in every run (default: the same few)",
    )
