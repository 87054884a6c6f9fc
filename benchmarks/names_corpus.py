"""Makes the corpus that the model `names-en` is trained on: nested names in English texts of open corpora.

    python benchmarks/names_corpus.py OUTPUT --gum FOLDER [--litbank FOLDER] [--wikigold FILE] [--wnut FILE] \
        [--ewt FILE] [--crossner FOLDER] [--docred FOLDER] [--silver MODEL]

writes the folders `all` and `gum`, of all corpora and of GUM alone, each with `train.jsonl` and `validation.jsonl`, a
sentence each line with its text and entities by characters. Some names also stand alone in `train.jsonl`, as a text of
their own, with the label that most corpora's sentences give them: else a person called Paris would decide. In `gum`, a
tenth of the texts are in capitals or in lower case.

- GUM (Zeldes 2017; github.com/amir-zeldes/gum, `dep/` with `splits.md` in one folder): documents of the genres whose
  texts are CC BY, CC BY-SA or in the public domain. A mention is a name if the head of its span is a proper noun; of
  the span, what is before and after the name is left out (articles, clauses, appositions; titles and possessors of
  persons, which the flat corpora leave out). Documents of its test split are not read.
- LitBank (Bamman et al. 2019; CC BY 4.0, `coref/brat`): mentions that it marks as proper names, without titles.
- wikigold (Balasuriya et al. 2009; CC BY 4.0), WNUT 2017 (Derczynski et al. 2017; CC BY 4.0), and UNER's EWT (Mayhew et
  al. 2024; CC BY-SA 4.0): flat, and without some of GUM's types.
- CrossNER (Liu et al. 2021; MIT; github.com/zliucr/CrossNER, `ner_data`): train and dev of its five domains.
- DocRED (Yao et al. 2019; MIT), dev, as `dev_revised.json` and `test_revised.json` of Re-DocRED (Tan et al. 2022; MIT;
  github.com/tonytan48/Re-DocRED): mentions in Wikipedia. Adjectives of places are left out, and dates without the name
  of a month or a day.

With `--silver`, an earlier model adds what these corpora do not annotate: its types that a corpus lacks, and names
inside the corpus's own.
"""

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

