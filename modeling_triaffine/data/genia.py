"""GENIA's own XML (`GENIAcorpus3.02.xml`), by sentences for training and by documents for scores on raw text.

The rules are those under which nested NER on GENIA has five classes and 18,546 sentences:

- words: the sentence split at white space and at every `<cons>` tag, or the words of a splitter of your choice;
- entities: each `<cons>` whose `sem` is `G#DNA_…`, `G#RNA_…`, `G#protein_…`, `G#cell_line` or `G#cell_type`;
  coordinated ones (`sem="(AND …)"`) give none, nor do their parts, which have no `sem`: counted;
- one type a span: of several the last in ASCII order stays, the others are counted;
- splits by sentence, in corpus order: 15,023 train, 1,669 validation (together the 16,692 that papers call train), the
  rest test;
- an abstract that occurs twice gets `#2` added to its name the second time.

The XML holds no part-of-speech tags. It is read by the standard library's expat, which opens no other file and no
connection: the DTD that the corpus names is never fetched. Entity declarations, with which a small file can grow
without bound, are refused.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import TypedDict
from xml.parsers import expat

from .alignment import LOST_IN_A_WORD, WordSplitter, align_entities, split_words
from .reading import CorpusFormat, open_corpus
from .schema import CorpusError, Entity, Record, RecordChecker

logger = logging.getLogger(__name__)

SPLIT_STARTS = {"train": 0, "validation": 15_023, "test": 16_692}
"""Number of each split's first sentence, counted over the corpus."""

CHUNK_SIZE = 1 << 16
ENTITY_CLASS = re.compile(r"G#(?:(DNA|RNA|protein)_.*|(cell_line|cell_type))")
COORDINATION = re.compile(r"\(.*G#(?:(?:DNA|RNA|protein)_|cell_line|cell_type)")


class Document(TypedDict):
    """A document as raw text; entities count characters of `text`."""

    doc_id: str
    split: str
    text: str
    entities: list[Entity]


@dataclass
class Sentence:
    """A sentence as the XML has it; `tag_positions` and `entities` count characters of `text`."""

    doc_id: str
    sent_id: int
    line: int
    in_title: bool
    text: str = ""
    tag_positions: set[int] = field(default_factory=set)
    entities: list[Entity] = field(default_factory=list)

    def given_words(self) -> list[tuple[int, int]]:
        """The corpus' own words: split at white space and at `<cons>` tags."""
        borders = sorted({0, len(self.text), *self.tag_positions})
        return [
            (start + word.start(), start + word.end())
            for start, end in pairwise(borders)
            for word in re.finditer(r"\S+", self.text[start:end])
        ]


def read_genia(path: Path, check: RecordChecker, word_splitter: WordSplitter | None = None) -> Iterator[Record]:
    """The corpus' sentences in order, whatever split they belong to.

    Args:
        path: the XML, plain or gzipped.
        check: counts coordinations, second types on a span and entities lost to the splitter.
        word_splitter: text → [(start, end)]; cuts each sentence as it is written, entities follow by characters, those
            with a border inside a word are lost. None keeps the corpus' own words, which lose nothing.

    Raises:
        CorpusError: the XML is broken or cut off, or no GENIA corpus.
    """
    for sentence in _sentences(path, check):
        words = sentence.given_words() if word_splitter is None else split_words(sentence.text, word_splitter)
        entities, lost = align_entities(sentence.text, sentence.entities, words)
        if lost:
            check.drop(LOST_IN_A_WORD, len(lost))
        raw = {
            "id": f"{sentence.doc_id}:{sentence.sent_id}",
            "doc_id": sentence.doc_id,
            "sent_id": sentence.sent_id,
            "tokens": [sentence.text[start:end] for start, end in words],
            "entities": _one_type_a_span(entities, check),
        }
        yield check(raw, f"line {sentence.line} (article {sentence.doc_id}, sentence {sentence.sent_id})")


def read_genia_documents(path: Path | str) -> Iterator[Document]:
    """The corpus' documents as raw text: title, newline, then the abstract's sentences with a space between them.

    Sentences stand exactly as written. A document that runs over the border of two splits is given in two pieces, one a
    split, so that a split holds the same sentences here as in `load_nested_ner`. What is dropped is logged at the end.

    Yields:
        `doc_id`, `split`, `text` and `entities` (`start`, `end` exclusive, in characters, and `type`), sorted.

    Raises:
        CorpusError: the XML is broken or cut off, or no GENIA corpus.
    """
    check = RecordChecker(path)
    for (doc_id, split), sentences in groupby(_sentences_with_split(Path(path), check), key=lambda pair: pair[0]):
        text, entities = _join([sentence for _, sentence in sentences])
        yield Document(doc_id=doc_id, split=split, text=text, entities=_one_type_a_span(entities, check))
    if check.counts:
        logger.warning("%s", check.report())


def _sentences_with_split(path: Path, check: RecordChecker) -> Iterator[tuple[tuple[str, str], Sentence]]:
    for number, sentence in enumerate(_sentences(path, check)):
        split = [name for name, start in SPLIT_STARTS.items() if start <= number][-1]
        yield (sentence.doc_id, split), sentence


