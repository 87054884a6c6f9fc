"""Reads GENIA's own XML by the rules under which the literature has five classes and 18,546 sentences.

- words: the sentence split at white space and at every `<cons>` tag;
- entities: each `<cons>` of the five classes; coordinations (`sem="(AND …)"`) and their parts, which have no `sem`, are
  none. Of several types of a span, the last in ASCII order is kept;
- splits by sentence, in corpus order: 15,023 train, 1,669 validation (together the 16,692 that papers call train), the
  rest test. The second occurrence of an abstract gets `#2` appended to its name.
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

SPLIT_STARTS = {"train": 0, "validation": 15_023, "test": 16_692}  # number of each split's first sentence
ENTITY_CLASS = re.compile(r"G#(?:(DNA|RNA|protein)_.*|(cell_line|cell_type))")
WORD = re.compile(r"\S+")
FIVE, ALL, OTHERS = "the five", "all of a span", "others, too"  # types that are read
AUXILIARY_TYPES = ("other_name", "coordination", "other")  # of `genia_other_types`, beside the five
COORDINATION = re.compile(r"\(.*G#(?:(?:DNA|RNA|protein)_|cell_line|cell_type)")


def read_genia(path: Path, check: RecordChecker, types: str = FIVE) -> Iterator[Text]:
    """Reads the documents: the title, a line break, then the sentences of the abstract joined by spaces.

    A document that crosses the border of two splits is given in two parts, one for each split.
    """
    occurrences = Counter[str]()
    num_sentences = 0
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
                sentences = list(_sentences_of(element, doc_id, check, types))
                for split, part in groupby(enumerate(sentences, num_sentences), key=_split_of):
                    yield text_of_sentences([sentence for _, sentence in part], f"article {doc_id}", split)
                num_sentences += len(sentences)
            element.clear()


def _split_of(numbered: tuple[int, WrittenSentence]) -> str:
    """The split of a sentence by its number in the corpus."""
    return [split for split, first in SPLIT_STARTS.items() if first <= numbered[0]][-1]


def _sentences_of(article: Element, doc_id: str, check: RecordChecker, types: str) -> Iterator[WrittenSentence]:
    titles = {sentence for title in article.iter("title") for sentence in title.iter("sentence")}
    after_title = False
    for number, element in enumerate(article.iter("sentence")):
        text, marked = _written(element)
        borders = sorted({0, len(text), *(border for start, end, _ in marked for border in (start, end))})
        words = [word.span() for start, end in pairwise(borders) for word in WORD.finditer(text, start, end)]
        typed = [(start, end, _type(sem, types, check)) for start, end, sem in marked]
        entities = [Entity(start=start, end=end, type=kind) for start, end, kind in typed if kind and start < end]
        aligned, lost = align_entities(text, entities, words)
        check.drop(OF_WHITE_SPACE, len(lost))
        names = {"id": f"{doc_id}:{number}", "doc_id": doc_id, "sent_id": number}
        tokens = [text[start:end] for start, end in words]
        fields = {**names, "tokens": tokens, "entities": _in_order(aligned, check, types)}
        record = check(fields, f"article {doc_id}, sentence {number}")
        yield WrittenSentence(record, text, words, "\n" if after_title and element not in titles else " ")
        after_title = element in titles


def _written(element: Element, first: int = 0) -> tuple[str, list[tuple[int, int, str]]]:
    """The text of an element that begins at `first`; start, end and `sem` of each `<cons>` in it, inner ones first."""
    text, marked = element.text or "", []
    for child in element:
        start = first + len(text)
        inside, marked_inside = _written(child, start)
        text += inside
        marked += marked_inside
        if child.tag == "cons":
            marked.append((start, start + len(inside), child.get("sem", "")))
        text += child.tail or ""
    return text, marked


def _type(sem: str, types: str, check: RecordChecker) -> str:
    """The type that stands for a `sem`; empty if it is no entity."""
    if entity_class := ENTITY_CLASS.fullmatch(sem):
        return entity_class[1] or entity_class[2]
    if types == OTHERS and sem:
        return "coordination" if sem.startswith("(") else "other_name" if sem == "G#other_name" else "other"
    if COORDINATION.match(sem):
        check.drop("coordinated entities dropped")
    return ""


def _in_order(entities: list[Entity], check: RecordChecker, types: str) -> list[Entity]:
    """The entities by position, each once. Of several types of a span, the last is kept, one of the five if any is."""
    by_type = sorted(check.unique(entities), key=lambda entity: (entity["type"] not in AUXILIARY_TYPES, entity["type"]))
    in_order = sorted(by_type, key=lambda entity: (entity["start"], entity["end"]))
    if types == ALL:
        return in_order
    kept = {(entity["start"], entity["end"]): entity for entity in in_order}
    check.drop("further types of a span dropped", len(in_order) - len(kept))
    return list(kept.values())


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
    read=partial(read_genia, types=ALL),
)
GENIA_OTHER_TYPES = replace(
    ONLY_NAMED,
    name="genia_other_types",
    description="the same, with its other types as other_name, coordination and other, for auxiliary labels",
    read=partial(read_genia, types=OTHERS),
)
