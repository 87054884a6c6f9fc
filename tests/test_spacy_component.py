"""The spaCy component: the pipeline's entities as spans, doc.ents, streams, saving, tokens that do not align."""

import shutil

import pytest

from modeling_triaffine import NestedNERPipeline

spacy = pytest.importorskip("spacy", reason="needs spaCy, the extra `spacy`")
from spacy.tokenizer import Tokenizer  # noqa: E402
from spacy.training import Example  # noqa: E402

NAME = "triaffine_ner"
TEXTS = [
    "The IL-2 gene binds protein. It is DNA! No gene here.",
    "",
    " \n ",
    "gene",
    "  naïve cafe\u0301 — 中文 gene,\u00a0emoji 👩‍🔬 and שלום gene.\t",
]

pytestmark = pytest.mark.filterwarnings("ignore:.*do not begin and end at token boundaries:UserWarning")


@pytest.fixture(scope="module")
def folder(saved_model):
    return str(saved_model)


@pytest.fixture(scope="module")
def finder(folder):
    return NestedNERPipeline(model=folder, threshold=0.2)


def spacy_pipeline(folder, **config):
    nlp = spacy.blank("en")  # finds the component by its entry point: the package's module is not imported here
    nlp.add_pipe(NAME, config={"model": folder, "device": "cpu", "threshold": 0.2, **config})
    return nlp


def entities_of(doc, key="sc"):
    """The entities as the pipeline gives them, read from the span group, scores to four places."""
    group = doc.spans[key]
    offsets, scores = group.attrs["char_offsets"].tolist(), group.attrs["scores"].tolist()
    return [(*pair, span.label_, round(score, 4)) for pair, span, score in zip(offsets, group, scores, strict=True)]


def expected(entities):
    return [(e["start"], e["end"], e["entity_group"], round(e["score"], 4)) for e in entities]


def test_spans_are_the_pipelines_entities_nested_ones_included(folder, finder):
    nlp = spacy_pipeline(folder)
    found = [nlp(text) for text in TEXTS]
    assert [entities_of(doc) for doc in found] == [expected(finder(text)) for text in TEXTS]
    assert found[0].spans["sc"].has_overlap
    assert [len(doc.spans["sc"]) == 0 for doc in found] == [False, True, True, False, False]
    assert all(doc.ents == () for doc in found)
    assert nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in found])["spans_sc_f"] == 1


def test_settings_are_the_pipelines(folder, finder):
    doc = spacy_pipeline(folder, threshold=0.0, overlap="flat", spans_key="names")(TEXTS[0])
    assert [*doc.spans] == ["names"]
    assert entities_of(doc, "names") == expected(finder(TEXTS[0], threshold=0.0, overlap="flat"))


def test_ents_are_the_longest_spans(folder):
    doc = spacy_pipeline(folder, set_ents=True)(TEXTS[0])
    covering = {token.i: ent for ent in doc.ents for token in ent}
    for span in doc.spans["sc"]:
        assert max(len(covering[token.i]) for token in span if token.i in covering) >= len(span)
    spans = {(span.start, span.end, span.label_) for span in doc.spans["sc"]}
    assert {(ent.start, ent.end, ent.label_) for ent in doc.ents} < spans


def test_streams_equal_single_calls_and_failing_batches_go_to_spacys_error_handler(folder, monkeypatch):
    nlp = spacy_pipeline(folder)
    single = [entities_of(nlp(text)) for text in TEXTS]
    batches, read, failing = [], [], ()
    call = NestedNERPipeline.__call__

    def counted(self, inputs, **options):
        batches.append(len(inputs))
        if failing in inputs:
            raise RuntimeError("out of memory")
        return call(self, inputs, **options)

    monkeypatch.setattr(NestedNERPipeline, "__call__", counted)
    stream = nlp.pipe((read.append(text) or text for text in TEXTS), batch_size=2)
    first = next(stream)
    assert len(read) == 2
    assert [entities_of(doc) for doc in (first, *stream)] == single
    assert batches == [2, 2, 1]
    failing = ""
    with pytest.raises(RuntimeError, match="out of memory"):
        list(nlp.pipe(TEXTS, batch_size=1))
    nlp.set_error_handler(lambda *_: None)
    assert [doc.text for doc in nlp.pipe(TEXTS, batch_size=1)] == [text for text in TEXTS if text]


def test_a_saved_pipeline_brings_its_model(folder, tmp_path):
    original = tmp_path / "original"
    shutil.copytree(folder, original)
    nlp = spacy_pipeline(str(original), set_ents=True)
    nlp.to_disk(tmp_path / "saved")
    expected_of = nlp(TEXTS[0])
    shutil.rmtree(original)
    loaded = spacy.load(tmp_path / "saved")
    assert loaded.get_pipe(NAME).labels == ("DNA", "protein")
    assert entities_of(loaded(TEXTS[0])) == entities_of(expected_of)
    assert loaded(TEXTS[0]).to_json()["ents"] == expected_of.to_json()["ents"]
    strict = spacy.load(tmp_path / "saved", config={f"components.{NAME}.threshold": 0.9})
    assert len(strict(TEXTS[0]).spans["sc"]) == 0


def test_entities_inside_tokens_stand_as_the_tokens(folder, finder):
    nlp = spacy_pipeline(folder, threshold=0.0, set_ents=True)
    nlp.tokenizer = Tokenizer(nlp.vocab)  # words hold their punctuation
    text = "IL-2-mediated gene, binds!"
    entities = finder(text, threshold=0.0)
    starts, ends = {0, 14, 20}, {13, 19, 26}
    misaligned = [e for e in entities if e["start"] not in starts or e["end"] not in ends]
    assert 0 < len(misaligned) < len(entities)
    with pytest.warns(UserWarning, match="char_offsets"):
        doc = nlp(text)
    assert entities_of(doc) == expected(entities)
    for span, entity in zip(doc.spans["sc"], entities, strict=True):
        assert span.start_char == max(start for start in starts if start <= entity["start"])
        assert span.end_char == min(end for end in ends if end >= entity["end"])


def test_a_wrong_model_is_an_error_when_the_pipe_is_made(folder, tmp_path):
    for model, message in ((str(tmp_path / "missing"), "missing"), (str(tmp_path), "config.json")):
        with pytest.raises(OSError, match=message):
            spacy_pipeline(model)
    with pytest.raises(ValueError, match="no device 'nowhere'"):
        spacy_pipeline(folder, device="nowhere")("gene")
