"""UIMA CAS as INCEpTION exports it: XMI and JSON, layers, sentences, and files of another form."""

import pytest

from modeling_triaffine.data import CorpusError
from modeling_triaffine.data.loading import find_splits
from tests.helpers.corpora import CAS_LAYER, NESTED, TEXT, TOKENS, cas_json, read, spelled, write_files
from tests.helpers.format_cases import SAMPLES

cassis = pytest.importorskip("cassis")

BOTH = [(0, 17, "Person"), (13, 17, "City")]
SENTENCE = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence"


def xmi_files(text=TEXT, entities=BOTH, sentences=(), others=()):
    """A document and its type system; offsets count characters, as in Python."""
    types = cassis.load_typesystem(cassis.load_cas_from_json(cas_json(*BOTH)).typesystem.to_xml())
    types.create_type(SENTENCE, "uima.tcas.Annotation")
    term = types.create_type("webanno.custom.Term", "uima.tcas.Annotation")
    cas = cassis.Cas(typesystem=types)
    cas.sofa_string = text
    for start, end, value in entities:
        cas.add(types.get_type(CAS_LAYER)(begin=start, end=end, value=value))
    for start, end in sentences:
        cas.add(types.get_type(SENTENCE)(begin=start, end=end))
    cas.add_all([term(begin=start, end=end) for start, end in others])
    return {"a.xmi": cas.to_xmi(), "TypeSystem.xml": types.to_xml()}


@pytest.mark.parametrize("files", [{"a.json": cas_json(*BOTH)}, {"a.json": f"\ufeff{cas_json(*BOTH)}"}, xmi_files()])
def test_the_sample_is_read_from_a_folder_and_a_file(tmp_path, files):
    write_files(tmp_path / "in", files)
    for path in (tmp_path / "in", tmp_path / "in" / next(iter(files))):
        assert find_splits(path, None)[None].format.name == "cas"
        (record,), check = read(path)
        assert (record["id"], record["tokens"], sorted(spelled(record), reverse=True)) == ("a:0", TOKENS, NESTED)
        assert not check.report()


def test_sentences_other_layers_and_characters_beyond_the_first_plane(tmp_path):
    text = "😀 he. Saw Orsk he ran"
    entities = [(2, 9, "Act"), (10, 14, "City"), (15, 17, None), (10, 17, "Both"), (4, 4, "X")]
    write_files(tmp_path, xmi_files(text, entities, [(0, 14), (15, 21)], [(10, 14), (4, 9)]))
    records, check = read(tmp_path)
    assert [record["tokens"] for record in records] == [["😀", "he", ".", "Saw", "Orsk"], ["he", "ran"]]
    assert spelled(records[0]) == [("he . Saw", "Act"), ("Orsk", "City")]
    assert check.counts == {
        "entities without a type dropped": 1,
        "entities of white space alone dropped": 1,
        "entities across sentences dropped": 1,
        "annotations of the layer 'webanno.custom.Term' ignored": 2,
    }


def test_another_layer_and_feature(tmp_path):
    path = write_files(tmp_path, {"a.json": cas_json(*BOTH, layer="webanno.custom.Term")})
    assert len(read(path, columns={"entities": "webanno.custom.Term:value"})[0][0]["entities"]) == 2
    for wrong, facts in (
        (None, [CAS_LAYER, "'webanno.custom.Term'"]),
        ({"entities": "webanno.custom.Term:kind"}, ["'kind'", "'value'", "'identifier'"]),
        ({"entities": [1, 2]}, ["layer:feature"]),
    ):
        with pytest.raises(ValueError, match="layer") as caught:
            read(path, columns=wrong)
        assert [fact for fact in facts if fact not in str(caught.value)] == []


def test_of_the_export_of_a_project_what_annotators_made_is_read(tmp_path):
    files = {"INITIAL_CAS": cas_json(), "alice": cas_json(*BOTH), "eve": cas_json(text="")}
    write_files(tmp_path, {f"a.txt/{name}.json": content for name, content in files.items()})
    records, check = read(tmp_path)
    assert [(record["doc_id"], len(record["entities"])) for record in records] == [("a.txt/alice", 2)]
    assert check.counts == {"documents before annotation left out": 1, "texts without words ignored": 1}


XMI = xmi_files()
WITH_DOCTYPE = XMI["a.xmi"].replace("?>", '?><!DOCTYPE a SYSTEM "a.dtd">', 1).replace("mayor", "&e;")
BAD = {
    "no type system": ({"a.xml": XMI["a.xmi"]}, "a.xml", ["TypeSystem.xml"]),
    "truncated": ({**XMI, "a.xmi": XMI["a.xmi"][:-30]}, "a.xmi", ["invalid XML"]),
    "an entity that no one declares": ({**XMI, "a.xmi": WITH_DOCTYPE}, "a.xmi", ["DOCTYPE"]),
    "the same in UTF-16": ({**XMI, "a.xmi": WITH_DOCTYPE.encode("utf-16")}, "a.xmi", ["DOCTYPE"]),
    "json of another version": ({"a.json": '{"_types": {}, "%TYPES": {}}'}, "a.json", ["cassis", "0.4"]),
    "outside": ({"a.json": cas_json((13, 99, "City"))}, "a.json", ["from 13 to"]),
    "no end": ({"a.json": cas_json((13, None, "City"))}, "a.json", ["[0][1]' is null"]),
    "structures": ({"a.json": '{"%TYPES": {}, "%FEATURE_STRUCTURES": 3}'}, "a.json", ["cassis"]),
}


@pytest.mark.parametrize(("files", "place", "facts"), BAD.values(), ids=BAD)
def test_errors_name_the_document(tmp_path, files, place, facts):
    write_files(tmp_path, files)
    with pytest.raises(CorpusError) as caught:
        read(tmp_path, "cas")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}, {place}")
    assert [fact for fact in facts if fact not in message] == []


@pytest.mark.parametrize("content", ["", " \n", "{}"])
def test_json_beside_another_corpus_is_not_taken_for_a_cas(tmp_path, content):
    write_files(tmp_path, {**SAMPLES["brat"], "x.json": content})
    assert find_splits(tmp_path, None)[None].format.name == "brat"
