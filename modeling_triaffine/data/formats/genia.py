"""Reads GENIA's own XML by the rules under which the literature has five classes and 18,546 sentences.

- words: the sentence split at white space and at every `<cons>` tag;
- entities: each `<cons>` of the five classes; coordinations (`sem="(AND …)"`) and their parts, which have no `sem`, are
  none. Of several types of a span, the last in ASCII order is kept;
- splits by sentence, in corpus order: 15,023 train, 1,669 validation (together the 16,692 that papers call train), the
  rest test. The second occurrence of an abstract gets `#2` appended to its name.

`genia_all_types` keeps all types of a span, `genia_other_types` has three more, for what the literature leaves out.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from xml.etree.ElementTree import Element

from ..reading import xml_elements
from ..schema import OF_WHITE_SPACE, Entity, RecordChecker, Text
from ..texts import WrittenSentence, align_entities, text_of_sentences
from . import CorpusFormat

SPLIT_STARTS = {"train": 0, "validation": 15_023, "test": 16_692}
"""Index of each split's first sentence in the corpus."""

ENTITY_CLASS = re.compile(r"G#(?:(DNA|RNA|protein)_.*|(cell_line|cell_type))")
AUXILIARY_TYPES = ("other_name", "coordination", "other")
"""Types of the format `genia_other_types` beside the five: what the XML annotates and the literature leaves out."""
COORDINATION = re.compile(r"\(.*G#(?:(?:DNA|RNA|protein)_|cell_line|cell_type)")


def read_genia(path: Path, check: RecordChecker, all_types: bool = False, other_types: bool = False) -> Iterator[Text]:
    """Reads the documents: the title, a line break, then the sentences of the abstract joined by spaces.

    Sentences are kept exactly as written. A document that crosses the border of two splits is given in two parts, one
    for each split.
    """

    def part(numbered: tuple[int, WrittenSentence]) -> tuple[str, str]:
        number, sentence = numbered
        return sentence.record["doc_id"], [name for name, start in SPLIT_STARTS.items() if start <= number][-1]

    sentences = _sentences(path, check, all_types, other_types)
    for (doc_id, split), numbered in groupby(enumerate(sentences), key=part):
        yield text_of_sentences([sentence for _, sentence in numbered], f"article {doc_id}", split)


def _sentences(path: Path, check: RecordChecker, all_types: bool, other_types: bool) -> Iterator[WrittenSentence]:
    occurrences = Counter[str]()
    for element in xml_elements(path, check):
        if element.tag == "article":
            with check.record():
                name = (element.findtext(".//bibliomisc") or "").strip()
                if not name:
                    problem = "its <bibliomisc>, the article's name, is missing"
                    remedy = "Give GENIA's term corpus, GENIAcorpus3.02.xml, as published"
                    raise check.error(f"article {occurrences.total() + 1} of the file", problem, remedy)
                occurrences[name] += 1
                doc_id = name if occurrences[name] == 1 else f"{name}#{occurrences[name]}"
                yield from list(_sentences_of(element, doc_id, check, all_types, other_types))
            element.clear()


def _sentences_of(
    article: Element, doc_id: str, check: RecordChecker, all_types: bool, other_types: bool
) -> Iterator[WrittenSentence]:
    titles = {sentence for title in article.iter("title") for sentence in title.iter("sentence")}
    after_title = False
    for number, element in enumerate(article.iter("sentence")):
        text, entities, borders = _written(element, other_types, check)
        words = [
            (start + word.start(), start + word.end())
            for start, end in pairwise(sorted({0, len(text), *borders}))
            for word in re.finditer(r"\S+", text[start:end])
        ]
        aligned, lost = align_entities(text, entities, words)
        if lost:
            check.drop(OF_WHITE_SPACE, len(lost))
        fields = {
            "id": f"{doc_id}:{number}",
            "doc_id": doc_id,
            "sent_id": number,
            "tokens": [text[start:end] for start, end in words],
            "entities": _in_order(aligned, check, all_types),
        }
        record = check(fields, f"article {doc_id}, sentence {number}")
        yield WrittenSentence(record, text, words, "\n" if after_title and element not in titles else " ")
        after_title = element in titles


def _written(
    element: Element, other_types: bool, check: RecordChecker, first: int = 0
) -> tuple[str, list[Entity], set[int]]:
    """The text of an element that begins at `first`, the entities in it, and where the tags of entities are."""
    text, entities, borders = element.text or "", [], set()
    for child in element:
        start = first + len(text)
        inside, found, places = _written(child, other_types, check, start)
        text += inside
        entities += found
        borders |= places
        if child.tag == "cons":
            borders |= {start, start + len(inside)}
            kind = _type(child.get("sem", ""), other_types, check)
            if kind and inside:
                entities.append(Entity(start=start, end=start + len(inside), type=kind))
        text += child.tail or ""
    return text, entities, borders


def _type(sem: str, other_types: bool, check: RecordChecker) -> str:
    """The type that stands for a `sem`; empty if it is no entity."""
    if entity_class := ENTITY_CLASS.fullmatch(sem):
        return entity_class[1] or entity_class[2]
    if other_types and sem:
        return "coordination" if sem.startswith("(") else "other_name" if sem == "G#other_name" else "other"
    if COORDINATION.match(sem):
        check.drop("coordinated entities dropped")
    return ""


def _in_order(entities: list[Entity], check: RecordChecker, all_types: bool) -> list[Entity]:
    """The entities by position, each once; unless `all_types`, of several types of a span the last in ASCII order.

    One of the five types prevails over the auxiliary ones.
    """
    kept: list[Entity] = []
    by_type = sorted(check.unique(entities), key=lambda entity: (entity["type"] not in AUXILIARY_TYPES, entity["type"]))
    in_order = sorted(by_type, key=lambda entity: (entity["start"], entity["end"]))
    for _, of_span in groupby(in_order, key=lambda entity: (entity["start"], entity["end"])):
        *others, last = of_span
        if others and not all_types:
            check.drop("further types of a span dropped", len(others))
        kept += [*others, last] if all_types else [last]
    return kept


GENIA = CorpusFormat(
    name="genia",
    description="GENIA's term corpus as XML",
    read=read_genia,
    suffixes=(".xml",),
    recognizes=lambda head: "<set>" in head and ("gpml" in head or "GENIA" in head),
)
# The literature's figures are those of one of the five types per span. The others are never detected.
ONLY_NAMED = replace(GENIA, recognizes=None)
GENIA_ALL_TYPES = replace(
    ONLY_NAMED,
    name="genia_all_types",
    description="the same, with every type of a span",
    read=partial(read_genia, all_types=True),
)
GENIA_OTHER_TYPES = replace(
    ONLY_NAMED,
    name="genia_other_types",
    description="the same, with its other types as other_name, coordination and other, for auxiliary labels",
    read=partial(read_genia, other_types=True),
)