OPEN_GENRES = ("academic", "bio", "conversation", "court", "interview", "news", "speech", "textbook", "vlog", "voyage")
GUM_TYPES = {
    "person": "PERSON",
    "place": "PLACE",
    "organization": "ORGANIZATION",
    "event": "EVENT",
    "time": "TIME",
    **dict.fromkeys(("abstract", "object", "substance", "animal", "plant"), "OTHER"),
}
LITBANK_TYPES = {
    "PER": "PERSON",
    "FAC": "PLACE",
    "GPE": "PLACE",
    "LOC": "PLACE",
    "ORG": "ORGANIZATION",
    "VEH": "OTHER",
}
TAGS = {
    **dict.fromkeys(("PER", "person"), "PERSON"),
    **dict.fromkeys(("LOC", "location"), "PLACE"),
    **dict.fromkeys(("ORG", "corporation", "group"), "ORGANIZATION"),
    **dict.fromkeys(("product", "creative-work"), "OTHER"),
    **dict.fromkeys(("politician", "scientist", "musicalartist", "writer", "researcher"), "PERSON"),
    "country": "PLACE",
    **dict.fromkeys(("organisation", "politicalparty", "university", "band"), "ORGANIZATION"),
    **dict.fromkeys(("event", "election", "conference"), "EVENT"),
    **dict.fromkeys(("album", "song", "book", "poem", "magazine", "academicjournal", "award"), "OTHER"),
}
DOCRED_TYPES = {"PER": "PERSON", "LOC": "PLACE", "ORG": "ORGANIZATION", "TIME": "TIME", "MISC": "OTHER"}
FLAT_TYPES = {"PERSON", "PLACE", "ORGANIZATION"}
SURE = 0.6  # probability from which a silver name is added
CONNECTOR = re.compile(r"of|d[aeiu]|des|del|von|van|der|den|l[ae]|el|al|&|for|['’]s|[-–/]|and|the")
THE = re.compile("[Tt]he|THE")
# In GUM, titles are known by their relation to the name.
TITLE = re.compile(
    r"(Mr|Mrs|Ms|Dr|Rev|Capt|Prof|M|Mme|Mlle)\.?|Miss|Sir|Madame|Mademoiselle|Monsieur|Lord|Lady|Doctor|Aunt|Uncle|Master"
    r"|Captain|Colonel|General|Major|Lieutenant|Sergeant|Judge|King|Queen|Prince|Princess|Count|Countess|Duke|Duchess"
    r"|Father|Sister|Mother|Reverend|Cardinal|Bishop|[a-z]+"
)
SUFFIX = re.compile(r"(Inc|Ltd|Jr|Sr)\.?|LLC|D\.C\.|DC|PhD")
# DocRED has adjectives ("German") among its places, and events among what is neither place nor person.
ADJECTIVE = re.compile(
    r"(?!.*(Caribbean|Mediterranean|Oceans?|Parish|Smithsonian)$)(.*(ian|ean|ish|ese|ican)s?|(.* )?(German|"
    r"French|Dutch|Greek|Swiss|Czech|Welsh|Thai|Turk|Iraqi|Israeli|Pakistani|Bangladeshi|Saudi|Qatari|Kuwaiti|Yemeni|Omani"
    r"|Somali|Nepali|Afghan|Roman|Cuban|Tibetan|Slovak|Serb|Croat|Soviet|Flemish|Icelandic|Moldovan|Venezuelan|Angolan|"
    r"Paraguayan|Uruguayan|Ugandan|Papuan|Tajik|Uzbek|Catalan|Ottoman|Irishmen|Englishman)s?)"
)
EVENT = re.compile(
    r".*\b(Wars?|Battle|Siege|Olympics|Olympic Games|Asian Games|Championships?|Cup|Festival|Grand Prix|Revolution|"
    r"Tournament|Elections?|Massacre|Uprising|Conference|Contest|Holocaust|Rebellion|Blitz)\b.*"
)
DATE = re.compile(
    r".*\b(January|February|March|April|May|June|July|August|September|October|November|December|Monday|Tuesday|Wednesday"
    r"|Thursday|Friday|Saturday|Sunday)\b.*"
)
NO_SPACE_BEFORE = re.compile(r"[.,;:!?%)\]}…]+|n't|n’t|['’](?:s|re|ve|ll|d|m|S)?|''|”")
NO_SPACE_AFTER = re.compile(r"[(\[{$£€#“]|``")


Record = dict[str, Any]
"""A line of the corpus: `doc_id`, `text` and `entities` by characters."""


@dataclass
class Sentence:
    """Words with their offsets in a text, and names as (first word, last word, type)."""

    name: str
    text: str
    words: list[tuple[int, int]]
    names: set[tuple[int, int, str]] = field(default_factory=set)

    def record(self) -> Record:
        """The line of the corpus: entities by characters."""
        entities = [
            {"start": self.words[first][0], "end": self.words[last][1], "type": kind}
            for first, last, kind in sorted(self.names)
        ]
        return {"doc_id": self.name, "text": self.text, "entities": entities}


def joined(name: str, words: list[str]) -> Sentence:
    """A sentence of words, written as a text is."""
    text, offsets, glued, quoted = "", [], True, False
    for word in words:
        opens = word == '"' and not quoted
        closes = word == '"' and quoted
        if not (glued or closes or NO_SPACE_BEFORE.fullmatch(word)):
            text += " "
        offsets.append((len(text), len(text) + len(word)))
        text += word
        glued = opens or bool(NO_SPACE_AFTER.fullmatch(word))
        quoted = quoted != (word == '"')
    return Sentence(name, text, offsets)


# ---- GUM ----


