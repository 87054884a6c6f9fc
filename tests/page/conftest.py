"""One browser, one page server and two models for all tests of the page, and the page as a visitor uses it."""

import contextlib
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.helpers.processes import free_port
from tests.helpers.tiny import tiny_pipeline

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

TEXT = "The gene binds DNA."
MARKUP = "<script>window.hurt=1</script> gene <img src=x onerror=window.hurt=2> ${window.hurt=3} {{x}} `"
HOSTILE = '<img src=x onerror=window.hurt=4> "c"'  # a stranger's model, whose labels and card are markup, too
HOSTILE_LABELS = ["<img src=x onerror=window.hurt=7>", "\"'><svg onload=window.hurt=5>", "None"]
LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
PATIENCE = 60_000  # milliseconds, for results of a fresh browser on a busy machine
EXECUTABLES = ("chromium", "chromium-browser", "google-chrome")
BROWSER_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
BROWSER_OPTIONS += ["--disable-background-networking", "--disable-component-update"]


def save_model(folder: Path, encoder: str, examples: list[str], **fields) -> Path:
    """A tiny model that takes every candidate for an entity, and its card."""
    pipeline = tiny_pipeline(encoder, **fields)
    pipeline.model.head.label_bias.data[-1] -= 3
    pipeline.save_pretrained(folder)
    widget = yaml.safe_dump({"widget": [{"text": example} for example in examples]})
    (folder / "README.md").write_text(f"---\n{widget}---\n# Model\n", encoding="utf-8")
    return folder


@contextlib.contextmanager
def answered(page: "Page") -> Iterator[None]:
    """Waits until Gradio's stream of answers ends: what is asked, as no person could, meanwhile may get no answer."""
    ended: list[str] = []
    for event in ("requestfinished", "requestfailed"):  # as the browser calls it when it is the first to close a stream
        page.on(event, lambda request: ended.append(request.url))
    yield
    for _ in range(PATIENCE // 10):
        page.wait_for_timeout(10)
        if any("/queue/data" in url for url in ended):
            return
    raise TimeoutError("the stream of answers does not end")


def find(visited: "Page", text: str, awaited: str = "#drawing .text") -> "Page":
    """Asks for the entities of a text."""
    with answered(visited):
        visited.fill("#text textarea", text)
        visited.click("#find")
        visited.wait_for_selector(awaited)
    return visited


@pytest.fixture(scope="package")
def models(encoder, tmp_path_factory) -> dict[str, Path]:
    """A harmless model and a stranger's, by name."""
    folder, hostile = tmp_path_factory.mktemp("models"), {"id2label": dict(enumerate(HOSTILE_LABELS))}
    return {
        "tiny": save_model(folder / "tiny", encoder, ["protein binds gene", "gene"]),
        HOSTILE: save_model(folder / HOSTILE, encoder, [MARKUP], **hostile),
    }


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
