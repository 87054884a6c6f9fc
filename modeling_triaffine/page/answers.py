"""The offered models, and their answers as HTML: drawing and table, explanation, or an error; all input is escaped."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from huggingface_hub import metadata_load
from markupsafe import escape
from transformers.utils import cached_file

from ..drawing import draw_entities_html
from ..drawing.predictions_page import render_html
from ..drawing.safe_text import LONGEST_LABEL, shorten
from ..explanation import Explanation, explain, format_explanation
from ..explanation.explaining import Row, describe_span, likeliest_labels, make_stages, number_text, probability_text
from ..installed_models import find_model, public_names
from ..model.kinds_triaffine import NONE_LABEL
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.text_triaffine import clean_text

logger = logging.getLogger(__name__)

MOST_LOADED = 4  # models
LONGEST_TEXT = 200_000  # characters: all visitors share one model, and a running text cannot be interrupted
MOST_LABELS = 3  # of an explanation, whose columns fit on a phone; its text version has all
MOST_NAMED, LEAST_NAMED = 3, 0.1  # words or entities that are named for a label; their least contribution, a logit
LONGEST_TITLE = 100  # characters

HINT = '<p class="hint">{}</p>'
NOTHING_YET = HINT.format("The entities of the text will be drawn here.")
NO_TEXT = HINT.format("There is no text yet. Type or paste one, or choose an example.")
NOTHING_FOUND = HINT.format("No entities were found.")
CHOOSE_ONE = HINT.format(
    "Choose an entity, in the drawing or in the table, to see why it was found. On the keyboard, arrows move between "
    "entities, and Enter chooses."
)
EXPIRED = HINT.format("This result has expired. Find the entities again, then choose one.")


class Models:
    """Models by display name ([`public_names`] of folders and Hub ids); those that were used last stay loaded."""

    def __init__(self, places: Sequence[str | os.PathLike[str]], device: str | None = None):
        paths = [find_model(str(place)) for place in places]
        self.places = dict(zip(public_names(paths), paths, strict=True))
        self.device = device
        self.pipeline = lru_cache(MOST_LOADED)(self._load)

    def _load(self, name: str) -> NestedNERPipeline:
        # The package's own classes load the model from safetensors; code in its repository never runs.
        return NestedNERPipeline(model=self.places[name], device=self.device, disable_mmap=True)  # a file may change

    def examples(self) -> list[str]:
        """Returns the widget texts of the first model's card, which is optional."""
        try:
            card = cached_file(next(iter(self.places.values())), "README.md") or ""
            return [str(example["text"]) for example in (metadata_load(card) or {})["widget"]]
        except Exception:  # also of malformed YAML in a card
            return []


@dataclass(frozen=True)
class PageResult:
    """A text with its entities, and the model and threshold that found them."""

    model: str
    threshold: float | None
    text: str
    entities: list[dict[str, Any]]


def find_entities(
    offered: Models, name: str, text: str | None, threshold: float | None, overlap: str
) -> tuple[str, str, PageResult | None]:
    """The drawing of what the model of this name finds, or a message; the table, empty without entities; the result."""
    if text is None or not text.strip():
        return NO_TEXT, "", None
    if len(text) > LONGEST_TEXT:
        return HINT.format(f"The text has {len(text):,} characters; the limit is {LONGEST_TEXT:,}."), "", None
    try:
        pipeline = offered.pipeline(name)
        text = clean_text(text)  # lone surrogates, which browsers cannot display, become U+FFFD
        entities = pipeline(text, threshold=threshold, overlap=overlap)
        labels = pipeline.model.config.entity_labels
        drawing = draw_entities_html(text, entities, labels)
        kinds = {label: kind for kind, label in enumerate(labels)}
        table = render_html("page/entities.html", entities=entities, kinds=kinds) if entities else ""
    except Exception as error:
        return show_error(error), "", None
    return ("" if entities else NOTHING_FOUND) + drawing, table, PageResult(name, threshold, text, entities)


def explain_entity(offered: Models, result: PageResult | None, start: Any, end: Any) -> str:
    """Explains the scores of a span of the text; `start` and `end` come unchecked from the browser."""
    if result is None:
        return EXPIRED
    try:
        pipeline = offered.pipeline(result.model)
        return show_explanation(explain(pipeline, result.text, (int(start), int(end)), result.threshold))
    except Exception as error:
        return show_error(error)


def show_explanation(explanation: Explanation) -> str:
    """The probabilities and the terms of the scores, with the text version of `triaffine-ner explain` below."""
    shown = likeliest_labels(explanation)[:MOST_LABELS]
    names, before, after = explanation.labels, explanation.span_stage.probabilities, explanation.final.probabilities
    bars = {"before the cross-span stage": before, "after it": after} if explanation.is_candidate else {"": before}
    return render_html(
        "page/explanation.html",
        title=shorten(explanation.span.text, LONGEST_TITLE),
        subtitle=describe_span(explanation),
        summary=in_plain_words(explanation),
        names=names,
        shown=shown,
        kinds={name: kind for kind, name in enumerate(names) if name != NONE_LABEL},
        shorten=partial(shorten, longest=LONGEST_LABEL),
        bars=[Row(name, values, values) for name, values in bars.items()],
        stages=make_stages(explanation),
        probability_text=probability_text,
        number_text=number_text,
        left_out=len(names) - len(shown),
        text=escape(format_explanation(explanation)),
    )


def in_plain_words(explanation: Explanation) -> str:
    """Names the words and the candidates that contribute most to the predicted label, compared with the mean label."""
    predicted = likeliest_labels(explanation)[0]

    def speaks_for_it(row: Row) -> float:
        return row.numbers[predicted] - sum(row.numbers) / len(row.numbers)

    sentences = []
    for stage, kind in zip(make_stages(explanation), ("words", "possible entities of the sentence"), strict=False):
        clear = [row for row in stage.rows if row.attention and speaks_for_it(row) >= LEAST_NAMED]
        terms = sorted(clear, key=speaks_for_it, reverse=True)[:MOST_NAMED]
        if named := ", ".join(f"“{row.title}”" for row in terms):
            sentences.append(f"These {kind} speak most for {explanation.labels[predicted]}: {named}.")
    return " ".join(sentences)


def show_error(error: Exception) -> str:
    """Returns one paragraph; the log has the traceback, which may say where on this machine models are."""
    logger.error("The page failed on a request.", exc_info=error)
    return '<p class="error" role="alert">The request failed; the log of the page says why.</p>'