def _join(sentences: list[Sentence]) -> tuple[str, list[Entity]]:
    text, entities, previous = "", [], None
    for sentence in sentences:
        if previous is not None:
            text += "\n" if previous.in_title and not sentence.in_title else " "
        offset = len(text)
        text += sentence.text
        entities += [
            Entity(start=offset + entity["start"], end=offset + entity["end"], type=entity["type"])
            for entity in sentence.entities
        ]
        previous = sentence
    return text, entities


def _one_type_a_span(entities: list[Entity], check: RecordChecker) -> list[Entity]:
    """Sorted by position; of several types on one span the last in ASCII order, which is label order, stays."""
    types: dict[tuple[int, int], str] = {}
    for entity in entities:
        span = entity["start"], entity["end"]
        known = types.get(span)
        if known is not None:
            same = known == entity["type"]
            check.drop("duplicate entities dropped" if same else "second types on one span dropped")
        types[span] = max(entity["type"], known or "")
    return [Entity(start=start, end=end, type=kind) for (start, end), kind in sorted(types.items())]


def _sentences(path: Path, check: RecordChecker) -> Iterator[Sentence]:
    """Parses the file a piece at a time and yields what is complete."""
    handler = _GeniaHandler(check)
    parser = handler.parser
    try:
        with open_corpus(path) as file:
            while chunk := file.read(CHUNK_SIZE):
                parser.Parse(chunk, False)
                yield from handler.take_finished()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        problem = f"broken XML, {expat.ErrorString(error.code)} at column {error.offset + 1}"
        remedy = "The file may have been cut off: compare its size with the original's, or fetch it again"
        raise check.error(f"line {error.lineno}", problem, remedy) from None
    except CorpusError:
        raise
    except (LookupError, ValueError) as error:  # so expat tells of an encoding that it does not know
        raise check.error("line 1", f"{error}", "Correct the encoding in the XML declaration: it is UTF-8") from None
    yield from handler.take_finished()


class _GeniaHandler:
    """expat's callbacks; collects finished sentences."""

    def __init__(self, check: RecordChecker):
        self.check = check
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._refuse_entity_declaration
        self._finished: list[Sentence] = []
        self._articles: Counter[str] = Counter()
        self._doc_id: str | None = None
        self._num_sentences = 0
        self._in_title = False
        self._text: list[str] | None = None  # of the sentence or article name that is open
        self._position = 0
        self._sentence: Sentence | None = None
        self._open_cons: list[tuple[int, str]] = []  # (where it starts, its sem)

    def take_finished(self) -> list[Sentence]:
        finished, self._finished = self._finished, []
        return finished

    def _error(self, problem: str) -> Exception:
        remedy = "Give GENIA's term corpus, GENIAcorpus3.02.xml, as published"
        return self.check.error(f"line {self.parser.CurrentLineNumber}", problem, remedy)

    def _refuse_entity_declaration(self, name: str, *_: object) -> None:
        raise self._error(f"the XML declares the entity {name!r}, which GENIA does not, and such files are not read")

    def _characters(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)
            self._position += len(data)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "cons" and self._sentence is not None:
            self._sentence.tag_positions.add(self._position)
            self._open_cons.append((self._position, attributes.get("sem", "")))
        elif name == "sentence":
            self._start_sentence()
        elif name == "bibliomisc":
            self._text = []
        elif name == "article":
            self._doc_id, self._num_sentences = None, 0
        elif name == "title":
            self._in_title = True
        elif self._sentence is not None:
            self.check.note(f"tags <{name}> ignored, their text kept")

    def _start_sentence(self) -> None:
        if self._doc_id is None or self._sentence is not None:
            raise self._error("a <sentence> stands inside another, or before its article's <bibliomisc>")
        line = self.parser.CurrentLineNumber
        self._sentence = Sentence(self._doc_id, self._num_sentences, line, in_title=self._in_title)
        self._text, self._position = [], 0
        self._num_sentences += 1

    def _end(self, name: str) -> None:
        if name == "cons" and self._sentence is not None:
            self._end_cons(self._sentence)
        elif name == "sentence" and self._sentence is not None:
            self._sentence.text = "".join(self._text or [])
            self._finished.append(self._sentence)
            self._sentence = self._text = None
        elif name == "bibliomisc":
            self._doc_id = self._new_article("".join(self._text or []).strip())
            self._text = None
        elif name == "title":
            self._in_title = False

    def _end_cons(self, sentence: Sentence) -> None:
        start, sem = self._open_cons.pop()
        sentence.tag_positions.add(self._position)
        entity_class = ENTITY_CLASS.fullmatch(sem)
        if entity_class is None:
            if COORDINATION.match(sem):
                self.check.drop("coordinated entities, which give none")
        elif start == self._position:
            self.check.drop("entities without text dropped")
        else:
            kind = entity_class[1] or entity_class[2]
            sentence.entities.append(Entity(start=start, end=self._position, type=kind))

    def _new_article(self, name: str) -> str:
        if not name:
            raise self._error("an article's <bibliomisc> is empty")
        self._articles[name] += 1
        return name if self._articles[name] == 1 else f"{name}#{self._articles[name]}"


GENIA = CorpusFormat(
    name="genia",
    description="GENIA's term corpus as XML",
    suffixes=(".xml",),
    recognizes=lambda head: head.startswith("<") and ("gpml" in head or "GENIA" in head),
    read=read_genia,
    split_starts=SPLIT_STARTS,
    options=("word_splitter",),
)
