"""Reads GENIA's own XML (`GENIAcorpus3.02.xml`): by sentences for training, by documents for scores on raw text.

The rules are those of the literature, under which nested NER on GENIA has five classes and 18,546 sentences:

- words: the sentence split at white space and at every `<cons>` tag, or the words of a splitter of your choice;
- entities: each `<cons>` whose `sem` is `G#DNA_…`, `G#RNA_…`, `G#protein_…`, `G#cell_line` or `G#cell_type`;
  coordinations (`sem="(AND …)"`) and their parts, which have no `sem`, are not entities, and are counted;
- one type per span: of several, the last in ASCII order is kept and the others are counted; the format
  `genia_all_types` keeps them all, for models with several labels a span;
- splits by sentence, in corpus order: 15,023 train, 1,669 validation (together the 16,692 that papers call train), the
  rest test;
- the second occurrence of an abstract gets `#2` appended to its name.

The XML has no part-of-speech tags.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from xml.etree.ElementTree import Element

from ..alignment import align_entities
from ..corpus_format import CorpusFormat
from ..documents import Document, Sentence, WrittenSentence, document_of_sentences
from ..reading import xml_elements
from ..record_checker import RecordChecker
from ..schema import Entity

SPLIT_STARTS = {"train": 0, "validation": 15_023, "test": 16_692}
"""Index of each split's first sentence in the corpus."""

ENTITY_CLASS = re.compile(r"G#(?:(DNA|RNA|protein)_.*|(cell_line|cell_type))")
AUXILIARY_TYPES = ("other_name", "coordination", "other")
"""Types of the format `genia_other_types` beside the five: what the XML annotates and the literature leaves out."""
COORDINATION = re.compile(r"\(.*G#(?:(?:DNA|RNA|protein)_|cell_line|cell_type)")


@dataclass
class XmlSentence:
    """A sentence as the XML has it; `tag_positions` and `entities` count characters of `text`."""

    doc_id: str
    sent_id: int
    in_title: bool
    text: str = ""
    other_types: bool = False
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

    def add(self, element: Element, check: RecordChecker) -> None:
        """Appends the text of an element and the entities in it, inner ones first."""
        self.text += element.text or ""
        for child in element:
            start = len(self.text)
            if child.tag != "cons":
                check.note(f"tags <{child.tag}> ignored, their text kept")
            self.add(child, check)
            if child.tag == "cons":
                self.tag_positions |= {start, len(self.text)}
                self._add_entity(child.get("sem", ""), start, check)
            self.text += child.tail or ""

    def _add_entity(self, sem: str, start: int, check: RecordChecker) -> None:
        entity_class = ENTITY_CLASS.fullmatch(sem)
        if entity_class is None and self.other_types and sem and start < len(self.text):
            kind = "coordination" if sem.startswith("(") else "other_name" if sem == "G#other_name" else "other"
            self.entities.append(Entity(start=start, end=len(self.text), type=kind))
        elif entity_class is None:
            if COORDINATION.match(sem):
                check.drop("coordinated entities dropped")
        elif start == len(self.text):
            check.drop("entities without text dropped")
        else:
            kind = entity_class[1] or entity_class[2]
            self.entities.append(Entity(start=start, end=len(self.text), type=kind))


def read_genia(
    path: Path, check: RecordChecker, all_types: bool = False, other_types: bool = False
) -> Iterator[Document]:
    """Reads the documents: the title, a line break, then the sentences of the abstract joined by spaces.

    Sentences are kept exactly as written. A document that crosses the border of two splits is given in two parts, one
    for each split.
    """

    def part(numbered: tuple[int, XmlSentence]) -> tuple[str, str]:
        return numbered[1].doc_id, [name for name, start in SPLIT_STARTS.items() if start <= numbered[0]][-1]

    for (doc_id, split), numbered in groupby(enumerate(_sentences(path, check, other_types)), key=part):
        yield document_of_sentences(doc_id, _in_own_words((one for _, one in numbered), check, all_types), split)


