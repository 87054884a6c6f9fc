"""Reads words with spans by words, in the forms on which other models for nested entities are trained.

- `INCLUSIVE_SPANS`, JSON whose spans have their last word in them: GLiNER's, W2NER's, whose entities list their words,
  and that of DyGIE++ and PURE: a document, whose words are numbered through its sentences; in `ners`, of biaffine-ner,
  through each sentence, and where the sentences are texts, by their characters.

      {"tokenized_text": ["the", "mayor", "of", "Orsk"], "ner": [[0, 3, "Person"], [3, 3, "City"]]}
      {"sentence": ["the", "mayor", "of", "Orsk"], "ner": [{"index": [0, 1, 2, 3], "type": "Person"}]}
      {"doc_key": "news-1", "sentences": [["He", "slept"], ["in", "Orsk"]], "ner": [[], [[3, 3, "City"]]]}

- `MRC`, questions and answers of machine reading comprehension (Li et al., ACL 2020). A record has the entities of one
  type in a sentence, and the records of a sentence follow each other.

      {"context": "the mayor of Orsk", "entity_label": "City", "span_position": ["3;3"], "qas_id": "0.1", "query": "…"}

- `SPAN_LINES`, a line of words, perhaps one of parts of speech, and one of spans, for each sentence. Ends are exclusive
  unless a span such as 3,3 shows that its last word is in it, or `columns={"inclusive_end": True}` says so; a mention
  may also have the span of its head, `0,4,1,2 Person`.

      The mayor of Orsk
      DT NN IN NNP
      0,4 Person|3,4 City
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ..corpus_format import CorpusFormat, Keys, check_columns
from ..json_records import JsonObject, TypedSpan, json_reader, json_values
from ..reading import document_name, numbered_paragraphs
from ..record_checker import DISCONTINUOUS, RecordChecker
from ..schema import Entity, Text
from ..texts import WrittenSentence, text_of_sentences
from .sentence_ids import SentenceIds
from .tags import STANDARD_TAG

WORDS = ("tokenized_text", "sentence", "sentences")
"""Fields of the words, of GLiNER, W2NER and documents."""
QUESTION_FIELDS = ("context", "entity_label", "span_position")
# Fields that repeat these, or say nothing about entities.
OTHER_QUESTION_FIELDS = ("qas_id", "query", "impossible", "start_position", "end_position")
SPAN = re.compile(r"(\d{1,9}),(\d{1,9})(,\d{1,9},\d{1,9})? ([^\s|]+)")
SPANS = re.compile(rf"{SPAN.pattern}(?:\|{SPAN.pattern})*")
RULE = "A sentence is a line of words, perhaps one of parts of speech, and one of spans, such as 0,4 Person|3,4 City"


def _entities(
    record: JsonObject,
    spans: Sequence[object],
    name: str,
    size: int,
    first: int = 0,
    form: str = "[first word, last word, type]",
) -> list[Entity]:
    """The entities of a sentence of this many words or characters, the first of which has the number `first`."""
    entities = []
    checked = record.check.typed({name: spans}, name, list[TypedSpan], record.where, record.name, f"A span is {form}")
    for index, (start, last, kind) in enumerate(checked):
        if not first <= start <= last < first + size:
            problem = f"runs from {start} to {last}, its sentence from {first} to {first + size - 1}"
            raise record.error(f"{name}[{index}]", problem, "Words count from 0, and the last one is part of the span")
        entities.append(Entity(start=start - first, end=last - first + 1, type=kind))
    return entities


# ---- JSON with inclusive spans ----


def _inclusive_spans(record: JsonObject, default_id: str) -> Text:
    words = next((field for field in WORDS if field in record.fields), WORDS[1])
    record.note_other_fields((words, "ner", "ners", "doc_key"))
    key = record.fields.get("doc_key")
    doc_id = default_id if key is None else str(key)
    if words == "sentences":
        return _document(record, doc_id)
    tokens = record.value(words, list)
    spans = _indexed_spans(record) if words == "sentence" else record.value("ner", list)
    entities = _entities(record, spans, "ner", len(tokens))
    fields = {"id": f"{doc_id}:0", "doc_id": doc_id, "sent_id": 0, "tokens": tokens, "entities": entities}
    return text_of_sentences([WrittenSentence(record.check(fields, record.where))], record.where)


def _indexed_spans(record: JsonObject) -> list[object]:
    """The spans of entities that list their words."""
    spans: list[object] = []
    for entity in record.objects("ner"):
        words = entity.value("index", list[int], "It lists the words of the entity, counted from 0")
        kind = entity.value("type", str)
        if words and words == list(range(words[0], words[0] + len(words))):
            spans.append([words[0], words[-1], kind])
        else:
            record.check.drop(DISCONTINUOUS, 1, f"{entity.where}: {entity.name}", kind)
    return spans


def _document(record: JsonObject, doc_id: str) -> Text:
    name = "ners" if "ners" in record.fields else "ner"
    sentences, spans_of_each = record.fields["sentences"], record.value(name, list)
    if name == "ners" and isinstance(sentences, str):  # as in RuNNE
        sentences, spans_of_each = [sentences], [spans_of_each]
    of_texts = name == "ners" and bool(sentences) and all(isinstance(sentence, str) for sentence in sentences)
    if not of_texts:
        sentences = record.value("sentences", list[list[Any]])
    if len(sentences) != len(spans_of_each):
        problem = f"has {len(spans_of_each)} lists for {len(sentences)} sentences"
        raise record.error(name, problem, "Give one for each sentence")
    if of_texts:
        return _of_characters(record, doc_id, sentences, spans_of_each)
    first = 0
    written = []
    for number, (tokens, spans) in enumerate(zip(sentences, spans_of_each, strict=True)):
        entities = _entities(record, spans, f"{name}[{number}]", len(tokens), first)
        fields = {"id": f"{doc_id}:{number}", "doc_id": doc_id, "sent_id": number, "tokens": tokens}
        checked = record.check({**fields, "entities": entities}, f"{record.where}, sentences[{number}]")
        written.append(WrittenSentence(checked))
        first += len(tokens) if name == "ner" else 0
    return text_of_sentences(written, record.where)


def _of_characters(record: JsonObject, doc_id: str, sentences: list[str], spans_of_each: list[Any]) -> Text:
    """A document whose sentences are texts, with inclusive spans by the characters of each."""
    text = "\n".join(sentences)
    found, places, first = [], [], 0
    for sentence, spans in zip(sentences, spans_of_each, strict=True):
        for entity in _entities(record, spans, "ners", len(sentence), form="[first character, last one, type]"):
            fragment = (first + entity["start"], first + entity["end"])
            found.append(record.check.entity(text, [fragment], entity["type"], None, record.where, "ners"))
        places.append((first, first + len(sentence)))
        first += len(sentence) + 1
    whole = Text(doc_id=doc_id, text=text, entities=[entity for entity in found if entity], where=record.where)
    if len(places) > 1:
        whole["sentences"] = places
    return whole


INCLUSIVE_SPANS = CorpusFormat(
    name="inclusive_spans",
    description="JSON of words with inclusive spans in `ner`: GLiNER, W2NER, DyGIE++, PURE",
    read=json_reader(_inclusive_spans, f"{', '.join(WORDS)} and ner"),
    keys=(
        *(Keys.of(f"{words} ner") for words in WORDS),
        Keys.of("doc_key sentences"),
        Keys.of("sentences ners"),
    ),
    tools="GLiNER, W2NER, DyGIE++, PURE, biaffine-ner",
    example='{"tokenized_text": ["the", "mayor", "of", "Orsk"], "ner": [[0, 3, "Person"], [3, 3, "City"]]}',
)


# ---- Questions and answers ----


def read_mrc(path: Path, check: RecordChecker) -> Iterator[Text]:
    """Reads one sentence from the records of all its types; a CorpusError names the record and the field."""
    file_name = document_name(path, check)
    for number, (_, of_sentence) in enumerate(groupby(_questions(path, check), key=lambda question: question[0])):
        records = [record for _, record in of_sentence]
        with check.record():
            words = records[0].value("context", str).split()
            entities = [entity for record in records for entity in _answers(record, len(words))]
            name, where = f"{file_name}:{number}", records[0].where
            fields = {"id": name, "doc_id": name, "sent_id": 0, "tokens": words, "entities": entities}
            yield text_of_sentences([WrittenSentence(check(fields, where))], where)


def _questions(path: Path, check: RecordChecker) -> Iterator[tuple[tuple[str, str], JsonObject]]:
    """The records with what those of a sentence have in common: its words, and the number before the point of `qas_id`.

    A `qas_id` without a point numbers the records, and says nothing about sentences.
    """
    for raw, where in json_values(path, check):
        with check.record():
            record = JsonObject(raw, where, check)
            record.require(QUESTION_FIELDS, "a question about a sentence")
            record.note_other_fields((*QUESTION_FIELDS, *OTHER_QUESTION_FIELDS))
            number, point, _ = str(record.fields.get("qas_id")).partition(".")
            yield (number if point else "", record.value("context", str)), record


def _answers(record: JsonObject, num_words: int) -> list[Entity]:
    kind = record.value("entity_label", str)
    spans: list[object] = []
    for span in record.value("span_position", list):
        ends = span.split(";") if isinstance(span, str) else span
        is_span = isinstance(ends, list) and all(re.fullmatch(r"\d{1,9}", str(end)) for end in ends)
        spans.append([*map(int, ends), kind] if is_span else span)
    return _entities(record, spans, "span_position", num_words, form='"first word;last word"')


MRC = CorpusFormat(
    name="mrc",
    description="questions and answers of machine reading comprehension, one record for each type in a sentence",
    read=read_mrc,
    keys=(Keys.of("context query"),),
    tools="models of machine reading comprehension (mrc-ner.train)",
    example='{"context": "The mayor slept .", "entity_label": "Person", "span_position": ["0;1"], "query": "…"}',
)


# ---- Lines of words and spans ----


def read_span_lines(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads sentence by sentence; a CorpusError names the line."""
    columns = columns or {}
    check_columns(columns, (), ("inclusive_end",))
    ids = SentenceIds(document_name(path, check), check.is_document)
    paragraphs = list(numbered_paragraphs(path, check))
    spans = (span for lines in paragraphs for span in _spans_at_end([line for _, line in lines]))
    inclusive = columns.get("inclusive_end", any(start == end for start, end, _, _ in spans))
    if inclusive and not columns:
        check.note("files with spans such as 3,3, whose last word is therefore part of every span")
    for lines in paragraphs:
        names = ids.next_sentence()
        with check.record():
            fields = {**names, **_lines_of_sentence(lines, inclusive, check)}
            where = f"line {lines[0][0]}"
            yield text_of_sentences([WrittenSentence(check(fields, where))], where)


