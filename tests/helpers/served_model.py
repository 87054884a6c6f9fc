"""The requests of the tests of the HTTP service, and clients of applications."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from fastapi.testclient import TestClient

from modeling_triaffine.model.decoding_triaffine import FoundInText
from modeling_triaffine.model.pipeline_triaffine import NestedNERPipeline
from modeling_triaffine.serving import Batcher, Item, Limits, create_application
from tests.helpers.tiny import LABELS

WAIT = 60  # seconds, for what comes in far less
ANNOTATED = "Joe waited for the train . The train was late ."  # of INCEpTION's developer guide
TEXTS = ["The IL-2 gene binds protein. It is DNA!", "", "gene", "naïve café — 中文 gene"]


def by_words(text: str, entities: Sequence[dict]) -> FoundInText:
    """Entities by characters as those of a text whose characters are its words."""
    words = [(place, place + 1) for place in range(len(text))]
    return FoundInText(words, [{**one, "type": one["entity_group"]} for one in entities])


@contextlib.contextmanager
def client_of(
    find: Callable,
    model: str = "tiny",
    labels: Sequence[str] = LABELS[:-1],
    keys: Sequence[str] = (),
    body_bytes: int = 2000,
    texts: int = 64,
    waiting: int = 100,
) -> Iterator[TestClient]:
    """A client of an application with small limits, whose model runs inside the block."""
    limits = Limits(body_bytes=body_bytes, texts=5, text_characters=100, waiting=waiting)
    with batcher_of(find, texts) as batcher:
        application = create_application(batcher, model, list(labels), limits, keys)
        yield TestClient(application, raise_server_exceptions=False)


class Finder:
    """A fake pipeline that records its calls, blocks if asked to, and fails on the text "fail"."""

    def __init__(self, is_blocked: bool = False):
        self.calls: list[tuple[list[str], object]] = []
        self.is_called, self.may_go_on = threading.Event(), threading.Event()
        if not is_blocked:
            self.may_go_on.set()

    def __call__(self, texts, threshold):
        self.calls.append((list(texts), threshold))
        self.is_called.set()
        assert self.may_go_on.wait(WAIT)
        if "fail" in texts:
            raise RuntimeError("out of memory")
        return [[found_in(text)] for text in texts]


def found_in(text, label="DNA", score=0.5):
    """An entity that is the whole text."""
    return {"entity_group": label, "score": score, "word": text, "start": 0, "end": len(text)}


def items(*texts):
    return [*map(Item, texts)]


def batcher_of(find: Callable, texts: int = 64, characters: int = 1000) -> Batcher:
    """Of a pipeline, or a function of texts and threshold that gives entities by characters."""

    def fake(given, threshold, in_words):
        return list(map(by_words, given, find(given, threshold)))

    batcher = Batcher(find if isinstance(find, NestedNERPipeline) else fake)
    batcher.max_texts, batcher.max_characters = texts, characters
    return batcher


def words(answers):
    return [entity["word"] for answer in answers for entity in answer.result(WAIT)]


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not is_true():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.01)
