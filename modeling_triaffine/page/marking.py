"""Finds entities with progress reports, as a result for drawing, download and explanation."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.text_triaffine import clean_text

# Called with (sentences done, total).
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Marked:
    """A text with its entities, and the model and options that found them."""

    model: str
    threshold: float | None
    overlap: str
    text: str
    entities: list[dict[str, Any]]

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, indent=2)


def mark_text(
    pipeline: NestedNERPipeline, model: str, text: str, threshold: float | None, overlap: str, report: Report
) -> Marked:
    """Finds the entities of a text; lone surrogates, which browsers cannot display, become U+FFFD."""
    text = clean_text(text)
    total = sum(1 for _ in pipeline.processor.split_text(text))
    with _counting_sentences(pipeline.model, lambda done: report(done, total)):
        entities = pipeline(text, threshold=threshold, overlap=overlap)
    return Marked(model, threshold, overlap, text, entities)


@contextlib.contextmanager
def _counting_sentences(model: nn.Module, report: Callable[[int], None]) -> Iterator[None]:
    """Reports the number of processed sentences after each batch."""
    done = 0

    def count(_module: nn.Module, _arguments: Any, inputs: dict[str, Any], _output: Any) -> None:
        nonlocal done
        done += len(inputs["num_words"])
        report(done)

    hook = model.register_forward_hook(count, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()
