"""Reads standoff annotations: entities with their offsets in a text, in another file or in the lines before them."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from html import unescape
from pathlib import Path
from typing import NamedTuple

from ...files import visible_files
from ...model.text_triaffine import Offsets
from ..reading import name_in_corpus, numbered_lines, numbered_paragraphs, parse_xml, read_text
from ..schema import BYTE_ORDER_MARK, Entity, RecordChecker, Text, annotated
from . import CorpusFormat

# ---- brat: a text (`.txt`) and its annotations (`.ann`) for every document of a folder ----

TEXT_SUFFIX, ANNOTATION_SUFFIX = ".txt", ".ann"
TEXT_BOUND = re.compile(
    r"(T[^\t]*)\t(\S+)[ \t]([0-9]{1,15}[ \t][0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*)(?:\t(.*))?", re.DOTALL
)
"""An entity, or an event's trigger. brat ends a fragment at every line end, and NER-UK has tabs."""
OTHER_ANNOTATIONS = {
    "R": "relations",
    "*": "equivalences",
    "E": "events",
    "A": "attributes",
    "M": "attributes",
    "N": "normalizations",
    "#": "notes",
}


def brat_documents(path: Path) -> list[Path]:
    """The annotations in a folder, and texts that have none; empty if nothing is annotated."""
    files = visible_files(path)
    annotations = {file.with_suffix(TEXT_SUFFIX): file for file in files if file.suffix in BRAT.suffixes}
    alone = [file for file in files if file.suffix == TEXT_SUFFIX and file not in annotations]
    return sorted([*annotations.values(), *alone]) if annotations else []


def read_brat(path: Path, check: RecordChecker) -> Iterator[Text]:
    """Reads one `.ann` with the text beside it."""
    name = name_in_corpus(path, check)
    if path.suffix == TEXT_SUFFIX:
        check.note(f"texts without {ANNOTATION_SUFFIX} ignored", example=path.name)
        return
    with check.record():
        text_file = path.with_suffix(TEXT_SUFFIX)
        if not text_file.is_file():
            problem = f"the text that it annotates, {text_file.name}, is not in its folder"
            raise check.error(name, problem, f"Add it, or remove {path.name}")
        doc_id = name.removesuffix(path.suffix)
        text = read_text(text_file, check, f"{doc_id}{TEXT_SUFFIX}")
        entities = []
        for number, line in numbered_lines(path, check, name):
            where = f"{name}, line {number}"
            if line[:1] in OTHER_ANNOTATIONS:
                check.note(f"{OTHER_ANNOTATIONS[line[0]]} ignored")
            elif line.startswith("T") or "\t" in line:
                entities.append(_brat_entity(line, text, where, check))
            elif line.strip():
                check.note("lines that are not annotations ignored", example=where)
        yield annotated(doc_id, text, entities, name)


def _brat_entity(line: str, text: str, where: str, check: RecordChecker) -> Entity | None:
    found = TEXT_BOUND.fullmatch(line)
    fragments = [(int(start), int(end)) for start, end in re.findall(r"(\d+)\s(\d+)", found[3])] if found else []
    if found is None or (found[4] is None and any(start != end for start, end in fragments)):
        rule = "One has three fields separated by tabs: an id with T, type and offsets ('Person 0 4', the type without "
        raise check.error(where, f"{line[:60]!r} is not a text-bound annotation", f"{rule}spaces), and the text")
    return check.entity(text, fragments, found[2], found[4] or "", where, found[1])


BRAT = CorpusFormat(
    name="brat",
    description="brat's standoff format, a folder of .txt and .ann",
    read=read_brat,
    suffixes=(ANNOTATION_SUFFIX, ".a1"),  # by these alone, which lead to its text; .a1: shared tasks of BioNLP
    documents=brat_documents,
)

# ---- PubTator: the title and abstract of a document, then one entity a line, then an empty line ----

TEXT_LINE = re.compile(r"([^|\t\n]+)\|([ta])\|(.*)")
ENTITY_LINE = re.compile(r"([^\t]+)\t([0-9]{1,15})\t([0-9]{1,15})\t([^\t]*)\t([^\t]+)(?:\t.*)?")
RELATION_LINE = re.compile(r"([^\t]+)\t(?![A-Z][0-9]+\t)[^\t0-9][^\t]*\t[^\t]+\t[^\t]+(?:\t.*)?")


def read_pubtator(path: Path, check: RecordChecker) -> Iterator[Text]:
    """Reads one document after the other."""
    for lines in numbered_paragraphs(path, check):
        with check.record():
            yield _pubtator_document(lines, check)