def read_gum(folder: Path) -> dict[str, list[Sentence]]:
    """The sentences of GUM's open genres, by split."""
    splits: dict[str, list[Sentence]] = {"train": [], "validation": []}
    split = ""
    for line in (folder / "splits.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            split = {"dev": "validation"}.get(line[3:].strip(), line[3:].strip())
        document = line.strip(" *\\").replace("\\_", "_")
        if split in splits and document.startswith("GUM_") and document.split("_")[1] in OPEN_GENRES:
            splits[split] += gum_sentences(folder / f"{document}.conllu", document)
    return splits


def gum_sentences(path: Path, document: str) -> Iterator[Sentence]:
    open_mentions: dict[str, tuple[int, str]] = {}
    for number, block in enumerate(path.read_text(encoding="utf-8").strip().split("\n\n")):
        rows = [line.split("\t") for line in block.splitlines() if line[:1].isdigit()]
        contractions = {row[0].split("-")[0]: row for row in rows if "-" in row[0]}
        rows = [row for row in rows if row[0].isdigit()]
        text, words = "", []
        for row in rows:
            words.append((len(text), len(text) + len(row[1])))
            text += row[1] if "SpaceAfter=No" in row[9] or in_contraction(row, contractions) else row[1] + " "
        sentence = Sentence(f"{document}-{number}", text.rstrip(), words)
        for first, last, kind in mentions(rows, open_mentions):
            span = name_in(rows, first, last, is_person=kind == "person")
            if span and kind in GUM_TYPES:
                sentence.names.add((*span, GUM_TYPES[kind]))
        yield sentence


def in_contraction(row: list[str], contractions: dict[str, list[str]]) -> bool:
    """True if the next word is of the same contraction ("don't"), or none follows it with a space."""
    number = int(row[0])
    for whole in contractions.values():
        first, last = map(int, whole[0].split("-"))
        if first <= number < last or (number == last and "SpaceAfter=No" in whole[9]):
            return True
    return False


def mentions(rows: list[list[str]], opened: dict[str, tuple[int, str]]) -> Iterator[tuple[int, int, str]]:
    """The mentions of a sentence, from `Entity=` in the last column: first word, last word, type."""
    opened.clear()
    for number, row in enumerate(rows):
        found = re.search(r"(?:^|\|)Entity=([^|]+)", row[9])
        for opens, closes in re.findall(r"\(([^()]+)|([^()]*)\)", found[1]) if found else ():
            if opens:
                identity, kind, *_ = opens.split("-")
                opened[identity] = (number, kind)
                last = identity
            else:
                identity = closes or last
                if identity in opened:
                    first, kind = opened.pop(identity)
                    yield first, number, kind


def name_in(rows: list[list[str]], first: int, last: int, is_person: bool) -> tuple[int, int] | None:
    """The name in a mention whose head is a proper noun, without what precedes and follows it; else None."""
    inside = {rows[number][0] for number in range(first, last + 1)}
    heads = [number for number in range(first, last + 1) if rows[number][6] not in inside]
    if not heads or rows[heads[0]][3] != "PROPN":
        return None
    head = heads[0]
    if any(row[6] == rows[head][0] and row[7] == "conj" for row in rows[head + 1 : last + 1]):
        return None
    if is_person:  # possessors ("Korea's") and titles
        before = (n for n in range(first, head) if rows[n][7] in ("case", "nmod:desc"))
        first = max([first, *(n + 1 for n in before if rows[n][1] not in ("St.", "Saint", "Madam"))])
    while first < head and not begins_a_name(rows[first]):
        first += 1
    end = head
    for number in range(head + 1, last + 1):
        between = [row[1] for row in rows[end + 1 : number]]
        if not is_capital(rows[number]):
            if rows[number][1] != "," and not CONNECTOR.fullmatch(rows[number][1]):
                break
        elif all(map(CONNECTOR.fullmatch, between)) or (between == [","] and SUFFIX.fullmatch(rows[number][1])):
            end = number
        else:
            break
    return first, end


def is_capital(row: list[str]) -> bool:
    return row[1][:1].isupper() or row[1][:1].isdigit()


def begins_a_name(row: list[str]) -> bool:
    return is_capital(row) and row[3] not in ("DET", "PRON", "PUNCT", "ADP", "CCONJ")


# ---- The others ----


def read_litbank(folder: Path) -> Iterator[Sentence]:
    for path in sorted(folder.glob("*.ann")):
        text = path.with_suffix(".txt").read_text(encoding="utf-8")
        found = re.findall(r"^T\d+\tPROP_(\w+) (\d+) (\d+)\t", path.read_text(encoding="utf-8"), re.MULTILINE)
        for line in re.finditer(r"[^\n]+", text):
            tokens = [(line.start() + word.start(), word[0]) for word in re.finditer(r"\S+", line[0])]
            sentence = joined(f"{path.stem}-{line.start()}", [word for _, word in tokens])
            for kind, start, end in found:
                inside = [n for n, (at, word) in enumerate(tokens) if int(start) <= at and at + len(word) <= int(end)]
                left_out = TITLE if kind == "PER" else THE
                while len(inside) > 1 and left_out.fullmatch(tokens[inside[0]][1]):
                    inside = inside[1:]
                if inside and kind in LITBANK_TYPES:
                    sentence.names.add((inside[0], inside[-1], LITBANK_TYPES[kind]))
            yield sentence


def read_tags(path: Path, word: int, tag: int) -> Iterator[Sentence]:
    """Sentences of a column file with IO or IOB2 tags."""
    for number, block in enumerate(re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip())):
        rows = [line.split() for line in block.splitlines() if line and not line.startswith("# ")]
        if not rows or rows[0][0] == "-DOCSTART-":
            continue
        sentence = joined(f"{path.stem}-{number}", [row[word] for row in rows])
        begin = None
        tags = [row[tag] for row in rows] + ["O"]
        for place, label in enumerate(tags):
            continues = label.startswith("I-") and begin is not None and label[2:] == tags[begin][2:]
            if begin is not None and not continues:
                if kind := TAGS.get(tags[begin][2:]):
                    sentence.names.add((begin, place - 1, kind))
                begin = None
            if begin is None and label != "O":
                begin = place
        yield sentence


