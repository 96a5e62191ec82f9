"""Some random models of equal layers; `layers.py` looks for more."""

from __future__ import annotations

import pytest

from tests.fuzz.layers import WAYS, check

pytestmark = [pytest.mark.fuzz, pytest.mark.once]


@pytest.mark.parametrize("seed", range(6))
def test_models_of_equal_layers_have_the_numbers_of_plain_python(seed: int) -> None:
    assert check(seed, **WAYS[seed]) > 0
