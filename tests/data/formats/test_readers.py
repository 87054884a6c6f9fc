"""Quirks of the corpora of each reader: sentences, entities and counts, in one table; and errors."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from modeling_triaffine.data import CorpusError, load_nested_ner, load_texts
from modeling_triaffine.data.formats.text_spans import QUOTES
from tests.helpers.corpora import (
    BIGBIO_RECORD,
    BIOC_DOCUMENT,
    BIOC_XML,
    DOCUMENT,
    NESTED,
    PUBLISHED,
    QUESTIONS,
    RECORD,
    TEXT,
    TOKENS,
    ace_annotations,
    bigbio_entity,
    conllu,
    ere_annotations,
    read,
    region,
    spelled,
    task,
    triples,
    write_files,
)

SPELLED = " ".join(TOKENS)
ORSK = [("Orsk", "City")]


@dataclass(frozen=True)
class Quirk:
    """Files, or values of JSON lines; the sentences with their entities; what is counted; and options of reading."""

    given: Any
    found: list[tuple[str, list[tuple[str, str]]]]
    counts: dict[str, int] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def lines(*values):
    return {"a.jsonl": "".join(f"{json.dumps(value)}\n" for value in values)}


def labelled(*annotations):
    """A passage of BioC with annotations of (type, text, (offset, length) …)."""
    found = [
        {"infons": {"type": kind}, "locations": [{"offset": o, "length": n} for o, n in places], "text": text}
        for kind, text, *places in annotations
    ]
    return {"id": "a", "passages": [{"offset": 0, "text": TEXT, "annotations": found, "relations": [{}, {}]}]}


def objects(start="start", end="end", label="label", **fields):
    return [
        {start: first, end: last, label: kind, **fields} for first, last, kind in ((0, 17, "Person"), (13, 17, "City"))
    ]


def both(fields):
    """A text with these fields, which say in any way that it has the two entities."""
    return Quirk(lines({"text": TEXT, **fields}), [(SPELLED, NESTED)])


def argilla(**responses):
    return {"fields": {"text": TEXT}, "responses": responses}


ACE_SOURCE = """<DOC>
<DATETIME> 20030401 </DATETIME>
<HEADLINE>
Mayor sleeps
</HEADLINE>
<TEXT>
<SPEAKER> ANN LEE </SPEAKER>
The mayor of Orsk
slept. AT&amp;T did not.
</TEXT>
</DOC>
"""
ERE_NEWS = """<DOC id="NEWS_1">
<HEADLINE>Mayor sleeps</HEADLINE>
<TEXT><P>
The mayor of Orsk
slept. AT&amp;T did not.
</P></TEXT>
</DOC>
"""
FORUM = """<doc id="DF_1">
<post id="p1" author="Ann Lee" datetime="2014-01-01">
<quote orig_author="Bo">
I saw Bo Ek .
</quote>
I met Cy Dee .
</post>
</doc>
"""
MENTIONS = [("The mayor of Orsk", "PER"), ("Orsk", "GPE"), ("AT&amp;T", "ORG")]
OF_MENTIONS = [
    ("The mayor of Orsk slept .", [("The mayor of Orsk", "PER"), ("Orsk", "GPE")]),
    ("AT & T did not .", [("AT & T", "ORG")]),
]
PASSAGES = {
    **BIGBIO_RECORD,
    "passages": [
        {"text": ["He saw CD28-positive cells"], "offsets": [[30, 56]]},
        {"text": ["It rained in Orsk"], "offsets": [[0, 17]]},
    ],
    "entities": [
        bigbio_entity("City", (13, 17), text=["Orsk"]),
        bigbio_entity("Cell", (37, 50), (51, 56), text=["CD28-positive", "cells"]),
        bigbio_entity("Protein", (37, 39), text=["CD"]),
        bigbio_entity("Split", (30, 32), (51, 56), text=["He", "cells"]),
        bigbio_entity("Crossing", (13, 32)),
        bigbio_entity("Topic"),
    ],
    "relations": [{"id": "r"}, {"id": "s"}],
}
GUM = """# newdoc id = doc
# global.Entity = GRP-etype-infstat
1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\tDiscourse=x|Entity=(1-person-new
2-3\tmayor's\t_\t_\t_\t_\t_\t_\t_\t_
2\tmayor\tmayor\tNOUN\tNN\t_\t0\troot\t_\t_
3\t's\t's\tPART\tPOS\t_\t2\tx\t_\t_
4\tOrsk\tOrsk\tPROPN\tNNP\t_\t2\tx\t_\tEntity=(2-place-new-Orsk%2C_City)1)(3-event|SpaceAfter=No
5\tday\tday\tNOUN\tNN\t_\t2\tx\t_\tEntity=(3-event)3)
"""
INCLUSIVE = "Nobody slept\n\nIL-2 gene\n0,0 protein|0,1 DNA\n\nHe slept in Orsk\n3,3 City\n"
GENE = [("IL-2", "protein"), ("IL-2 gene", "DNA")]
NEWS = [{"start": 0, "end": 3, "label": "Person"}]

QUIRKS = {
    "ace: tags end sentences": Quirk(
        {"N.sgm": ACE_SOURCE, "N.apf.xml": ace_annotations(MENTIONS, ACE_SOURCE, name="N")},
        [("ANN LEE", []), *OF_MENTIONS],
    ),
    "ace: an annotated headline, a mark of the byte order and line ends of Windows": Quirk(
        {
            "N.sgm": "\ufeff" + ACE_SOURCE.replace("\n", "\r\n"),
            "N.apf.xml": ace_annotations([("Mayor", "PER")], ACE_SOURCE, "<timex2_mention/>", name="N"),
        },
        [("Mayor sleeps", [("Mayor", "PER")]), ("ANN LEE", []), *((words, []) for words, _ in OF_MENTIONS)],
        {"times ignored": 1},
    ),
    "ere: the text in another folder": Quirk(
        {"ere/N.1.rich_ere.xml": ere_annotations(MENTIONS, ERE_NEWS, "<filler/>"), "source/N.1.cmp.txt": ERE_NEWS},
        [("Mayor sleeps", []), *OF_MENTIONS],
        {"fillers ignored": 1},
    ),
    "ere: quotes and authors": Quirk(
        {"source/D.xml": FORUM, "ere/D.rich_ere.xml": ere_annotations([("Ann Lee", "PER"), ("Cy Dee", "PER")], FORUM)},
        [("I met Cy Dee .", [("Cy Dee", "PER")])],
        {"mentions inside tags dropped": 1},
    ),
    "ere: an annotated quote": Quirk(
        {"source/D.xml": FORUM, "ere/D.rich_ere.xml": ere_annotations([("Bo Ek", "PER")], FORUM)},
        [("I saw Bo Ek .", [("Bo Ek", "PER")]), ("I met Cy Dee .", [])],
    ),
    "bigbio: passages in any order": Quirk(
        lines(PASSAGES),
        [("It rained in Orsk", ORSK), ("He saw CD28 - positive cells", [("CD28 - positive cells", "Cell")])],
        {
            "entities with a boundary inside a word dropped": 1,
            "discontinuous entities dropped": 1,
            "entities across sentences dropped": 1,
            "entities without offsets dropped": 1,
            "relations ignored": 2,
        },
    ),
    **{
        f"bioc: {name}": Quirk({"a.dat": content}, [(SPELLED, NESTED)])
        for name, content in {
            "a list": json.dumps([BIOC_DOCUMENT]),
            "a collection": json.dumps({"source": "x", "documents": [BIOC_DOCUMENT]}, indent=1),
            "PubTator 3": json.dumps({"PubTator3": [BIOC_DOCUMENT]}, indent=1),
            "XML": BIOC_XML,
        }.items()
    },
    "bioc: sentences that have the text": Quirk(
        lines(
            {
                "id": "a",
                "passages": [
                    {
                        "offset": 0,
                        "sentences": [
                            {
                                "offset": 0,
                                "text": TEXT,
                                "annotations": labelled(("City", "Orsk", (13, 4)))["passages"][0]["annotations"],
                            },
                            {"offset": 25, "text": "He ran", "annotations": []},
                        ],
                    }
                ],
            }
        ),
        [(SPELLED, ORSK), ("He ran", [])],
    ),
    "bioc: fragments": Quirk(
        lines(
            labelled(
                ("Person", "The Orsk", (0, 3), (13, 4)),
                ("City", "Orsk", (13, 2), (15, 2)),
                ("X", ""),
                ("Y", "", (4, 0)),
            )
        ),
        [(SPELLED, ORSK)],
        {
            "discontinuous entities dropped": 1,
            "entities of white space alone dropped": 1,
            "entities without offsets dropped": 1,
            "relations ignored": 2,
        },
    ),
    "label_studio: a type each, and results of other kinds": Quirk(
        lines(
            task(region(13, 17, "City", "Goal"), region(0, 3), {"type": "choices"}, predictions=[{}]),
            task(annotations=[]),
        ),
        [(SPELLED, [*ORSK, ("Orsk", "Goal")])],
        {
            "predictions ignored": 1,
            "entities without a type dropped": 1,
            "results of type 'choices' ignored": 1,
            "tasks without an annotation ignored": 1,
        },
    ),
    "label_studio: regions of another text": Quirk(
        lines(
            task({**region(4, 9, "X"), "to_name": "title"}, region(13, 17, "City"), data={"text": TEXT, "title": TEXT})
        ),
        [(SPELLED, ORSK)],
        {"entities in the text 'title' dropped": 1},
    ),
    "label_studio: the ground truth of several annotations": Quirk(
        lines(
            task(
                annotations=[
                    {"result": [region(13, 17, "City")], "ground_truth": True, "created_at": "2024-01-01"},
                    {"result": [region(0, 3, "X")], "created_at": "2024-02-01"},
                    {"result": [], "was_cancelled": True},
                ]
            )
        ),
        [(SPELLED, ORSK)],
        {"further annotations of a task ignored": 1, "cancelled annotations ignored": 1},
    ),
    "label_studio: HyperText": Quirk(
        lines(
            task(
                {
                    "type": "hypertextlabels",
                    "value": {"globalOffsets": {"start": 13, "end": 17}, "hypertextlabels": ["City"]},
                }
            )
        ),
        [(SPELLED, ORSK)],
    ),
    "conllu: multi-word tokens and nesting": Quirk(
        {"a.conllu": GUM},
        [
            (
                "the mayor 's Orsk day",
                [("Orsk", "place"), ("the mayor 's Orsk", "person"), ("day", "event"), ("Orsk day", "event")],
            )
        ],
    ),
    "conllu: the type where the file says": Quirk(
        {"a.conllu": "# global.Entity = eid-head-etype\n" + conllu("(e1-1-place)")}, [("w", [("w", "place")])]
    ),
    "conllu: tags, as in NorNE": Quirk(
        {"a.conllu": conllu("B-A", "I-A", "O", "Anna").replace("Entity=", "name=")}, [("w w w w", [("w w", "A")])]
    ),
    "conllu: what no sentence holds": Quirk(
        {"a.conllu": conllu("(1-place(9-time)", "(2[1/2]-person)", "(3", "3)(2[2/2]-person)") + "\n" + conllu("1)")},
        [("w w w w", [("w", "time")]), ("w", [])],
        {
            "discontinuous entities dropped": 1,
            "entities across sentences dropped": 1,
            "entities without a type dropped": 1,
        },
    ),
    "json_lines: duplicates and other fields": Quirk(
        lines(
            {
                **RECORD,
                "entities": [{"start": 3, "end": 4, "type": kind} for kind in ("City", "B", "City")],
                "note": "x",
            }
        ),
        [(SPELLED, [*ORSK, ("Orsk", "B")])],
        {"duplicate entities dropped": 1, "field 'note' ignored": 1},
    ),
    "json_lines: spans in a list": Quirk(
        lines({"tokens": ["Ana", "Orsk"], "entities": [{"entity_type": "PER", "span": [0, 2]}]}),
        [("Ana Orsk", [("Ana Orsk", "PER")])],
    ),
    "mrc: the records of a sentence": Quirk(
        {
            "a.json": json.dumps(
                [
                    *QUESTIONS,
                    *({**question, "qas_id": question["qas_id"].replace("0.", "1.")} for question in QUESTIONS),
                    {"context": "It rained .", "query": "?", "entity_label": "City", "span_position": []},
                ]
            )
        },
        [(SPELLED, NESTED[::-1]), (SPELLED, NESTED[::-1]), ("It rained .", [])],
    ),
    "mrc: lists as spans, and numbers of records": Quirk(
        lines(
            *(
                {**one, "qas_id": n, "span_position": [[*map(int, span.split(";"))] for span in one["span_position"]]}
                for n, one in enumerate(QUESTIONS)
            )
        ),
        [(SPELLED, NESTED[::-1])],
    ),
    "pubtator: relations and several documents": Quirk(
        {
            "train.PubTator.txt": "1|t|Naloxone works.\n1|a|It is. Naloxone won\n1\t0\t8\tNaloxone\tChemical\tD009270\n"
            "1\t23\t31\tNaloxone\tChemical\tD003000\tpart|part\n1\tCID\tD009270\tD003000\n\n2|t|No abstract\n\n\n"
        },
        [
            ("Naloxone works .", [("Naloxone", "Chemical")]),
            ("It is .", []),
            ("Naloxone won", [("Naloxone", "Chemical")]),
            ("No abstract", []),
        ],
        {"relations ignored": 1},
    ),
    "span_lines: exclusive ends, heads, parts of speech": Quirk(
        {
            "train.data": "IL-2 gene\nNN NN\n0,1 protein|0,2,1,2 DNA\n\nIt works .\nPRP VBZ .\n\n\n"
            "He slept in Orsk\n3,4 City\n\n"
        },
        [("IL-2 gene", GENE), ("It works .", []), ("He slept in Orsk", ORSK)],
        {"heads of mentions ignored": 1},
    ),
    "span_lines: inclusive ends": Quirk(
        {"train.data": INCLUSIVE},
        [("Nobody slept", []), ("IL-2 gene", GENE), ("He slept in Orsk", ORSK)],
        {"files with spans such as 3,3, whose last word is therefore part of every span": 1},
    ),
    "span_lines: inclusive ends that are named": Quirk(
        {"a.mrg": "Pierre Vinken left\nNNP NNP VBD\n0,1 PER\n"},
        [("Pierre Vinken left", [("Pierre Vinken", "PER")])],
        {},
        {"columns": {"inclusive_end": True}},
    ),
    "inclusive_spans: GLiNER": Quirk(lines({"tokenized_text": TOKENS, "ner": DOCUMENT["ner"][0]}), [(SPELLED, NESTED)]),
    "inclusive_spans: W2NER": Quirk(
        lines(
            {"sentence": TOKENS, "ner": [{"index": [0, 3], "type": "X"}, {"index": [3], "type": "City"}], "word": [1]}
        ),
        [(SPELLED, ORSK)],
        {"discontinuous entities dropped": 1, "field 'word' ignored": 1},
    ),
    "inclusive_spans: words numbered through a document": Quirk(
        lines({"doc_key": 7, "sentences": [["He", "slept"], ["in", "Orsk"]], "ner": [[[0, 0, "X"]], [[3, 3, "City"]]]}),
        [("He slept", [("He", "X")]), ("in Orsk", ORSK)],
    ),
    "inclusive_spans: words numbered in each sentence": Quirk(
        lines({"doc_key": "a", "sentences": [["He", "slept"], ["in", "Orsk"]], "ners": [[], [[1, 1, "City"]]]}),
        [("He slept", []), ("in Orsk", ORSK)],
    ),
    "inclusive_spans: one text, as in RuNNE": Quirk(
        lines({"sentences": "Orsk slept. He ran", "ners": [[0, 3, "City"]]}),
        [("Orsk slept .", ORSK), ("He ran", [])],
    ),
    "inclusive_spans: sentences of characters": Quirk(
        lines({"sentences": [TEXT, "He ran"], "ners": [[[0, 16, "Person"], [13, 16, "City"]], []]}),
        [(SPELLED, NESTED), ("He ran", [])],
    ),
    "word_tags: tags": Quirk(lines({"words": ["In", "Orsk"], "tags": ["O", "B-City"], "id": 3}), [("In Orsk", ORSK)]),
    "word_tags: types": Quirk(
        lines({"words": ["In", "Orsk"], "ner": ["O", "City"]}),
        [("In Orsk", ORSK)],
        {"entities of tags without B and I, with adjacent words of one type read as one entity": 1},
    ),
    "word_tags: mentions": Quirk(
        lines(
            {
                "tokens": ["In", "Orsk"],
                "entity_mentions": [{"start": 1, "end": 2, "entity_type": "City", "text": "Orsk"}],
            }
        ),
        [("In Orsk", ORSK)],
    ),
    "word_tags: GermEval's inner level": Quirk(
        lines({"tokens": ["mayor", "Orsk"], "ner_tags": ["B-X", "I-X"], "nested_ner_tags": ["O", "B-City"]}),
        [("mayor Orsk", [("mayor Orsk", "X"), *ORSK])],
    ),
    "word_tags: numbers with names": Quirk(
        lines({"w": ["mayor", "Orsk"], "outer": [1, 2], "inner": [0, 3]}),
        [("mayor Orsk", [("mayor Orsk", "X"), *ORSK])],
        {},
        {
            "format": "word_tags",
            "columns": {"tokens": "w", "entities": "outer,inner", "names": ["O", "B-X", "I-X", "B-City"]},
        },
    ),
    "word_tags: lists of levels": Quirk(
        lines({"tokens": ["mayor", "of", "Orsk"], "ner_tags": [["B-X", "I-X", "I-X"], ["O", "O", "B-City"]]}),
        [("mayor of Orsk", [("mayor of Orsk", "X"), *ORSK])],
    ),
    "text_spans: Doccano": both({"labels": [[0, 17, "Person"], [13, 17, "City"]]}),
    "text_spans: offsets by other names": both(
        {"entities": objects("start_offset", "end_offset", id=1), "relations": []}
    ),
    "text_spans: Prodigy": both({"spans": objects(token_start=0), "answer": "accept", "_task_hash": 5}),
    "text_spans: predictions": both({"entities": objects(label="entity_group", score=0.9)}),
    "text_spans: PubAnnotation": both(
        {"denotations": [{"span": {"begin": one["start"], "end": 17}, "obj": one["label"]} for one in objects()]}
    ),
    "text_spans: CMeEE": both(
        {"entities": [{"start_idx": one["start"], "end_idx": 16, "type": one["label"]} for one in objects()]}
    ),
    "text_spans: a list of offsets": both(
        {"entities": [{"span": [one["start"], 17], "name": one["label"]} for one in objects()]}
    ),
    "text_spans: CLUENER": both({"label": {"Person": {"The mayor of Orsk": [[0, 16]]}, "City": {"Orsk": [[13, 16]]}}}),
    "text_spans: label and spans": both({"labels": {"Person": [[0, 17]], "City": [[13, 17]]}}),
    "text_spans: Dataturks": Quirk(
        lines(
            {
                "content": TEXT,
                "annotation": [{"label": ["City"], "points": [{"start": 13, "end": 16, "text": "Orsk"}]}],
                "extras": None,
            }
        ),
        [(SPELLED, ORSK)],
    ),
    "text_spans: spaCy 2": Quirk({"a.json": json.dumps([[TEXT, {"entities": [[13, 17, "City"]]}]])}, [(SPELLED, ORSK)]),
    "text_spans: ner-annotator": Quirk(
        lines({"classes": [], "annotations": [[TEXT, {"entities": [[13, 17, "City"]]}]]}), [(SPELLED, ORSK)]
    ),
    "text_spans: several types, and no field of spans": Quirk(
        lines({"text": "Orsk", "label": [{"start": 0, "end": 4, "labels": ["City", "B"]}]}, {"text": "b"}),
        [("Orsk", [*ORSK, ("Orsk", "B")]), ("b", [])],
        {"texts without a field of spans, read as texts without entities": 1},
    ),
    "text_spans: the latest annotation of JSON-MIN": Quirk(
        lines(
            {"text": TEXT, "id": 7, "annotation_id": 2, "created_at": "2026-11-21", "label": [[13, 17, "City"]]},
            {"text": TEXT, "id": 7, "annotation_id": 1, "created_at": "2026-11-20", "label": [[0, 3, "X"]]},
        ),
        [(SPELLED, ORSK)],
        {"further annotations of a task ignored": 1},
    ),
    "text_spans: the first response of Argilla": Quirk(
        lines(argilla(topic=[{"value": "news"}], ner=[{"value": None}, {"value": [*objects()[1:]]}, {"value": NEWS}])),
        [(SPELLED, ORSK)],
        {"further annotations of a task ignored": 1},
    ),
    "text_spans: fields by path": Quirk(
        lines({"doc": {"body": TEXT}, "marks": [{"a": 13, "z": 16, "k": "City"}]}),
        [(SPELLED, ORSK)],
        {},
        {
            "format": "text_spans",
            "columns": {
                "text": "doc.body",
                "entities": "marks",
                "start": "a",
                "end": "z",
                "type": "k",
                "inclusive_end": True,
            },
        },
    ),
    "brat: fragments, and other annotations": Quirk(
        {
            "a.txt": "the Orsk\n City slept",
            "a.ann": "T1\tX 4 8;10 14\tOrsk City\nT2\tX 4 8;10 14\tOrsk\n\n City\nT3\tCity 4 8\tOrsk\n"
            "T4\tSleep 15 20\tslept\nT5\tY 0 3;10 14\tthe [...] City\nT6\tY 4 4\nT7\tY 4 4;9 9\t\n"
            "R1\tIn Arg1:T1\nE1\tSleep:T4\nA1\tOld T1\nM1\tNot E1\n*\tAlias T1 T2\nN1\tReference T2 Wiki:Q1\n"
            "#1\tAnnotatorNotes T1\tT9\tfine\nrest of a quote\n\n",
        },
        [("the Orsk City slept", [("Orsk City", "X"), *ORSK, ("slept", "Sleep")])],
        {
            "duplicate entities dropped": 1,
            "discontinuous entities dropped": 1,
            "entities of white space alone dropped": 2,
            **{f"{what} ignored": 1 for what in ("relations", "events", "equivalences", "normalizations", "notes")},
            "attributes ignored": 2,
            "lines that are not annotations ignored": 1,
        },
    ),
    "brat: documents of folders, in the order of their names": Quirk(
        {
            **{f"{name}.txt": name[-1] for name in ("b", "a.1", "sub/c", "LICENSE")},
            **{f"{name}.ann": "" for name in ("b", "a.1", "sub/c", "none", "._a", ".git/b")},
            "none.txt": "",
        },
        [("1", []), ("b", []), ("c", [])],
        {"texts without .ann ignored": 1, "texts without words ignored": 1},
    ),
    "brat: shared tasks of BioNLP": Quirk(
        {"a.txt": TEXT, "a.a1": "T1\tCity 13 17\tOrsk\n", "a.a2": "T3\tSleep 18 23\tslept\nE1\tSleep:T3\n"},
        [(SPELLED, ORSK)],
        {"text-bound annotations of .a2 ignored": 1},
    ),
}


@pytest.mark.parametrize("name", QUIRKS)
def test_a_quirk_is_read(tmp_path, name):
    quirk = QUIRKS[name]
    path = write_files(tmp_path, quirk.given)
    records, check = read(tmp_path if len(quirk.given) > 1 else path, **quirk.options)
    assert [(" ".join(record["tokens"]), spelled(record)) for record in records] == quirk.found
    ignored = {"field 'annotation_id' ignored", "field 'created_at' ignored"}
    assert {what: number for what, number in check.counts.items() if what not in ignored} == quirk.counts


def test_ids_are_those_of_the_corpus_or_numbers(tmp_path):
    def ids(files):
        return [(one["id"], one["doc_id"], one["sent_id"]) for one in read(write_files(tmp_path, files))[0]]

    bare = {"tokens": ["a"], "entities": []}
    assert ids(lines(bare, bare)) == [("a.jsonl:line 1", "a.jsonl", 0), ("a.jsonl:line 2", "a.jsonl", 1)]
    assert ids({"dev.json": json.dumps([PUBLISHED])}) == [("dev:0", "dev:0", 0)]
    assert ids({"t.conllu": "# newdoc id = d\n# sent_id = d-1\n" + conllu("")})[0] == ("d-1", "d", 0)
    again = "# newdoc id = {}\n# sent_id = 0\n" + conllu("")  # numbers may begin anew
    assert [one[0] for one in ids({"u.conllu": again.format("a") + "\n" + again.format("b")})] == ["a:0", "b:0"]
    assert ids({"my.data.jsonl": json.dumps({"text": "a", "entities": []})}) == [("my.data:0:0", "my.data:0", 0)]
    assert ids(lines({"text": "He ran. See", "entities": [], "id": 7})) == [("7:0", "7", 0), ("7:1", "7", 1)]


def test_context_of_published_records(tmp_path):
    (record,), _ = read(write_files(tmp_path, {"dev.json": json.dumps([PUBLISHED])}))
    assert (record["left_tokens"], record["right_tokens"]) == (["It", "rained", "."], [])


def test_texts_of_conllu_are_those_of_the_comment_or_of_the_spaces(tmp_path):
    first = conllu("(1-X", "1)", words=["The", "CD28"]).replace("\t_\n", "\tSpaceAfter=No\n")
    content = f"# newdoc id = a\n# text = The CD28\n{first}\n# newpar\n" + conllu("(2-X)", words=["It"])
    (text,) = load_texts(write_files(tmp_path, {"a.conllu": content}))["train"]
    assert text["text"] == "The CD28\n\nIt"
    assert [text["text"][one["start"] : one["end"]] for one in text["entities"]] == ["The CD28", "It"]


class TestListsOfLdc:
    @pytest.fixture
    def corpus(self, tmp_path):
        """Two documents in two stages, a third in one."""
        for place in ("nw/adj/N_1", "nw/adj/N_2", "nw/timex2norm/N_1", "nw/timex2norm/N_2", "bn/adj/C_3.4"):
            annotations = ace_annotations([] if place == "nw/adj/N_2" else MENTIONS, ACE_SOURCE, name=place[-3:])
            write_files(tmp_path, {f"{place}.sgm": ACE_SOURCE, f"{place}.apf.xml": annotations})
        return tmp_path

    def test_the_last_stage_is_taken(self, corpus):
        records, check = read(corpus)
        assert [*dict.fromkeys(record["doc_id"] for record in records)] == ["C_3.4", "N_1", "N_2"]
        assert any(record["entities"] for record in records if record["doc_id"] == "N_2")
        assert check.counts == {"earlier stages of annotation ignored": 2}

    def test_lists_name_documents_with_or_without_folder_and_suffix(self, corpus):
        (corpus / "train.txt").write_text("nw\\adj\\N_2\r\n\nC_3.4.sgm\n")
        (corpus / "dev.txt").write_text("N_1.apf.xml\n")
        loaded = load_nested_ner(corpus)
        names = {split: list(dict.fromkeys(rows["doc_id"])) for split, rows in loaded.items()}
        assert names == {"train": ["N_2", "C_3.4"], "validation": ["N_1"]}
        assert not any(row["entities"] for row in loaded["train"] if row["doc_id"] == "N_2")

    def test_errors(self, corpus):
        (corpus / "train.txt").write_text("N_1\nnw/fp1/N_1\n")
        with pytest.raises(CorpusError, match=r"train\.txt, line 2: .*'nw/fp1/N_1'"):
            read(corpus / "train.txt", "ace")
        (corpus / "bn/adj/C_3.4.sgm").unlink()
        with pytest.raises(CorpusError, match=r"C_3\.4\.apf\.xml: its text, C_3\.4\.sgm, is not there"):
            read(corpus, "ace")
        write_files(corpus, {"more/N_1.apf.xml": ace_annotations([], ACE_SOURCE)})
        with pytest.raises(CorpusError, match="several documents 'N_1'"):
            read(corpus, "ace")


def test_line_ends_of_windows_in_brat(tmp_path):
    files = {"a.txt": "He slept.\r\nShe likes Orsk.", "a.ann": "T1\tCity 20 24\tOrsk\r\n"}
    write_files(tmp_path, files)
    with pytest.raises(CorpusError, match=r"a\.ann, line 1: field 'T1' quotes 'Orsk'.*--offsets"):
        load_nested_ner(tmp_path)
    assert spelled(load_nested_ner(tmp_path, offsets="characters_lf")["train"][1]) == ORSK


WRONG = {
    "no texts": ({"a.txt": "", "a.ann": ""}, "no sentences.*texts without words.*Read as 'brat'"),
    "two texts of one document": (
        {"a.txt": ERE_NEWS, "a.xml": ERE_NEWS, "a.rich_ere.xml": ere_annotations()},
        "not there once",
    ),
    "regions of two texts": (
        lines(task(*({**region(4, 9, "X"), "to_name": name} for name in "ab"))),
        "'b', but .* 'a'",
    ),
    "a passage before its place": (lines({**BIGBIO_RECORD, "passages": 2 * BIGBIO_RECORD["passages"]}), "begins at 0"),
    "an entity that is not open": ({"a.conllu": conllu("1)(2-x)")}, "closes '1'"),
    "two questions of Argilla": (lines(argilla(a=[{"value": NEWS}], b=[{"value": NEWS}])), "'a' and 'b'"),
    "no field of spans": (lines({"text": "a", "spans": None, "tracks": []}), "no text has a field of spans"),
    "a quote": (
        lines({"text": "我在北京", "entities": [{"start": 1, "end": 3, "label": "L", "word": "北京"}]}),
        "quotes '北京'",
    ),
    "an end that fits neither way": ({"a.txt": "He slept\n0,0 PER\n\nHe slept\n0,2 PER\n"}, "line 5: the span 0,2 PER"),
    "numbers without names": (lines({"tokens": ["a"], "ner_tags": [3]}), "numbers, up to 3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_what_is_wrong(tmp_path, name):
    files, problem = WRONG[name]
    path = write_files(tmp_path, files)
    with pytest.raises(CorpusError, match=problem):
        load_nested_ner(tmp_path if len(files) > 1 else path)


@pytest.mark.parametrize("name", [name for name in QUOTES if "." not in name])
def test_every_field_with_the_covered_text_is_compared(tmp_path, name):
    path = write_files(tmp_path, lines({"text": TEXT, "spans": [{"start": 13, "end": 17, "label": "X", name: "Omsk"}]}))
    with pytest.raises(CorpusError, match=r"'spans\[0\]' quotes 'Omsk', but from 13 to 17 the text is '.*\[Orsk\]"):
        load_texts(path)


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("Nobody slept\n\n\nOrsk slept\n0,1 LOC", "span_lines"),
        ("IL-2 and NF-kappa B activation .\n0,0 G#protein|2,3 G#protein\n\nIt works .\n", "span_lines"),
        ("Orsk B-LOC\n0,1 O\n\n", "iob2"),
    ],
)
def test_lines_of_spans_are_no_columns_of_tags(tmp_path, content, format):
    rows = load_nested_ner(write_files(tmp_path, {"a.dat": content}), format)
    assert any(map(triples, rows["train"]))
    with pytest.raises(CorpusError, match="cannot be detected"):
        load_nested_ner(write_files(tmp_path, {"b.dat": "0,1 ORG|3,7 PER\n"}))