def read_crossner(folder: Path) -> Iterator[Sentence]:
    for domain in ("ai", "literature", "music", "politics", "science"):
        for split in ("train", "dev"):
            for sentence in read_tags(folder / domain / f"{split}.txt", 0, 1):
                sentence.name = f"{domain}-{sentence.name}"
                yield sentence


def read_docred(folder: Path) -> Iterator[Sentence]:
    for split in ("dev", "test"):
        for number, document in enumerate(json.loads((folder / f"{split}_revised.json").read_text(encoding="utf-8"))):
            named = [mention for entity in document["vertexSet"] for mention in entity]
            for place, words in enumerate(document["sents"]):
                sentence = joined(f"docred-{split}-{number}-{place}", words)
                for mention in (mention for mention in named if mention["sent_id"] == place):
                    if kind := docred_type(mention["type"], mention["name"]):
                        sentence.names.add((mention["pos"][0], mention["pos"][1] - 1, kind))
                yield sentence


def docred_type(kind: str, name: str) -> str | None:
    if (kind == "LOC" and ADJECTIVE.fullmatch(name)) or (kind == "TIME" and not DATE.fullmatch(name)):
        return None
    return "EVENT" if kind == "MISC" and EVENT.fullmatch(name) else DOCRED_TYPES.get(kind)


def add_silver(sentences: list[Sentence], model: str, annotated: set[str]) -> None:
    """Adds what the model finds and the corpus does not annotate: other types, and names inside the corpus's own."""
    from modeling_triaffine import NestedNERPipeline

    found = NestedNERPipeline(model)([sentence.text for sentence in sentences], threshold=SURE)
    for sentence, entities in zip(sentences, found, strict=True):
        starts = {start: number for number, (start, _) in enumerate(sentence.words)}
        ends = {end: number for number, (_, end) in enumerate(sentence.words)}
        gold = [(first, last) for first, last, _ in sentence.names]
        for entity in entities:
            first, last = starts.get(entity["start"]), ends.get(entity["end"])
            if first is None or last is None or (first, last) in gold:
                continue
            crosses = any(a <= last and first <= b and not (a <= first and last <= b) for a, b in gold)
            is_inside = any(a <= first and last <= b for a, b in gold)
            if not crosses and (is_inside or entity["entity_group"] not in annotated):
                sentence.names.add((first, last, entity["entity_group"]))


# ---- Names that stand alone ----


class LoneName(NamedTuple):
    """A name as a text of its own, its place among all names, how often it occurs, and whether in GUM."""

    record: Record
    number: int
    occurrences: int
    is_in_gum: bool


