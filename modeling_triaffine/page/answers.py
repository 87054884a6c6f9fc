"""The responses of the page as HTML: drawing and table, explanation, or an error message; all input is escaped."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from torch import nn

from ..drawing import draw_entities_html
from ..drawing.predictions_page import predictions_page
from ..drawing.safe_text import html_text
from ..drawing.templates import render_html
from ..explanation import explain
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.text_triaffine import clean_text
from .explained import show_explanation
from .models import Models

logger = logging.getLogger(__name__)

# Called with (sentences done, total).
Report = Callable[[int, int], None]
# Characters. All visitors share one model, and a running text cannot be interrupted.
LONGEST_TEXT = 200_000
# With more entities, or characters of text, the drawing and the table scroll in boxes of their own.
MOST_IN_SIGHT, LONGEST_IN_SIGHT = 200, 6000

HINT = '<p class="hint">{}</p>'
NOTHING_YET = HINT.format("The entities of the text will be drawn here.")
NO_TEXT = HINT.format("There is no text yet. Type or paste one, or choose an example.")
NOTHING_FOUND = HINT.format("No entities were found.")
CHOOSE_ONE = HINT.format(
    "Choose an entity, in the drawing or in the table, to see why it was found. On the keyboard, arrows move between "
    "entities, and Enter chooses."
)
TEXT_HAS_CHANGED = (
    '<div role="status"><p>The text has changed since these entities were found. Find the entities again.</p></div>'
)
NOT_AT_HAND = HINT.format("This result has expired. Find the entities again, then choose one.")


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

    def to_html(self) -> str:
        return predictions_page([(self.text, self.entities)], self.model)


class Answer(NamedTuple):
    """The drawing or a message, the table (empty without entities), and the result, if any."""

    drawing: str
    table: str = ""
    marked: Marked | None = None


def find_entities(
    offered: Models, name: str | None, text: str | None, threshold: float | None, overlap: str, report: Report
) -> Answer:
    """Runs the model of this name on the text; `threshold` and `overlap` as for the pipeline."""
    if text is None or not text.strip():
        return Answer(NO_TEXT)
    try:
        if len(text) > LONGEST_TEXT:
            raise ValueError(f"The text has {len(text):,} characters; the limit is {LONGEST_TEXT:,}.")
        pipeline = offered.pipeline(name)
        text = clean_text(text)  # lone surrogates, which browsers cannot display, become U+FFFD
        with reporting(pipeline, text, report):
            entities = pipeline(text, threshold=threshold, overlap=overlap)
        drawing, table = show_entities(text, entities, pipeline.model.config.entity_labels)
    except Exception as error:
        return Answer(show_error(error))
    marked = Marked(str(name), threshold, overlap, text, entities)
    return Answer(drawing, table, marked) if entities else Answer(NOTHING_FOUND + drawing, marked=marked)


@contextmanager
def reporting(pipeline: NestedNERPipeline, text: str, report: Report) -> Iterator[None]:
    """Reports the sentences that pass through the model."""
    done, total = 0, sum(1 for _ in pipeline.processor.split_text(text))

    def count(_module: nn.Module, _arguments: Any, inputs: dict[str, Any], _output: Any) -> None:
        nonlocal done
        done += len(inputs["num_words"])
        report(done, total)

    hook = pipeline.model.register_forward_hook(count, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def show_entities(text: str, entities: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> tuple[str, str]:
    """The drawing, and a table with a row for each entity, which has the colour and data attributes of its bracket."""
    is_long = len(entities) > MOST_IN_SIGHT or len(text) > LONGEST_IN_SIGHT
    drawing = draw_entities_html(text, entities, labels)
    kinds = {label: kind for kind, label in enumerate(labels)}
    table = render_html("page/entities.html", entities=entities, kinds=kinds, is_long=is_long)
    return f'<div class="long">{drawing}</div>' if is_long else drawing, table


def explain_entity(offered: Models, marked: Marked | None, start: Any, end: Any) -> str:
    """Explains the scores of a span of the text; `start` and `end` come unchecked from the browser."""
    if marked is None:
        return NOT_AT_HAND
    try:
        pipeline = offered.pipeline(marked.model)
        return show_explanation(explain(pipeline, marked.text, (int(start), int(end)), marked.threshold))
    except Exception as error:
        return show_error(error)


def show_error(error: Exception) -> str:
    """The message of an error as one paragraph; unexpected errors are also logged with their traceback."""
    message = str(error)
    if not isinstance(error, ValueError | OSError | ImportError):
        logger.error("The page failed on a request.", exc_info=error)
        message = f"The request failed ({type(error).__name__}: {message}). See the log of the page."
    return f'<p class="error" role="alert">{html_text(message)}</p>'
