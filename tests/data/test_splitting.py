"""Sentences and words by a function given to the processor, such as spaCy's pipelines."""

import pytest

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.data.splitting import spacy_splitter
from modeling_triaffine.model.text_triaffine import sentences_by
from tests.helpers.tiny import tiny_model, tiny_processor

spacy = pytest.importorskip("spacy")

TEXT = " The IL-2 gene. binds \ud800 DNA; gene\n protein"


def sentencizer(language="xx", **config):
    pipeline = spacy.blank(language)
    pipeline.add_pipe("sentencizer", config=config)
    return pipeline


def words_of(processor, text):
    return [[text[start:end] for start, end in piece.offsets] for piece in processor.split_text(text)]


def test_spacys_sentences_have_the_models_words_or_its_own(encoder):
    processor = tiny_processor(encoder)
    processor.text_splitter = spacy_splitter(sentencizer(punct_chars=[";", "."]))
    model_words = ["The", "IL", "-", "2", "gene", "."], ["binds", "\ud800", "DNA", ";"], ["gene", "protein"]
    assert words_of(processor, TEXT) == list(model_words)
    processor.text_splitter = spacy_splitter(sentencizer(punct_chars=[";", "."]), words="spacy")
    assert words_of(processor, TEXT)[0] == ["The", "IL-2", "gene", "."]
    assert words_of(processor, " \n") == [[]]


def test_long_sentences_are_windowed_whatever_marks_them(encoder):
    processor = tiny_processor(encoder, max_sentence_words=16)
    pipeline = spacy.blank("xx")
    pipeline.add_pipe("sentencizer", name="sentences")
    processor.text_splitter = spacy_splitter(pipeline)
    pieces = list(processor.split_text("Yes. " + "gene " * 17))
    assert [len(piece.offsets) for piece in pieces] == [2, 4, 4, 4, 4, 4, 2]


def test_the_pipeline_takes_a_splitter(encoder):
    model = tiny_model(encoder, seed=1)
    text = "The gene binds DNA. It works"

    def found(splitter):
        pipeline = NestedNERPipeline(model=model, processor=tiny_processor(encoder), text_splitter=splitter)
        return [(entity["start"], entity["end"]) for entity in pipeline(text, threshold=0)]

    halves = found(lambda text: [[(0, 3), (4, 8)], [(9, 14), (15, 18)]])
    assert halves
    assert all(end <= 8 or 9 <= start <= end <= 18 for start, end in halves)
    assert found(None) == found(spacy_splitter(sentencizer())) != halves


@pytest.mark.parametrize(
    "words", [[(0, 2)], [(1, 2), (1, 3)], [(2, 3), (0, 1)], [(1, 1)], [(0, 9)], [(-1, 2)], "b c", [(None, 2)]]
)
def test_words_of_a_splitter_are_checked(words):
    with pytest.raises(ValueError, match="sentence 1"):
        list(sentences_by(lambda text: [[(0, 1)], words], "a b c"))


def test_what_splits_no_sentences_is_named():
    with pytest.raises(OSError, match=r"xx_sent_of_no_one.*not installed"):
        spacy_splitter("xx_sent_of_no_one")
    with pytest.raises(ValueError, match="sentencizer"):
        spacy_splitter(spacy.blank("xx"))
    with pytest.raises(ValueError, match="'letters'"):
        spacy_splitter(sentencizer(), words="letters")
