"""The responses of the page as HTML, error messages included."""

import logging
from typing import Any, NamedTuple

from ..explanation import explain
from .explained import show_explanation
from .marking import Marked, Report, mark_text
from .models import Models
from .views import show_drawing, show_error, show_hint, show_table

logger = logging.getLogger(__name__)

# Characters. All visitors share one model, and a running text cannot be interrupted.
LONGEST_TEXT = 200_000

NOTHING_YET = show_hint("The entities of the text will be drawn here.")
NO_TEXT = show_hint("There is no text yet: type or paste one, or choose an example.")
NOTHING_FOUND = show_hint("No entities were found.")
CHOOSE_ONE = show_hint("Choose an entity, in the drawing or in the table, to see why it was found.")
NOT_AT_HAND = show_hint("This result has expired: find the entities again, then choose one.")


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
    if len(text) > LONGEST_TEXT:
        message = f"The text has {len(text):,} characters; the limit is {LONGEST_TEXT:,}. Split it into parts."
        return Answer(show_error(message))
    try:
        pipeline = offered.pipeline(name)
        marked = mark_text(pipeline, str(name), text, threshold, overlap, report)
        labels = pipeline.model.config.entity_labels
        drawing = show_drawing(marked.text, marked.entities, labels)
    except Exception as error:
        return Answer(_show(error))
    if not marked.entities:
        return Answer(NOTHING_FOUND + drawing, marked=marked)
    return Answer(drawing, show_table(marked.text, marked.entities, labels), marked)


def explain_entity(offered: Models, marked: Marked | None, start: Any, end: Any) -> str:
    """Explains the scores of a span of the text; `start` and `end` come unchecked from the browser."""
    if marked is None:
        return NOT_AT_HAND
    try:
        return show_explanation(explain(offered.pipeline(marked.model), marked.text, (int(start), int(end))))
    except Exception as error:
        return _show(error)


def _show(error: Exception) -> str:
    """The message of an error; unexpected errors are also logged with their traceback."""
    if isinstance(error, ValueError | OSError | ImportError):
        return show_error(error)
    logger.error("The page failed on a request.", exc_info=error)
    return show_error(f"The request failed ({type(error).__name__}: {error}). See the log of the page.")