def _lines_of_sentence(lines: list[tuple[int, str]], inclusive: bool, check: RecordChecker) -> dict[str, Any]:
    (_, words), *others = lines
    tokens = words.split()
    entities: list[Entity] = []
    if spans := _spans_at_end([line for _, line in lines]):
        number, _ = others.pop()
        for start, end, head, kind in spans:
            if head:
                check.note("heads of mentions ignored")
            entity = Entity(start=int(start), end=int(end) + inclusive, type=kind)
            if not entity["start"] < entity["end"] <= len(tokens):
                problem = f"the span {start},{end} {kind} is not within {len(tokens)} words"
                how = "the last word is part of a span" if inclusive else "the end is exclusive"
                remedy = f"Words count from 0, and here {how} (convert --columns inclusive_end=true or false)"
                raise check.error(f"line {number}", problem, remedy)
            entities.append(entity)
    pos = others.pop()[1].split() if others else []
    if others or (pos and len(pos) != len(tokens)):
        problem = f"{lines[-1][1][:60]!r} is neither spans nor one part of speech for each of {len(tokens)} words"
        raise check.error(f"line {lines[-1][0]}", problem, RULE)
    return {"tokens": tokens, "pos": pos, "entities": entities}


def _spans_at_end(lines: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Start, end, head and type of each span in the last line of a sentence, if it is one of spans."""
    return SPAN.findall(lines[-1]) if len(lines) > 1 and SPANS.fullmatch(lines[-1].strip()) else []


def _are_span_lines(head: str) -> bool:
    """The first lines are sentences of at most three lines, one of which ends with spans."""
    sentences = [sentence.split("\n") for sentence in re.split(r"(?:\r?\n[ \t]*){2,}", head.strip())]
    types = [kind for lines in sentences for *_, kind in _spans_at_end(lines)]
    # Columns of tags may have a number such as 0,1 for a word.
    return all(len(lines) <= 3 for lines in sentences) and not all(map(STANDARD_TAG.fullmatch, types))


SPAN_LINES = CorpusFormat(
    name="span_lines",
    description="a line of words and a line of spans, 0,4 Person|3,4 City, for each sentence",
    read=read_span_lines,
    recognizes=_are_span_lines,
    columns="whether the last word is part of a span: {'inclusive_end': True}",
    tools="research code for nested entities",
    example="0,4 Person|3,4 City",
)
