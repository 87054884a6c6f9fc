"""Comparison of results whose last bits depend on the processor, the number of threads or the addresses of weights."""

from typing import Any

import pytest


def nearly(value: Any, tolerance: float = 1e-5) -> Any:
    """`value`, plain data, with every float replaced by one that equals whatever is that near to it."""
    if isinstance(value, float):
        return pytest.approx(value, abs=tolerance)
    if isinstance(value, dict):
        return {key: nearly(item, tolerance) for key, item in value.items()}
    if isinstance(value, list):
        return [nearly(item, tolerance) for item in value]
    return value