def _pubtator_document(lines: list[tuple[int, str]], check: RecordChecker) -> Text:
    """A document; offsets count the characters of its title, one more, and its abstract."""
    texts: dict[str, str] = {}
    annotations: list[tuple[str, re.Match[str]]] = []
    doc_id = ""
    for number, line in lines:
        where = f"line {number}"
        text, entity, relation = (form.fullmatch(line) for form in (TEXT_LINE, ENTITY_LINE, RELATION_LINE))
        found = text or entity or relation
        doc_id = doc_id or (found[1] if found else "")
        if found and found[1] != doc_id:
            problem = f"the document {found[1]!r} begins within the document {doc_id!r}"
            raise check.error(where, problem, "Put an empty line between two documents")
        if text and not annotations and text[2] not in texts:
            texts[text[2]] = text[3]
        elif entity:
            annotations.append((where, entity))
        elif relation:
            check.note("relations ignored")
        else:
            remedy = "Lines are 'ID|t|title', 'ID|a|abstract', or ID, start, end, text, type"
            raise check.error(where, f"{line[:60]!r} is not a line of PubTator", remedy)
    first = f"line {lines[0][0]}"
    if "t" not in texts:
        raise check.error(first, f"the document {doc_id!r} has no title", f"Begin it with '{doc_id}|t|'")
    title, abstract = texts["t"], texts.get("a", "")
    whole = f"{title} {abstract}" if abstract else title
    entities = (
        check.entity(whole, [(int(fields[2]), int(fields[3]))], fields[5], fields[4] or None, where, where)
        for where, fields in annotations
    )
    return annotated(doc_id, whole, entities, f"{first} (document {doc_id})", (len(title), len(title) + 1))


PUBTATOR = CorpusFormat(
    name="pubtator",
    description="PubTator's text files",
    read=read_pubtator,
    suffixes=(".pubtator", ".pubtator.txt"),
    recognizes=lambda head: bool(re.match(r"[^|\t\n]+\|t\|", head)),
)

# ---- ACE and ERE as LDC distributes them: a source and its annotations for every document ----
#
# Entities are all entity mentions, with the type of their entity. Sentences end at every tag.
#
# - ACE (`.sgm`, `.apf.xml`): offsets count the characters of the source without its tags, an escape like `&amp;` as
#   written. What is outside of `<TEXT>` is not read, unless a mention is annotated there.
# - ERE of TAC KBP (`.rich_ere.xml` and texts): offsets count the characters of the source, its tags included. Text that
#   a post of a forum quotes from another one (`<quote>`) is not annotated, and not read. Mentions in a tag (the author
#   of a post) are dropped and counted.

TAG = re.compile(r"<[^<>]+>")
QUOTE = re.compile(r"<quote\b.*?(?:</quote\s*>|\Z)", re.DOTALL | re.IGNORECASE)
ESCAPE = re.compile(r"&(amp|lt|gt|quot|apos);", re.IGNORECASE)
# Folders of ACE 2005 that hold the same documents, from the first to the last stage of annotation.
STAGES = ("fp1", "fp2", "adj", "timex2norm")
IGNORED = {  # tag of what is no entity → its name
    "value_mention": "values",
    "timex2_mention": "times",
    "filler": "fillers",
    "relation_mention": "relations",
    "event_mention": "events",
}


class Mention(NamedTuple):
    """An entity mention; `quote` is its text as annotated."""

    where: str
    type: str
    span: Offsets
    quote: str | None

    def overlaps(self, span: Offsets) -> bool:
        return self.span[0] < span[1] and span[0] < self.span[1]


Written = tuple[str, list[int], list[Mention]]  # what is read: text, positions that no sentence crosses, mentions


