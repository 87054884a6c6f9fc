"""Where other projects look for `load_golden`."""

from tests.helpers.reference import load_golden

__all__ = ["load_golden"]
