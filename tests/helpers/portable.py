"""Numeric tests that hold on every machine, although the last bits of a sum depend on its processor and threads."""

from typing import Any

import pytest

TOLERANCE = 1e-5


def near(value: Any) -> Any:
    """`value`, plain data, with every float replaced by one that equals whatever is near to it."""
    if isinstance(value, float):
        return pytest.approx(value, abs=TOLERANCE)
    if isinstance(value, dict):
        return {key: near(item) for key, item in value.items()}
    if isinstance(value, list):
        return [near(item) for item in value]
    return value
