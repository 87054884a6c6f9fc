"""Fixtures that several folders share, and the conditions under which all tests run."""

import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

# What is imported stays: to look through it for garbage takes a quarter of the time of a short run.
gc.disable()

TEST_GPU = "TRIAFFINE_TEST_GPU"

# Two workers with one thread each: threads of one that wait for a core of the other cost more than they gain.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Exact numbers are those of the CPU, also on a machine with a GPU; `make test-gpu` compares a GPU with them.
if not os.environ.get(TEST_GPU):
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
# Tests never reach for the network, and tokenizers must not warn about forks.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# Servers of the tests are on this machine, whatever proxy leads away from it, and take no keys of the user's shell.
for name in ("NO_PROXY", "no_proxy"):
    os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1", "localhost"]))
os.environ.pop("TRIAFFINE_API_KEYS", None)
# What libraries keep for later stays out of the user's caches, here and in processes that tests start.
CACHES = tempfile.TemporaryDirectory(prefix="triaffine_tests_")
for name in ("HF_DATASETS_CACHE", "HF_METRICS_CACHE", "HF_MODULES_CACHE"):
    os.environ[name] = os.path.join(CACHES.name, name.lower())

# How many examples hypothesis draws for a test. A deadline for each would fail tests on a slow or busy machine.
EXAMPLES = int(os.environ.get("TRIAFFINE_EXAMPLES", "20"))
settings.register_profile(
    "tests", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("tests")
# Files that take longest, first: two workers then end together.
SLOWEST = (
    "training/test_kill_points.py",
    "test_documents.py",
    "tagging/test_tag_corpus.py",
    "publishing/test_publishing.py",
    "page/test_page.py",
    "training/test_two_process_training.py",
    "acceleration/test_kernels.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {Path(__file__).parent / name: number for number, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


def pytest_collection_finish() -> None:
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            if os.environ.get(TEST_GPU):
                pytest.fail(f"torch finds no CUDA device; {TEST_GPU} is set, so this is a failure", pytrace=False)
            pytest.skip("needs a CUDA device, and `make test-gpu`")
        torch.backends.fp32_precision = "ieee"  # as a training of another test may have left it


@pytest.fixture(scope="module", autouse=True)
def frozen() -> None:
    """Leaves what was imported out of collections: a training makes several, of a second each otherwise."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> str:
    """Folder of a tiny random BERT with its tokenizer."""
    from tests.helpers.encoders import save_encoder

    return save_encoder("bert", tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def saved_model(encoder, tmp_path_factory) -> Path:
    """Folder of a tiny model with its processor; only to be read."""
    from tests.helpers.tiny import save_tiny_model

    return save_tiny_model(tmp_path_factory.mktemp("model"), encoder)


@pytest.fixture
def command(capsys) -> Callable[..., SimpleNamespace]:
    """Runs `triaffine-ner` with arguments in this process, which takes a tenth of the time of a fresh one.

    Returns the exit `code`, and what was printed: `out` and `err`.
    """
    from modeling_triaffine.commands import main

    def run(*arguments: object) -> SimpleNamespace:
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        return SimpleNamespace(code=code, **capsys.readouterr()._asdict())

    return run


@pytest.fixture
def close_output(monkeypatch) -> Iterator[Callable[[], None]]:
    """Makes standard output a pipe whose reader has closed it, as `head` does; lines are written at once."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as output:
        yield lambda: monkeypatch.setattr(sys, "stdout", output)  # in the test: pytest sets it anew before
