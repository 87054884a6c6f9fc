"""Texts → sentences of the wanted words, with the entities that align with them; and words of a corpus → texts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from ..model.options_triaffine import ProcessorOptions
from ..model.text_triaffine import INVISIBLE_SPACES, Offsets, check_words, split_text
from ..model.text_triaffine import sentence_splitter as named_sentence_splitter
from ..model.text_triaffine import word_splitter as named_word_splitter
from .schema import LOST_ACROSS_SENTENCES, Entity, Record, RecordChecker, Text, in_context, without_space

DEFAULT_SENTENCE_SPLITTER = ProcessorOptions.sentence_splitter

# ---- Words of a corpus → texts ----


class WrittenSentence(NamedTuple):
    """A sentence in the words of the corpus, as the checker returns it, and as written; else spaces join the words."""

    record: Record
    text: str = ""
    offsets: Sequence[Offsets] = ()  # of the words in the text
    gap: str = "\n"  # between it and the sentence before


def text_of_sentences(sentences: Iterable[WrittenSentence], where: str, split: str | None = None) -> Text:
    """Joins sentences, at least one, that follow each other in a document, to a text."""
    whole = ""
    spans: list[Offsets] = []
    words: list[Offsets] = []
    word_entities: list[Entity] = []
    records: list[Record] = []
    for record, text, offsets, gap in sentences:
        written, places = (text, offsets) if text else join_tokens(record["tokens"])
        whole += gap if records else ""
        first, first_word = len(whole), len(words)
        whole += written
        spans.append((first, len(whole)))
        words += [(first + start, first + end) for start, end in places]
        word_entities += [moved(entity, first_word) for entity in record["entities"]]
        records.append(record)
    tokens = [token for record in records for token in record["tokens"]]
    made = Text(
        doc_id=records[0]["doc_id"],
        text=whole,
        entities=by_characters(word_entities, words),
        sentences=spans,
        sentence_ids=[record["id"] for record in records],
        first_sentence=records[0]["sent_id"],
        words=words,
        where=where,
    )
    if tokens != [whole[start:end] for start, end in words]:
        made["forms"] = tokens
    # An entity's characters do not tell its words if words share characters, or white space at its ends is a word.
    shares_characters = any(start < end for (_, end), (start, _) in pairwise(words))
    if shares_characters or any(entity != without_space(whole, entity) for entity in made["entities"]):
        made["word_entities"] = word_entities
    if any(record["pos"] for record in records):
        made["pos"] = [tag for record in records for tag in record["pos"] or [""] * len(record["tokens"])]
    if len(records) == 1 and records[0]["left_tokens"] is not None:
        made["left_tokens"], made["right_tokens"] = records[0]["left_tokens"], records[0]["right_tokens"] or []
    if split is not None:
        made["split"] = split
    return made


def text_of_words(fields: Mapping[str, Any], where: str, check: RecordChecker) -> Text:
    """The text of one sentence in the words of the corpus, with the fields that the checker takes."""
    return text_of_sentences([WrittenSentence(check(fields, where))], where)


def moved(entity: Entity, by: int) -> Entity:
    return Entity(start=entity["start"] + by, end=entity["end"] + by, type=entity["type"])


def is_written(text: Text) -> bool:
    """True if the text is as written, not the words of a corpus joined by spaces, one sentence per line."""
    gaps = (text["text"][end:start] for (_, end), (start, _) in pairwise(text.get("words", ())))
    return "words" not in text or any(gap not in (" ", "\n") for gap in gaps)


# ---- Texts → sentences of words ----


def sentences_of(
    text: Text,
    check: RecordChecker,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
    own_words: bool = False,
) -> Iterator[Record]:
    """The sentences of a text with its entities, counted in words. What is lost is counted.

    Args:
        word_splitter: text → [(start, end)] of its words; None takes those of the corpus, or else those of raw text.
        sentence_splitter: "punctuation", "lines" or "none", for texts whose sentences the corpus does not mark.
        own_words: use the splitter only for texts without words of the corpus.
    """
    written = text["text"]
    spans = text.get("sentences") or [
        (first + start, first + end)
        for first, last in pairwise((0, *text.get("borders", ()), len(written)))
        for start, end in named_sentence_splitter(sentence_splitter)(written[first:last])
    ]
    in_own_words = "words" in text and (own_words or word_splitter is None)
    splitter = partial(split_words, word_splitter=word_splitter or named_word_splitter(ProcessorOptions.word_splitter))
    if in_own_words:
        words, tags = text["words"], text.get("pos", [])
        starts = [start for start, _ in words]
        borders = [tuple(bisect_left(starts, border) for border in span) for span in spans]
    else:
        split = list(split_text(written, spans, splitter))
        words, tags = [word for sentence in split for word in sentence], []
        borders = list(pairwise(accumulate(map(len, split), initial=0)))
    tokens = (in_own_words and text.get("forms")) or [written[start:end] for start, end in words]
    with_words = {index: (first, stop) for index, (first, stop) in enumerate(borders) if first < stop}
    if not with_words:
        check.note("texts without words ignored", example=text.get("where", ""))
    left, right = text.get("left_tokens"), text.get("right_tokens")
    if word_splitter is not None and not in_own_words and left is not None and right is not None:
        left, right = ([side[start:end] for start, end in splitter(side)] for side in map(" ".join, (left, right)))
    entities = _aligned(text, words, [*with_words.values()], in_own_words, check)
    numbered = enumerate(zip(with_words.items(), entities, strict=True), text.get("first_sentence", 0))
    for number, ((index, (first, stop)), inside) in numbered:
        record = Record(
            id=text["sentence_ids"][index] if "sentence_ids" in text else f"{text['doc_id']}:{number}",
            doc_id=text["doc_id"],
            sent_id=number,
            tokens=tokens[first:stop],
            pos=tags[first:stop] if all(tags[first:stop]) else [],
            entities=check.unique(inside),
            left_tokens=left,
            right_tokens=right,
        )
        check.sentences += 1
        check.entities_kept += len(record["entities"])
        yield record


def _aligned(
    text: Text, words: Sequence[Offsets], sentences: Sequence[tuple[int, int]], in_own_words: bool, check: RecordChecker
) -> list[list[Entity]]:
    """The entities of every sentence (first word, stop), by its words; those that are in none are dropped."""
    if in_own_words and "word_entities" in text:
        aligned, dropped = text["word_entities"], []
    else:
        aligned, lost = align_entities(text["text"], text["entities"], words)
        dropped = [("entities with a boundary inside a word dropped", entity) for entity in lost]
    inside: list[list[Entity]] = [[] for _ in sentences]
    for entity in aligned:
        number = bisect_right(sentences, entity["start"], key=itemgetter(0)) - 1
        if number >= 0 and entity["end"] <= sentences[number][1]:
            inside[number].append(moved(entity, -sentences[number][0]))
        else:
            start, end = words[entity["start"]][0], words[entity["end"] - 1][1]
            dropped.append((LOST_ACROSS_SENTENCES, Entity(start=start, end=end, type=entity["type"])))
    where = f"{text['where']}: " if text.get("where") else ""
    for why, entity in dropped:
        check.drop(why, 1, f"{where}{entity['type']} {in_context(text['text'], entity['start'], entity['end'])}")
    return inside


# ---- Text ↔ words ----

WordSplitter = Callable[[str], Sequence[tuple[int, int]]]
"""Text → its words as (start, end) in characters, end exclusive, in order and without overlaps."""

CONTRACTIONS = ("'s", "'t", "n't", "'re", "'ve", "'ll", "'d", "'m")
NO_SPACE_BEFORE = frozenset([*",.;:?!%)]}”’", *CONTRACTIONS, *(end.replace("'", "’") for end in CONTRACTIONS)])
NO_SPACE_AFTER = frozenset("([{“‘$")


def split_words(text: str, word_splitter: WordSplitter) -> list[tuple[int, int]]:
    """Applies a splitter and checks its words; a text of white space, visible or not, has none."""
    words = check_words(word_splitter(text), text, "word splitter")
    if text.translate(INVISIBLE_SPACES).strip() and not words:
        raise ValueError(f"The word splitter returned no word for the text {text[:60]!r}; it must return at least one.")
    return words


def align_entities(
    text: str, entities_by_characters: Iterable[Entity], word_spans: Sequence[tuple[int, int]]
) -> tuple[list[Entity], list[Entity]]:
    """Aligns entities with words: returns (entities by words, entities that cannot be aligned).

    An entity covers the words inside it; white space at its boundaries is ignored. It is lost if one of its boundaries
    falls inside a word, or if it covers no word. ValueError if it is outside of the text.

    Args:
        entities_by_characters: with `start` and `end` (exclusive) in characters of the text.
        word_spans: (start, end) of each word in characters, in order.

    Examples:
        >>> from modeling_triaffine.data import align_entities
        >>> align_entities("CD28-mediated", [{"start": 0, "end": 4, "type": "protein"}], [(0, 4), (4, 5), (5, 13)])
        ([{'start': 0, 'end': 1, 'type': 'protein'}], [])
        >>> align_entities("CD28-mediated", [{"start": 0, "end": 4, "type": "protein"}], [(0, 13)])
        ([], [{'start': 0, 'end': 4, 'type': 'protein'}])
    """
    starts, ends = [start for start, _ in word_spans], [end for _, end in word_spans]
    aligned: list[Entity] = []
    lost: list[Entity] = []
    for entity in entities_by_characters:
        start, end = entity["start"], entity["end"]
        if not 0 <= start < end <= len(text):
            raise ValueError(f"Entity {dict(entity)} is outside its text of {len(text)} characters.")
        first, stop = bisect_right(ends, start), bisect_left(starts, end)  # the words that overlap the entity
        if first < stop and start <= starts[first] and ends[stop - 1] <= end:
            aligned.append(Entity(start=first, end=stop, type=entity["type"]))
        else:
            lost.append(entity)
    return aligned, lost


def join_tokens(tokens: Sequence[str]) -> tuple[str, list[Offsets]]:
    """The tokens joined by single spaces, and the characters of each."""
    starts = accumulate((len(token) + 1 for token in tokens), initial=0)
    return " ".join(tokens), [(start, start + len(token)) for start, token in zip(starts, tokens, strict=False)]


def by_characters(entities: Iterable[Entity], words: Sequence[Offsets]) -> list[Entity]:
    return [Entity(start=words[e["start"]][0], end=words[e["end"] - 1][1], type=e["type"]) for e in entities]


def detokenize(tokens: Sequence[str]) -> str:
    """The tokens as running text with English spacing: none before closing marks, none after opening ones."""
    text = ""
    for before, token in zip(("", *tokens), tokens, strict=False):
        is_joined = not before or token in NO_SPACE_BEFORE or before in NO_SPACE_AFTER
        text += token if is_joined else f" {token}"
    return text
