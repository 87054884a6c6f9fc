"""What the tests of the HTTP service ask, and clients of applications."""

from collections.abc import Callable, Sequence

from fastapi.testclient import TestClient

from modeling_triaffine.model.decoding_triaffine import FoundInText
from modeling_triaffine.model.pipeline_triaffine import NestedNERPipeline
from modeling_triaffine.serving import Batcher, Limits, create_application
from tests.helpers.tiny import LABELS

WAIT = 60  # seconds, for what comes in far less
ANNOTATED = "Joe waited for the train . The train was late ."  # of INCEpTION's developer guide
TEXTS = ["The IL-2 gene binds protein. It is DNA!", "", "gene", "naïve café — 中文 gene"]


def by_words(text: str, entities: Sequence[dict]) -> FoundInText:
    """Entities by characters as those of a text whose characters are its words."""
    words = [(place, place + 1) for place in range(len(text))]
    kept = ("start", "end", "score")
    return FoundInText(words, [{**{name: one[name] for name in kept}, "type": one["entity_group"]} for one in entities])


def as_pipeline(find: Callable) -> Callable:
    """A fake pipeline from a function of texts and threshold that gives entities by characters."""
    if isinstance(find, NestedNERPipeline):
        return find
    return lambda texts, threshold, in_words: list(map(by_words, texts, find(texts, threshold)))


def client_of(
    find: Callable,
    model: str = "tiny",
    labels: Sequence[str] = LABELS[:-1],
    keys: Sequence[str] = (),
    body_bytes: int = 2000,
    texts: int = 64,
    waiting: int = 100,
) -> tuple[TestClient, Batcher]:
    """A client of an application with small limits, and its batcher, which does not run yet."""
    batcher = Batcher(as_pipeline(find), texts, 1000, waiting)
    limits = Limits(body_bytes=body_bytes, texts=5, text_characters=100, label_studio_seconds=90)
    return TestClient(create_application(batcher, model, list(labels), limits, keys)), batcher
