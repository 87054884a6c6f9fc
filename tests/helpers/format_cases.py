"""A case for each format, the input of all tests of formats: the same sentence in it, files with a mistake, noise."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from .corpora import (
    ACE_SOURCE,
    BIGBIO_RECORD,
    NESTED,
    PUBLISHED,
    RECORD,
    TEXT,
    TOKENS,
    ace_annotations,
    article,
    cas_json,
    changed,
    conllu,
    cons,
    entity,
    ere_annotations,
    genia,
    json_lines,
    region,
    task,
)

Files = Mapping[str, str | bytes]


@dataclass(frozen=True)
class FormatCase:
    files: Files | Callable[[], Files]  # with `TEXT` and `entities`, of which a reader opens the last; or their maker
    bad: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # what is wrong → files, its place, facts to name
    nothing: Files = field(default_factory=dict)  # with the sentence and no entities
    entities: list[tuple[str, str]] = field(default_factory=lambda: NESTED)
    noted: tuple[str, ...] = ()  # what the report has of the files
    needs: str = ""  # the library with which `files` are made or read

    def sample(self) -> Files:
        if self.needs:
            pytest.importorskip(self.needs)
        return self.files() if callable(self.files) else self.files


def file_case(files: Files, bad: Mapping[str, tuple[Any, ...]], before: str = "", **others: Any) -> FormatCase:
    """A case whose bad files have another content in the last file, after what is in it `before`."""
    *_, last = files
    made = {wrong: ({**files, last: before + content}, *rest) for wrong, (content, *rest) in bad.items()}
    return FormatCase(files, made, **others)


def record_case(
    files: Files, place: str, put: Callable[[Any], Files], bad: Mapping[str, tuple[Any, ...]], **others: Any
) -> FormatCase:
    """A case whose bad files are made of a value, all with the mistake at one place."""
    made = {wrong: (put(value), place, *facts) for wrong, (value, *facts) in bad.items()}
    return FormatCase(files, made, **others)


def json_case(record: Any, bad: Mapping[str, tuple[Any, ...]], nothing: object = None) -> FormatCase:
    """A case of JSON lines, the bad record after a good one."""
    others = {} if nothing is None else {"nothing": {"a.jsonl": json_lines(nothing)}}
    files = {"a.jsonl": json_lines(record)}
    return record_case(files, "line 2", lambda value: {"a.jsonl": json_lines(record, value)}, bad, **others)


def doc_bin() -> dict[str, bytes]:
    import spacy

    doc = spacy.blank("en")(TEXT)
    doc.spans["sc"] = [doc.char_span(start, end, label) for start, end, label in TEXT_RECORD["label"]]
    return {"a.spacy": spacy.tokens.DocBin(docs=[doc]).to_bytes()}


TEXT_RECORD = {"text": TEXT, "label": [[0, 17, "Person"], [13, 17, "City"]]}
DOCUMENT = {"doc_key": "a", "sentences": [TOKENS], "ner": [[[0, 3, "Person"], [3, 3, "City"]]]}
QUESTIONS = [
    {"context": " ".join(TOKENS), "qas_id": f"0.{n}", "query": "?", "entity_label": kind, "span_position": spans}
    for n, (kind, spans) in enumerate({"City": ["3;3"], "Event": [], "Person": ["0;3"]}.items(), start=1)
]
COLUMNS = "The B-Person O\nmayor I-Person O\nof I-Person O\nOrsk I-Person B-City\nslept O O\n. O O\n".replace(" ", "\t")
BIOC_XML = f"""<?xml version="1.0"?>
<!DOCTYPE collection SYSTEM "BioC.dtd">
<collection><source>x</source><date>2020</date><key>x.key</key>
<document><id>a</id><passage><infon key="type">abstract</infon><offset>0</offset><text>{TEXT}</text>
<annotation id="1"><infon key="type">Person</infon><location offset="0" length="17"/><text>The mayor of Orsk</text>
</annotation><annotation id="2"><infon key="type">City</infon><location offset="13" length="4"/><text>Orsk</text>
</annotation></passage></document></collection>
"""
PUBTATOR = f"7|t|{TEXT}\n7|a|\n7\t0\t17\tThe mayor of Orsk\tPerson\tP1\n7\t13\t17\tOrsk\tCity\n\n"
DECLARED = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
BOMB = f'<!DOCTYPE set [<!ENTITY e0 "eeee">{DECLARED}]>\n<set>{article("&e9;")}</set>'
EXTERNAL = BOMB.replace('"eeee"', 'SYSTEM "/etc/hostname"').replace("e9;", "e0;")
BRAT = {"a.txt": TEXT, "a.ann": "T1\tPerson 0 17\tThe mayor of Orsk\nT2\tCity 13 17\tOrsk\n"}
SPAN_LINES = f"{' '.join(TOKENS)}\nDT NN IN NNP VBD .\n0,3 Person|3,3 City\n\n"
MENTIONED = {
    "tokens": TOKENS,
    "entity_mentions": [{"start": n, "end": 4, "entity_type": kind} for n, kind in ((0, "Person"), (3, "City"))],
}

CASES = {
    "ace": file_case(
        {"a.sgm": ACE_SOURCE, "a.apf.xml": ace_annotations()},
        {
            "truncated": (ace_annotations()[:-20], "a.apf.xml, line "),
            "offset": (ace_annotations().replace('END="', 'END="x'), "a.apf.xml, a-Person-0", "no offsets"),
            "no type": (ace_annotations().replace('TYPE="Person" ', ""), "a.apf.xml, a-Person-0", "type' is ''"),
            "quote": (ace_annotations().replace(">Orsk<", ">Omsk<"), "a.apf.xml, a-City-1", "quotes 'Omsk'"),
        },
    ),
    "bigbio_kb": json_case(
        BIGBIO_RECORD,
        {
            "another schema": ({"id": "1", "text": "a", "labels": []}, "'passages'", "'id', 'text', 'labels'"),
            "relations": ({**BIGBIO_RECORD, "relations": 5}, "'relations' is 5"),
            "offsets": (
                {**BIGBIO_RECORD, "entities": [{"type": "City", "offsets": [[0]]}]},
                "'entities[0].offsets[0]' is [0]",
            ),
            "passages overlap": (
                {**BIGBIO_RECORD, "passages": [{"text": ["aaaa"], "offsets": [[n, n + 4]]} for n in (0, 2)]},
                *("'passages[1]' begins at 2", "ends at 4"),
            ),
            "passage far away": (
                {**BIGBIO_RECORD, "passages": [{"text": ["a"], "offsets": [[10**12, 10**12 + 1]]}]},
                f"{10**12}",
            ),
        },
        nothing={**BIGBIO_RECORD, "entities": []},
    ),
    "bioc": file_case(
        {"a.xml": BIOC_XML},
        {
            "another root": ("<annotations></annotations>", "", "<document>"),
            "no type": (
                BIOC_XML.replace('key="type">City', 'key="kind">City'),
                *("document 0 (document a)", ".infons.type' is missing", "'kind'"),
            ),
            "offset": (BIOC_XML.replace('offset="13"', 'offset="x"'), "document 0", "[0].offset' is 'x' (str)"),
            "truncated": (BIOC_XML[:-30], "line 7"),
            "no passages": (
                json.dumps({"documents": [{"id": "a", "text": "b"}]}),
                *("line 1, documents[0]", "'passages'", "'id', 'text'"),
            ),
        },
        nothing={"a.json": json.dumps({"id": "a", "infons": {}, "passages": [{"offset": 0, "text": TEXT}]})},
    ),
    "brat": record_case(
        BRAT,
        "a.ann, line 3",
        lambda line: {**BRAT, "a.ann": BRAT["a.ann"] + line},
        {
            "another line": ("X1\tCity 0 3\tThe", "'X1\\tCity 0 3\\tThe'"),
            "no text": ("T3\tCity 0 3", "'T3\\tCity 0 3'"),
            "type with a space": ("T3\tBig City 0 3\tThe", "'T3\\tBig City 0 3\\tThe'", "the type without spaces"),
            "text": ("T3\tCity 0 3\tShe", "'T3' quotes 'She'", "[The] mayor of Orsk"),
        },
        nothing={"a.txt": TEXT, "a.ann": ""},
    ),
    "cas": FormatCase({"a.json": cas_json((0, 17, "Person"), (13, 17, "City"))}, needs="cassis"),
    "conllu": file_case(
        {"a.conllu": conllu("(1-Person", "", "", "(2-City)1)", "", "", words=TOKENS)},
        {
            "columns": (conllu("(1-a)") + "2\tw\n", "line 2", "2 in place of 10"),
            "number": (conllu("(1-a)").replace("1", "9" * 5000, 1), "line 1", "'9999"),
            "close in another document": (conllu("(1-a") + "\n# newdoc\n" + conllu("1)"), "line 4", "'1'"),
            "neither": (conllu("1-a"), "line 1", "'1-a'"),
            "no type": ("# global.Entity = eid-head\n" + conllu("(1-a)"), "line 1", "'eid-head'", "etype"),
        },
        nothing={"a.conllu": conllu(*[""] * 6, words=TOKENS)},
    ),
    "docbin": FormatCase(doc_bin, needs="spacy"),
    "ere": file_case(
        {"a.txt": TEXT, "a.rich_ere.xml": ere_annotations()},
        {
            "offset": (ere_annotations().replace('offset="', 'offset="x'), "a.rich_ere.xml, m-0", "no offsets"),
            "quote": (ere_annotations().replace(">Orsk<", ">Omsk<"), "a.rich_ere.xml, m-1", "quotes 'Omsk'"),
        },
    ),
    "genia": file_case(
        {"a.xml": genia(article(f"The mayor of {cons('G#cell_line', 'Orsk')} slept ."))},
        {
            "no name": (genia(article("A", name=" ")), "article 1 of the file", "<bibliomisc>"),
            "deep": (genia(article("<b>" * 5000 + "</b>" * 5000)), "", "nested", "<b>"),
            "encoding": (genia(article("A")).replace("UTF-8", "KOI9"), "", "KOI9"),
            "bomb": (BOMB, "line 7", "amplification"),
            "external entity": (EXTERNAL, "line 7", "undefined"),
        },
        entities=[("Orsk", "cell_line")],
    ),
    "inclusive_spans": json_case(
        DOCUMENT,
        {
            "span": ({"tokenized_text": TOKENS, "ner": [[0, 1]]}, "'ner[0]' is [0, 1]"),
            "outside": ({"tokenized_text": TOKENS, "ner": [[5, 6, "City"]]}, "5 to 7", "6 tokens"),
            "index": ({"sentence": TOKENS, "ner": [{"index": ["0"], "type": "City"}]}, "'ner[0].index[0]' is '0'"),
            "lists": ({"sentences": [TOKENS], "ner": []}, "0 lists for 1"),
            "of another sentence": ({"sentences": [TOKENS, TOKENS], "ner": [[], [[3, 3, "City"]]]}, "sentences[1]"),
        },
    ),
    "iob2": file_case(
        {"a.conll": COLUMNS},
        {
            "fewer": ("a\tO\n", "line 8", "2 in place of 3"),
            "line ends of old Macs": ("a\tO\tO\rb\tO\tO\r", "line 8", "carriage return"),
            "scheme": ("a\tO\tO\n\n" * 10_000 + "b\tO\tQ-A\n", "line 20008", "column 2 is 'Q-A'"),
        },
        before=f"{COLUMNS}\n",
        nothing={"a.conll": "".join(f"{token}\tO\n" for token in TOKENS)},
    ),
    "json_lines": json_case(
        RECORD,
        {
            "not an object": ([1], "[1] (list)"),
            "missing tokens": ({"id": "a:1", "entities": []}, "'tokens'"),
            "sent_id true": (changed(sent_id=True), "'sent_id' is True (bool)"),
            "half a surrogate": (changed(tokens=["a", "\ud800"], pos=[], entities=[]), "'tokens[1]' is '\\ud800'"),
            "tags": (changed(pos=["DET"]), "'pos' has 1 tags for 6 tokens"),
            "entity past the end": (changed(entities=[entity(2, 7)]), "'entities[0]' runs from 2 to 7"),
            "white space around a label": (changed(entities=[entity(0, 1, " City")]), "'entities[0].type' is ' City'"),
            "context": (changed(left_tokens="so"), "'left_tokens' is 'so' (str)"),
        },
        nothing=changed(entities=[]),
    ),
    "label_studio": record_case(
        {"a.json": json.dumps([task(region(0, 17, "Person"), region(13, 17, "City"))], indent=1)},
        "record 0 (task 5)",
        lambda value: {"a.json": json.dumps([value])},
        {
            "no annotations": ({"id": 5, "data": {}}, "'annotations' is missing"),
            "no string": (task(data={"n": 1}), "'data'"),
            "predictions": (task(predictions=5), "'predictions' is 5"),
            "no result": (task(annotations=[{}]), "'annotations[0].result'"),
            "no value": (task({"type": "labels"}), "'annotations[0].result[0].value'", "null"),
            "path": (task(region("/p[1]", 3, "City")), "'annotations[0].result[0].value.start' is '/p[1]' (str)"),
        },
        nothing={"a.json": json.dumps([task()])},
    ),
    "mrc": record_case(
        {"a.json": json.dumps(QUESTIONS, indent=2)},
        "line 2",
        lambda value: {"a.jsonl": f"{json.dumps(QUESTIONS[0])}\n{json.dumps(value)}\n"},
        {
            "no answers": ({"context": "Orsk", "entity_label": "City", "query": "?"}, "'span_position' is missing"),
            "span": ({**QUESTIONS[0], "span_position": ["3-3"]}, "'span_position[0]' is '3-3'"),
        },
    ),
    "published_json": FormatCase(
        {"a.json": json.dumps([PUBLISHED])}, nothing={"a.json": json.dumps([{**PUBLISHED, "entities": []}])}
    ),
    "pubtator": file_case(
        {"a.pubtator": PUBTATOR},
        {
            "no title": ("8|a|Orsk\n", "line 6", "'8'"),
            "another title": ("8|t|Orsk\n9|t|Orsk\n", "line 7", "'9' begins within the document '8'"),
            "no type": ("8|t|Orsk\n8\t0\t4\tOrsk\n", "line 7", "'8\\t0\\t4\\tOrsk'"),
            "an entity of brat": ("8|t|Orsk\n8\tT1\tCity\t0\t4\n", "line 7", "'8\\tT1\\tCity\\t0\\t4' is not a line"),
        },
        before=PUBTATOR,
        nothing={"a.pubtator": f"7|t|{TEXT}\n7|a|\n"},
    ),
    "span_lines": file_case(
        {"a.data": SPAN_LINES},
        {
            "beyond the sentence": ("He slept\n0,3 Person\n", "line 6", "0 to 4", "of 2"),
            "four lines": ("He slept\nPRP VBD\nPRP VBD\n0,1 Person\n", "line 8", "is neither"),
            "not spans": ("He slept\n0-1 Person .\n", "line 6", "'0-1 Person .' is neither spans"),
        },
        before=SPAN_LINES,
        noted=("files with spans such as 3,3, whose last word is therefore part of every span",),
    ),
    "text_spans": json_case(
        TEXT_RECORD,
        {
            "no text": ({"entities": []}, "'text'"),
            "spans twice": ({"text": "a", "entities": [3], "label": [3]}, "'entities' and 'label'"),
            "two values": ({"text": "a", "label": [[0, 1]]}, "'label[0].label' is missing"),
            "outside": ({"text": "a", "label": [[0, 2, "City"]]}, "'label[0]' runs from 0 to 2", "1 characters"),
        },
        nothing={"text": TEXT, "label": []},
    ),
    "word_tags": json_case(
        MENTIONED,
        {
            "numbers": ({"tokens": ["a"], "tags": [7]}, "'tags' has the number 7", "names=O,"),
            "fewer tags": ({"tokens": ["a", "b"], "ner_tags": ["O"]}, "1 tags for 2 tokens"),
            "spans": ({"tokens": ["a", "b", "c"], "ner": [[0, 2, "PER"]]}, "'ner' has the number 0"),
            "no type": ({"tokens": ["a"], "entity_mentions": [{"start": 0, "end": 1}]}, "entity_mentions[0].label"),
        },
    ),
}
SAMPLES: dict[str, Files] = {name: case.sample() for name, case in CASES.items() if not case.needs}
"""Format → files with the sentence `TEXT` and the entities `NESTED` (in GENIA, whose types are fixed, one)."""
