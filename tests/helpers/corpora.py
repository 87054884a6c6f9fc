"""Small corpora in tests: the same sentence in every format, and reading without the cache of `load_nested_ner`."""

import json
from pathlib import Path
from xml.sax.saxutils import escape

from modeling_triaffine.data import RecordChecker
from modeling_triaffine.data.loading import read_parts
from modeling_triaffine.data.schema import Text
from modeling_triaffine.data.texts import DEFAULT_SENTENCE_SPLITTER, sentences_of
from modeling_triaffine.model.text_triaffine import INVISIBLE_SPACES

TEXT = "The mayor of Orsk slept."
NESTED = [("The mayor of Orsk", "Person"), ("Orsk", "City")]

TOKENS = ["The", "mayor", "of", "Orsk", "slept", "."]
RECORD = {
    "id": "a:0",
    "doc_id": "a",
    "sent_id": 0,
    "tokens": TOKENS,
    "pos": ["DET", "NOUN", "ADP", "PROPN", "VERB", "PUNCT"],
    "entities": [{"start": 0, "end": 4, "type": "Person"}, {"start": 3, "end": 4, "type": "City"}],
}
PUBLISHED = {
    "tokens": TOKENS,
    "pos": RECORD["pos"],
    "entities": RECORD["entities"],
    "ltokens": ["It", "rained", "."],
    "rtokens": [],
    "relations": {},
    "orig_id": "7",
}
BIGBIO_RECORD = {
    "id": "1",
    "document_id": "a",
    "passages": [{"id": "2", "type": "abstract", "text": [TEXT], "offsets": [[0, 24]]}],
    "entities": [
        {"id": "3", "type": "Person", "text": ["The mayor of Orsk"], "offsets": [[0, 17]], "normalized": []},
        {"id": "4", "type": "City", "text": ["Orsk"], "offsets": [[13, 17]], "normalized": []},
    ],
    "events": [],
    "coreferences": [],
    "relations": [],
}
CAS_LAYER = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"


def cas_json(*entities, layer=CAS_LAYER, text=TEXT):
    """INCEpTION's JSON of a text; entities are (start, end, value)."""
    features = {name: {"%NAME": name, "%RANGE": "uima.cas.String"} for name in ("value", "identifier")}
    types = {layer: {"%NAME": layer, "%SUPER_TYPE": "uima.tcas.Annotation", **features}}
    structures = [{"%ID": 1, "%TYPE": "uima.cas.Sofa", "sofaNum": 1, "sofaID": "_InitialView", "sofaString": text}]
    for number, (start, end, value) in enumerate(entities, start=2):
        structures.append({"%ID": number, "%TYPE": layer, "@sofa": 1, "begin": start, "end": end, "value": value})
    views = {"_InitialView": {"%SOFA": 1, "%MEMBERS": [one["%ID"] for one in structures[1:]]}}
    return json.dumps({"%TYPES": types, "%FEATURE_STRUCTURES": structures, "%VIEWS": views})


def entity(start, end, kind="X"):
    """An entity of words or characters."""
    return {"start": start, "end": end, "type": kind}


def region(start, end, *labels):
    """A labelled region of Label Studio."""
    return {"type": "labels", "value": {"start": start, "end": end, "labels": list(labels)}}


def task(*regions, **fields):
    """A task of Label Studio."""
    return {"id": 5, "annotations": [{"result": list(regions)}], "data": {"text": TEXT}, **fields}


def conllu(*entities, words=None):
    """A sentence of CoNLL-U with these Entity values, one a word."""
    cells = enumerate(zip(words or ["w"] * len(entities), entities, strict=True), 1)
    return "".join(f"{n}\t{word}\t" + "_\t" * 7 + (f"Entity={cell}\n" if cell else "_\n") for n, (word, cell) in cells)


def cons(sem, text):
    """An entity of GENIA."""
    return f'<cons lex="x" sem="{sem}">{text}</cons>'


def article(title, *sentences, name="MEDLINE:1"):
    """An article of GENIA."""
    body = "\n".join(f"<sentence>{sentence}</sentence>" for sentence in sentences)
    return (
        f"<article>\n<articleinfo>\n<bibliomisc>{name}</bibliomisc>\n</articleinfo>\n<title>\n<sentence>{title}"
        f"</sentence>\n</title>\n<abstract>\n{body}\n</abstract>\n</article>\n"
    )