def _ldc_documents(path: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The annotations in a folder, searched recursively, or the one file."""
    return [file for file in visible_files(path) if file.name.endswith(suffixes)]


def _read_ldc(
    path: Path,
    check: RecordChecker,
    suffixes: tuple[str, ...],
    sources: tuple[str, ...],
    written: Callable[[str, list[Mention], RecordChecker], Written],
) -> Iterator[Text]:
    """Reads one document, unless the corpus has a later stage of its annotation.

    Args:
        suffixes: of the annotations; none ends with another.
        sources: suffixes of the texts that they annotate, beside them or in the folder `source` beside theirs.
        written: source and mentions → what is read.
    """
    stage = STAGES.index(path.parent.name) if path.parent.name in STAGES else len(STAGES)
    later = [path.parent.parent / name / path.name for name in STAGES[stage + 1 :]]
    if any(file.is_file() and check.folder in file.parents for file in later):
        check.note("earlier stages of annotation ignored")
        return
    name = name_in_corpus(path, check)
    document = next((path.name.removesuffix(end) for end in suffixes if path.name.endswith(end)), path.name)
    folders = dict.fromkeys((path.parent, path.parent.parent / "source"))
    places = [folder / f"{document}{suffix}" for folder in folders for suffix in sources]
    found = [place for place in places if place.is_file()]
    with check.record():
        if len(found) != 1:
            problem = f"its text, {document}{'|'.join(sources)}, is not there once: {[*map(str, found)]}"
            raise check.error(name, problem, "Put it beside the annotations, or in the folder `source` beside it")
        mentions = list(_mentions(path, name, check))
        # A line end is one character, whatever system wrote the file.
        source = read_text(found[0], check, found[0].name).removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")
        text, borders, mentions = written(source, mentions, check)
        entities = [check.entity(text, [span], kind, quote, where, "mention") for where, kind, span, quote in mentions]
        yield annotated(document, text, entities, name, borders)


def _mentions(file: Path, name: str, check: RecordChecker) -> Iterator[Mention]:
    root = parse_xml(file, check, name)
    for tag, what in IGNORED.items():
        check.note(f"{what} ignored", len([*root.iter(tag)]))
    for entity in root.iter("entity"):
        for element in entity.iter("entity_mention"):
            where = f"{name}, {element.get('ID') or element.get('id')}"
            extent = element.find("extent/charseq")
            try:
                if extent is not None:
                    span, quote = (int(extent.get("START", "")), int(extent.get("END", "")) + 1), extent.text
                else:
                    start, length = int(element.get("offset", "")), int(element.get("length", ""))
                    span, quote = (start, start + length), _unescape(element.findtext("mention_text", ""))
            except ValueError:
                raise check.error(where, "it has no offsets", "Give the file as distributed by LDC") from None
            yield Mention(where, entity.get("TYPE") or entity.get("type") or "", span, quote or None)


def _unescape(text: str) -> str:
    """The text with `&amp;` and the like as characters, padded with spaces, so that offsets stay valid."""
    return ESCAPE.sub(lambda escape: unescape(escape[0].lower()).ljust(len(escape[0])), text)


def _blanked(text: str, spans: list[Offsets]) -> str:
    """The text with spaces in these places."""
    characters = list(text)
    for start, end in spans:
        characters[start:end] = " " * (end - start)
    return "".join(characters)


def _ace_written(source: str, mentions: list[Mention], check: RecordChecker) -> Written:
    borders: list[int] = []
    unread: list[Offsets] = []
    first, is_text = 0, False
    for part in re.split(f"({TAG.pattern})", source):
        if TAG.fullmatch(part):
            is_text = part.upper() == "<TEXT>" or (is_text and part.upper() != "</TEXT>")
            continue
        piece = (first, first + len(part))
        first = piece[1]
        if is_text or any(mention.overlaps(piece) for mention in mentions):
            borders += piece
        else:
            unread.append(piece)
    return _blanked(_unescape(TAG.sub("", source)), unread), borders, mentions


ACE_SUFFIXES = (".apf.xml",)
ACE = CorpusFormat(
    name="ace",
    description="ACE as distributed by LDC, a folder of .sgm and .apf.xml",
    read=partial(_read_ldc, suffixes=ACE_SUFFIXES, sources=(".sgm",), written=_ace_written),
    suffixes=ACE_SUFFIXES,
    recognizes=lambda head: head.startswith("<") and "<source_file" in head,
    documents=partial(_ldc_documents, suffixes=ACE_SUFFIXES),
)


def _ere_written(source: str, mentions: list[Mention], check: RecordChecker) -> Written:
    tags = [match.span() for match in TAG.finditer(source)]
    kept = dict.fromkeys(mention for mention in mentions if not any(mention.overlaps(tag) for tag in tags))
    for mention in (mention for mention in mentions if mention not in kept):
        check.drop("mentions inside tags dropped", 1, f"{mention.where}: {mention.quote or ''}")
    quotes = (match.span() for match in QUOTE.finditer(source))
    unread = [quote for quote in quotes if not any(mention.overlaps(quote) for mention in kept)]
    return _blanked(_unescape(source), [*tags, *unread]), [border for tag in tags for border in tag], [*kept]


ERE_SUFFIXES = (".rich_ere.xml", ".light_ere.xml", ".ere.xml")
ERE_SOURCES = (".cmp.txt", ".mpdf.xml", ".mp.txt", ".txt", ".xml", ".sgm")
ERE = CorpusFormat(
    name="ere",
    description="ERE as distributed by LDC, a folder of .rich_ere.xml and texts",
    read=partial(_read_ldc, suffixes=ERE_SUFFIXES, sources=ERE_SOURCES, written=_ere_written),
    suffixes=ERE_SUFFIXES,
    recognizes=lambda head: "<deft_ere" in head,
    documents=partial(_ldc_documents, suffixes=ERE_SUFFIXES),
)
