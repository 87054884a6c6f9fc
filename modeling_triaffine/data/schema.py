"""The one schema of all corpora: texts, sentences of words, their entities, and the error for what fits neither.

Needs no library; `features.py` has the schema as the library `datasets` holds it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NotRequired, TypedDict

from ..model.text_triaffine import Offsets

CONTEXT_FIELDS = ("left_tokens", "right_tokens")
TO_DATASET = (
    "Make a data set of one record for each text or sentence with datasets.Dataset.from_list; "
    "docs/corpora.md#a-table-spreadsheet-or-dataframe shows how to group the rows of a table"
)
OF_TABLES = (
    "docs/corpora.md#a-table-spreadsheet-or-dataframe converts a table of entities with pandas; adapt_dataset converts "
    "a data set"
)


class Entity(TypedDict):
    """One entity by its positions `start` and `end` (exclusive), counted in words or in characters.

    Examples:
        >>> from modeling_triaffine.data import Entity
        >>> Entity(start=0, end=2, type="Person")
        {'start': 0, 'end': 2, 'type': 'Person'}
    """

    start: int
    end: int
    type: str


class Record(TypedDict):
    """One sentence, in the form of `FEATURES`."""

    id: str
    doc_id: str
    sent_id: int
    tokens: list[str]
    pos: list[str]
    entities: list[Entity]
    left_tokens: list[str] | None
    right_tokens: list[str] | None


RECORD_FIELDS = tuple(Record.__annotations__)
ENTITY_FIELDS = tuple(Entity.__annotations__)


class Text(TypedDict):
    """A text of a corpus, as every reader returns it. Positions count characters.

    A corpus of words alone gives its words, joined by spaces. `doc_id` names the text. Of the optional fields, the
    corpus gives `borders` (positions that no sentence crosses), `sentences` with their `sentence_ids` and the number of
    the `first_sentence` (without them, a splitter finds sentences), its own `words` with their `pos`, `left_tokens` and
    `right_tokens` (context of a single sentence) and the `split`. If several words share characters, `forms` are the
    words as written, and `word_entities` count words. `where` is the place in the corpus, for messages.

    Examples:
        >>> from modeling_triaffine.data import Text
        >>> Text(doc_id="news-1", text="Orsk", entities=[{"start": 0, "end": 4, "type": "City"}])["text"]
        'Orsk'
    """

    doc_id: str
    text: str
    entities: list[Entity]
    borders: NotRequired[list[int]]
    sentences: NotRequired[list[Offsets]]
    sentence_ids: NotRequired[list[str]]
    first_sentence: NotRequired[int]
    words: NotRequired[list[Offsets]]
    pos: NotRequired[list[str]]
    forms: NotRequired[list[str]]
    word_entities: NotRequired[list[Entity]]
    left_tokens: NotRequired[list[str]]
    right_tokens: NotRequired[list[str]]
    split: NotRequired[str]
    where: NotRequired[str]


class CorpusError(ValueError):
    """A corpus file cannot be read; the message says where, what is wrong and what to do.

    Examples:
        >>> from modeling_triaffine.data import CorpusError
        >>> CorpusError.at("a.jsonl", "line 1", "field 'end' is missing", "Add it")
        CorpusError("a.jsonl, line 1: field 'end' is missing. Add it.")
    """

    summary = ""
    """Place and problem, without the remedy."""

    @classmethod
    def at(cls, path: Path | str, where: str, problem: str, remedy: str) -> CorpusError:
        """`where` is a place in the file ("line 3"), or empty for the file as a whole."""
        place = f"{path}, {where}" if where else str(path)
        error = cls(f"{place}: {problem}. {remedy}.")
        error.summary = f"{place}: {problem}"
        return error