def genia(*articles):
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE set SYSTEM "gpml.dtd">\n<set>\n'
    return f"{head}{''.join(articles)}</set>\n"


ACE_SOURCE = f"<DOC>\n<DOCID> a </DOCID>\n<BODY>\n<TEXT>\n{TEXT}\n</TEXT>\n</BODY>\n</DOC>\n"


def ace_annotations(mentions=NESTED, name="a"):
    """ACE's annotations of these (text, type), each where it first occurs in the source without its tags."""
    untagged = "".join(part.partition(">")[2] for part in ACE_SOURCE.split("<")[1:])
    entities = ""
    for number, (quote, kind) in enumerate(mentions):
        start = untagged.index(quote)
        entities += (
            f'<entity ID="{name}-E{number}" TYPE="{kind}" SUBTYPE="x">\n'
            f'<entity_mention ID="{name}-{kind}-{number}" TYPE="NAM"><extent>\n'
            f'<charseq START="{start}" END="{start + len(quote) - 1}">{quote}</charseq>\n</extent>'
            f'<head><charseq START="{start}" END="{start}">x</charseq></head></entity_mention></entity>\n'
        )
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE source_file SYSTEM "apf.v5.1.1.dtd">\n'
        f'<source_file URI="{name}.sgm"><document DOCID="{name}">\n{entities}</document></source_file>\n'
    )


def ere_annotations():
    """ERE's annotations of the sentence `TEXT`, each where it first occurs in it."""
    entities = "".join(
        f'<entity id="ent-{number}" type="{kind}" specificity="specific">\n<entity_mention id="m-{number}" '
        f'source="a" noun_type="NAM" offset="{TEXT.index(quote)}" length="{len(quote)}">'
        f"<mention_text>{escape(quote)}</mention_text></entity_mention></entity>\n"
        for number, (quote, kind) in enumerate(NESTED)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<deft_ere kit_id="1" doc_id="a" source_type="newswire">\n'
        f"<entities>\n{entities}</entities>\n</deft_ere>\n"
    )


def changed(**fields):
    """The record with other fields."""
    return {**RECORD, **fields}


def bare(text):
    """A text without its spaces, visible or not."""
    return "".join(text.translate(INVISIBLE_SPACES).split())


def write_files(folder, files):
    """Writes files, name → content, and returns the one that a reader opens."""
    for name, content in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def json_lines(*values):
    """Values, or lines as they are, one a line."""
    return "".join(f"{value if isinstance(value, str) else json.dumps(value)}\n" for value in values)


def write_json(path, *values, as_list=False):
    """Writes values as JSON lines or as one list."""
    content = json.dumps(values, indent=1) if as_list else json_lines(*values)
    path.write_text(content, encoding="utf-8")
    return path


def read(path, format=None, columns=None, word_splitter=None, sentence_splitter=DEFAULT_SENTENCE_SPLITTER):
    """The records of a file or folder, and the checker with its counts."""
    (part,) = read_parts(path, format, columns=columns)
    texts = [text for of_split in part.texts.values() for text in of_split]
    records = (record for one in texts for record in sentences_of(one, part.check, word_splitter, sentence_splitter))
    return list(records), part.check


def triples(record):
    return [(entity["start"], entity["end"], entity["type"]) for entity in record["entities"]]


def spelled(record):
    """The record's entities as (words, type)."""
    return [(" ".join(record["tokens"][start:end]), kind) for start, end, kind in triples(record)]


def cut(text, *spans, offsets=None, max_bad_records=0, **options):
    """The records of a text with entities at these spans, (start, end) or (start, end, quote), and what was counted."""
    check = RecordChecker("a.txt", offsets=offsets, max_bad_records=max_bad_records)
    found = [check.entity(text, [span[:2]], "X", *span[2:], where="line 1", name="T1") for span in spans]
    made = Text(doc_id="a", text=text, entities=[entity for entity in found if entity], where="a")
    return list(sentences_of(made, check, **options)), check
