"""One browser, one page server and two models for all tests of the page."""

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.helpers.demo_page import LAPTOP, PATIENCE, answered, find, save_models
from tests.helpers.processes import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

EXECUTABLES = ("chromium", "chromium-browser", "google-chrome")
BROWSER_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
BROWSER_OPTIONS += ["--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="package")
def models(encoder, tmp_path_factory) -> dict[str, Path]:
    return save_models(tmp_path_factory.mktemp("models"), encoder)


@pytest.fixture(scope="package")
def address(models, tmp_path_factory) -> Iterator[str]:
    """Of a page with both models, served by Gradio's threads."""
    from modeling_triaffine.page import build_page
    from modeling_triaffine.page.app import start_page

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("cache")))
        page = build_page(list(models.values()), device="cpu")
        yield start_page(page, port=free_port())
        page.close(verbose=False)


# Of this package, not of the session: while it runs, playwright's event loop is this thread's, and no other can be.
@pytest.fixture(scope="package")
def browser() -> Iterator["Browser"]:
    """Headless Chromium; without it or playwright the test is skipped."""
    executable = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    if executable is None or importlib.util.find_spec("playwright") is None:
        pytest.skip(f"needs playwright and a browser: one of {', '.join(EXECUTABLES)}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=executable, args=BROWSER_OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def context(browser: "Browser") -> Iterator["BrowserContext"]:
    """One cache for all pages: the scripts are fetched and parsed once."""
    context = browser.new_context(viewport=LAPTOP, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


class Watch:
    """The requests and errors of a page."""

    def __init__(self, page: "Page", address: str):
        self.page, self.address = page, address
        self.asked: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        with answered(page):  # the example that is drawn
            page.goto(address)
            page.wait_for_selector("#drawing .text")

    def check(self) -> None:
        """Nothing was asked of other machines and no markup has run."""
        assert self.page.evaluate("window.hurt ?? null") is None
        assert self.errors == []
        assert self.asked
        own = (f"{self.address}/", "data:", f"blob:{self.address}/")
        assert [url for url in self.asked if not url.startswith(own)] == []


@pytest.fixture(scope="package")
def open_watch(context, address) -> Watch:
    return Watch(context.new_page(), address)


@pytest.fixture
def visited(open_watch) -> Iterator["Page"]:
    """The page that all tests share, who leave model and options as they were: to open one takes seconds."""
    open_watch.page.set_viewport_size(LAPTOP)
    find(open_watch.page, "", "#drawing :text('There is no text yet')")
    yield open_watch.page
    open_watch.check()
