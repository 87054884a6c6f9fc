"""A real browser for tests of pages: headless Chromium through playwright's driver."""

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REQUIRE_SHARED

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EXECUTABLES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# Of a module, not of the session: while it runs, playwright's event loop is this thread's, and no other can be.
@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium; without it or playwright the test is skipped, or fails if TRIAFFINE_REQUIRE_SHARED is set."""
    executable = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    if executable is None:
        _do_without(f"needs a browser, none of {', '.join(EXECUTABLES)} is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _do_without("needs playwright: pip install playwright")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=executable, args=OPTIONS)
        yield chromium
        chromium.close()


def _do_without(reason: str) -> None:
    if os.environ.get(REQUIRE_SHARED):
        pytest.fail(f"{reason}; {REQUIRE_SHARED} is set, so this is a failure", pytrace=False)
    pytest.skip(reason)