def lone_names(records: Iterable[Record]) -> Iterator[LoneName]:
    """Each name with its most frequent type, unless two are, or it has no capital letter."""
    types: dict[str, Counter[str]] = defaultdict(Counter)
    inside: dict[tuple[str, str], list[dict[str, Any]]] = {}
    in_gum: set[str] = set()
    for record in records:
        for start, end, kind in (tuple(entity.values()) for entity in record["entities"]):
            around = [e for e in record["entities"] if e["start"] <= start and end <= e["end"]]
            if len(around) > 1:
                continue
            name = record["text"][start:end]
            types[name][kind] += 1
            within = [e for e in record["entities"] if start <= e["start"] and e["end"] <= end]
            moved = [{**e, "start": e["start"] - start, "end": e["end"] - start} for e in within]
            inside.setdefault((name, kind), moved)
            if record["doc_id"].startswith("GUM_"):
                in_gum.add(name)
    for number, (name, counts) in enumerate(types.items()):
        (kind, most), *others = counts.most_common(2)
        if name != name.lower() and not (others and others[0][1] == most):
            record = {"doc_id": f"alone-{number}", "text": name, "entities": inside[name, kind]}
            yield LoneName(record, number, counts.total(), name in in_gum)


def written(names: Iterable[LoneName], choice: random.Random) -> list[Record]:
    """The records of names, half of them with a full stop."""
    return [{**name.record, "text": name.record["text"] + choice.choice(["", "."])} for name in names]


def in_other_case(record: Record, choice: random.Random) -> Record:
    """The record, one of ten in capitals or in lower case, unless that changes its length ("ß")."""
    if choice.random() < 0.1:
        text = choice.choice([str.upper, str.lower])(record["text"])
        if len(text) == len(record["text"]):
            return {**record, "text": text}
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--gum", type=Path, required=True)
    for name in ("litbank", "wikigold", "wnut", "ewt", "crossner", "docred"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--silver", metavar="MODEL")
    given = parser.parse_args()
    splits = read_gum(given.gum)
    others: dict[str, tuple[Callable[..., Iterable[Sentence]], tuple[Any, ...], set[str]]] = {
        "litbank": (read_litbank, (given.litbank,), FLAT_TYPES),
        "wikigold": (read_tags, (given.wikigold, 0, 1), FLAT_TYPES),
        "wnut": (read_tags, (given.wnut, 0, 1), {*FLAT_TYPES, "OTHER"}),
        "ewt": (read_tags, (given.ewt, 1, 2), FLAT_TYPES),
        "crossner": (read_crossner, (given.crossner,), {*FLAT_TYPES, "EVENT"}),
        "docred": (read_docred, (given.docred,), {*FLAT_TYPES, "TIME"}),
    }
    for reader, arguments, annotated in others.values():
        if arguments[0]:
            sentences = list(reader(*arguments))
            if given.silver:
                add_silver(sentences, given.silver, annotated)
            # Most sentences of fiction and tweets have no name.
            splits["train"] += [
                sentence for number, sentence in enumerate(sentences) if sentence.names or number % 4 == 0
            ]
    records = {split: [sentence.record() for sentence in sentences] for split, sentences in splits.items()}
    of_gum = [record for record in records["train"] if record["doc_id"].startswith("GUM_")]
    names, choice = [*lone_names(records["train"])], random.Random(0)
    train = {
        "all": records["train"] + written((n for n in names if n.occurrences > 1 or n.number % 3 == 0), choice),
        "gum": of_gum + written((n for n in names if n.is_in_gum and (n.occurrences > 1 or n.number % 2 == 0)), choice),
    }
    choice = random.Random(7)
    train["gum"] = [in_other_case(record, choice) for record in train["gum"]]
    for folder, of_train in train.items():
        (given.output / folder).mkdir(parents=True, exist_ok=True)
        for split, rows in (("train", of_train), ("validation", records["validation"])):
            counts = Counter(entity["type"] for row in rows for entity in row["entities"])
            print(f"{folder}, {split}: {len(rows)} texts, {dict(counts.most_common())}")
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (given.output / folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
