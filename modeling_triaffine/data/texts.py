"""Texts → records: cut into sentences of the wanted words, with the entities that align with them; and the way back.

Texts are split as raw text is split for prediction (`text_triaffine.py`), unless the words of the corpus are wanted.
Entities that cannot be aligned are dropped, counted and shown in context.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple

from ..model.options_triaffine import ProcessorOptions
from ..model.text_triaffine import DEFAULT_WORD_SPLITTER, Offsets, split_text
from ..model.text_triaffine import sentence_splitter as named_sentence_splitter
from ..model.text_triaffine import word_splitter as named_word_splitter
from .alignment import (
    LOST_ACROSS_SENTENCES,
    LOST_IN_A_WORD,
    WordSplitter,
    align_entities,
    by_sentence,
    kept_by,
    split_words,
)
from .offsets import BYTE_ORDER_MARK, in_context
from .record_checker import RecordChecker
from .schema import Entity, Record, Text

DEFAULT_SENTENCE_SPLITTER = ProcessorOptions.sentence_splitter


# ---- Words of a corpus → texts ----


class WrittenSentence(NamedTuple):
    """A sentence in the words of the corpus, as the checker returns it, and how it is written.

    Args:
        text, offsets: as written, with (start, end) of each word in it; empty: the words, joined by spaces.
        gap: what separates it from the sentence before.
    """

    record: Record
    text: str = ""
    offsets: Sequence[Offsets] = ()
    gap: str = "\n"

    def written(self) -> tuple[str, Sequence[Offsets]]:
        if self.text:
            return self.text, self.offsets
        ends = list(accumulate(len(token) + 1 for token in self.record["tokens"]))
        return " ".join(self.record["tokens"]), [
            (end - 1 - len(token), end - 1) for end, token in zip(ends, self.record["tokens"], strict=True)
        ]


def text_of_sentences(sentences: Iterable[WrittenSentence], where: str = "", split: str | None = None) -> Text:
    """One text of sentences, at least one, which follow each other in a document."""
    pieces: list[str] = []
    spans: list[Offsets] = []
    words: list[Offsets] = []
    word_entities: list[Entity] = []
    length = 0
    records = []
    for sentence in sentences:
        written, offsets = sentence.written()
        gap = sentence.gap if pieces else ""
        first, first_word = length + len(gap), len(words)
        records.append(sentence.record)
        pieces += [gap, written]
        length = first + len(written)
        spans.append((first, length))
        words += [(first + start, first + end) for start, end in offsets]
        word_entities += [moved(entity, first_word) for entity in sentence.record["entities"]]
    text = Text(
        doc_id=records[0]["doc_id"],
        text="".join(pieces),
        entities=[
            Entity(start=words[entity["start"]][0], end=words[entity["end"] - 1][1], type=entity["type"])
            for entity in word_entities
        ],
        sentences=spans,
        words=words,
        tokens=[token for record in records for token in record["tokens"]],
        word_entities=word_entities,
        sentence_ids=[record["id"] for record in records],
        first_sentence=records[0]["sent_id"],
        where=where,
    )
    if any(record["pos"] for record in records):
        text["pos"] = [tag for record in records for tag in record["pos"] or [""] * len(record["tokens"])]
    if len(records) == 1 and records[0]["left_tokens"] is not None:
        text["left_tokens"], text["right_tokens"] = records[0]["left_tokens"], records[0]["right_tokens"] or []
    if split is not None:
        text["split"] = split
    return text


def moved(entity: Entity, by: int) -> Entity:
    return Entity(start=entity["start"] + by, end=entity["end"] + by, type=entity["type"])


# ---- Texts → sentences of words ----


def sentences_of(
    text: Text,
    check: RecordChecker,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> Iterator[Record]:
    """The sentences of a text, with the entities that align with their words.

    Entities are dropped and counted if they begin or end inside a word, or cross the end of a sentence. Sentences of
    any length stay whole: the model reads long ones in windows.

    Args:
        word_splitter: text → [(start, end)] in characters; None takes the words of the corpus, or if it has none, those
            of the pipeline's own splitter.
        sentence_splitter: "punctuation", "lines" or "none", for texts whose sentences the corpus does not mark.
    """
    written = (
        text["text"].replace(BYTE_ORDER_MARK, " ", 1) if text["text"].startswith(BYTE_ORDER_MARK) else text["text"]
    )
    where = text.get("where", "")
    spans = text.get("sentences") or _sentence_spans(written, text.get("borders", []), sentence_splitter)
    in_own_words = word_splitter is None and "words" in text
    if in_own_words:
        starts = [start for start, _ in text["words"]]
        parts = [slice(bisect_left(starts, start), bisect_left(starts, end)) for start, end in spans]
        cut = [list(text["words"][part]) for part in parts]
    else:
        splitter = partial(split_words, word_splitter=word_splitter or named_word_splitter(DEFAULT_WORD_SPLITTER))
        cut = [list(words) for words in split_text(written, lambda _: iter(spans), splitter)]
        parts = [slice(0, 0)] * len(cut)
    numbered = [number for number, words in enumerate(cut) if words]
    if not numbered:
        check.note("texts without words ignored", example=where)
    entities = _aligned(text, written, [cut[number] for number in numbered], in_own_words, check)
    ids = text.get("sentence_ids")
    for number, (index, inside) in enumerate(zip(numbered, entities, strict=True)):
        sent_id = text.get("first_sentence", 0) + number
        pos = text.get("pos", [])[parts[index]]
        left, right = text.get("left_tokens"), text.get("right_tokens")
        if word_splitter is not None and left is not None and right is not None:
            left, right = (_split_again(words, word_splitter) for words in (left, right))
        tokens = [written[start:end] for start, end in cut[index]]
        record = Record(
            id=ids[index] if ids else f"{text['doc_id']}:{sent_id}",
            doc_id=text["doc_id"],
            sent_id=sent_id,
            tokens=text["tokens"][parts[index]] if in_own_words and "tokens" in text else tokens,
            pos=pos if all(pos) else [],
            entities=check.unique(inside),
            left_tokens=left,
            right_tokens=right,
        )
        with check.record():
            check.once(record["id"], where)
            check.keep(record["entities"])
            yield record


def _sentence_spans(text: str, borders: Sequence[int], sentence_splitter: str) -> list[Offsets]:
    split = named_sentence_splitter(sentence_splitter)
    return [
        (first + start, first + end)
        for first, last in pairwise((0, *borders, len(text)))
        for start, end in split(text[first:last])
    ]


def _split_again(words: Sequence[str], word_splitter: WordSplitter) -> list[str]:
    text = " ".join(words)
    return [text[start:end] for start, end in split_words(text, word_splitter)]


def _aligned(
    text: Text, written: str, sentences: Sequence[Sequence[Offsets]], in_own_words: bool, check: RecordChecker
) -> list[list[Entity]]:
    """The entities of every sentence, by its words; those that have none are dropped."""
    words = [word for sentence in sentences for word in sentence]
    where = text.get("where", "")

    def drop(why: str, entity: Entity, keeping: Iterable[str] = ()) -> None:
        example = f"{where}: {entity['type']} {in_context(written, entity['start'], entity['end'])}"
        check.drop(why, 1, example, entity["type"], keeping)

    if in_own_words and "word_entities" in text:
        aligned = text["word_entities"]
    else:
        aligned, lost = align_entities(written, text["entities"], words)
        for entity in lost:
            drop(LOST_IN_A_WORD, entity, kept_by(written, entity))
    inside, crossing = by_sentence(aligned, list(map(len, sentences)))
    for entity in crossing:
        start, end = words[entity["start"]][0], words[entity["end"] - 1][1]
        drop(LOST_ACROSS_SENTENCES, Entity(start=start, end=end, type=entity["type"]))
    return inside


def numbered(texts: Iterable[Text], check: RecordChecker) -> Iterator[Text]:
    """The texts, those with the name of an earlier one numbered, as exports have the pages of one document.

    Where the sentences have ids of their own, texts of one name are parts of one.
    """
    last = Counter[str]()  # the number of the last text of a name
    names: set[str] = set()
    for text in texts:
        if "sentence_ids" not in text:
            name = text["doc_id"]
            while name in names:
                last[text["doc_id"]] = max(last[text["doc_id"]], 1) + 1
                name = f"{text['doc_id']}#{last[text['doc_id']]}"
            names.add(name)
            if name != text["doc_id"]:
                check.note(
                    "texts with the name of an earlier one, numbered", example=f"{text.get('where', '')}: {name}"
                )
                text["doc_id"] = name
        yield text