def _in_own_words(sentences: Iterable[XmlSentence], check: RecordChecker, all_types: bool) -> Iterator[WrittenSentence]:
    after_title = False
    for sentence in sentences:
        words = sentence.given_words()
        aligned, lost = align_entities(sentence.text, sentence.entities, words)
        if lost:
            check.drop("entities of white space alone dropped", len(lost))
        fields = {
            "id": f"{sentence.doc_id}:{sentence.sent_id}",
            "sent_id": sentence.sent_id,
            "tokens": [sentence.text[start:end] for start, end in words],
            "entities": _sorted(aligned, check, all_types),
        }
        where = f"article {sentence.doc_id}, sentence {sentence.sent_id}"
        gap = "\n" if after_title and not sentence.in_title else " "
        yield WrittenSentence(gap, sentence.text, Sentence(fields, where, words))
        after_title = sentence.in_title


def _sorted(entities: list[Entity], check: RecordChecker, all_types: bool) -> list[Entity]:
    """The entities by position, each once; unless `all_types`, of several types of a span the last in ASCII order.

    One of the five types prevails over the auxiliary ones.
    """
    types: dict[tuple[int, int], set[str]] = {}
    for entity in entities:
        known = types.setdefault((entity["start"], entity["end"]), set())
        if entity["type"] in known:
            check.drop("duplicate entities dropped")
        elif known and not all_types:
            check.drop("further types of a span dropped")
        known.add(entity["type"])
    return [
        Entity(start=start, end=end, type=kind)
        for (start, end), kinds in sorted(types.items())
        for kind in (sorted(kinds) if all_types else [max(kinds, key=lambda kind: (kind not in AUXILIARY_TYPES, kind))])
    ]


def _sentences(path: Path, check: RecordChecker, other_types: bool) -> Iterator[XmlSentence]:
    occurrences: Counter[str] = Counter()
    element = None
    for element in xml_elements(path, check):
        if element.tag == "article":
            sentences: list[XmlSentence] = []
            with check.record():
                sentences += _sentences_of(element, occurrences, check, other_types)
            yield from sentences
            element.clear()
    if element is not None and (outside := sum(1 for _ in element.iter("sentence"))):
        check.note("sentences outside of articles not read", outside)


def _sentences_of(
    article: Element, occurrences: Counter[str], check: RecordChecker, other_types: bool
) -> Iterator[XmlSentence]:
    name = (article.findtext(".//bibliomisc") or "").strip()
    if not name:
        number = occurrences.total() + 1
        remedy = "Give GENIA's term corpus, GENIAcorpus3.02.xml, as published"
        raise check.error(f"article {number} of the file", "its <bibliomisc>, the article's name, is missing", remedy)
    occurrences[name] += 1
    doc_id = name if occurrences[name] == 1 else f"{name}#{occurrences[name]}"
    in_title = {id(sentence) for title in article.iter("title") for sentence in title.iter("sentence")}
    for number, element in enumerate(article.iter("sentence")):
        sentence = XmlSentence(doc_id, number, in_title=id(element) in in_title, other_types=other_types)
        sentence.add(element, check)
        yield sentence


GENIA = CorpusFormat(
    name="genia",
    description="GENIA's term corpus as XML",
    read=read_genia,
    has_own_words=True,
    suffixes=(".xml",),
    recognizes=lambda head: head.startswith("<") and ("gpml" in head or "GENIA" in head),
    split_starts=SPLIT_STARTS,
    tools="the GENIA project",
    example='<sentence>The <cons lex="x" sem="G#protein_molecule">CD28</cons> receptor</sentence>',
)

GENIA_ALL_TYPES = replace(
    GENIA,
    name="genia_all_types",
    description="the same, with every type of a span",
    by_name_only=True,  # the literature's figures are those of one type per span
    read=partial(read_genia, all_types=True),
)

GENIA_OTHER_TYPES = replace(
    GENIA,
    name="genia_other_types",
    description="the same, with its other types as other_name, coordination and other, for auxiliary labels",
    by_name_only=True,
    read=partial(read_genia, other_types=True),
)
