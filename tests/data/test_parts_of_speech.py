"""Parts of speech by spaCy's pipelines, also in training; and splitters of raw text that a user gives."""

import sys
from pathlib import Path

import pytest
from datasets import Dataset

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.data import FEATURES
from modeling_triaffine.data.parts_of_speech import add_parts_of_speech, spacy_tagger
from modeling_triaffine.model.text_triaffine import sentences_by
from modeling_triaffine.training.run import prepare_run
from tests.helpers.micro_training import micro_dataset, micro_records, write_lines, write_recipe
from tests.helpers.tiny import tiny_model, tiny_processor

spacy = pytest.importorskip("spacy")


def test_a_splitter_of_the_user_cuts_texts(encoder):
    processor = tiny_processor(encoder, max_sentence_words=16)
    model = tiny_model(encoder, seed=1)
    text = "The gene binds DNA. It works"

    def found(splitter):
        pipeline = NestedNERPipeline(model=model, processor=tiny_processor(encoder), text_splitter=splitter)
        return [(entity["start"], entity["end"]) for entity in pipeline(text, threshold=0)]

    halves = found(lambda text: [[(0, 3), (4, 8)], [(9, 14), (15, 18)]])
    assert halves
    assert all(end <= 8 or 9 <= start <= end <= 18 for start, end in halves)
    assert found(None) != halves
    processor.text_splitter = lambda text: [[(0, 4)], [(n, n + 1) for n in range(5, 22)]]
    assert [len(part.words) for part in processor.read_text("x" * 22)] == [1, 4, 4, 4, 4, 4, 2]  # windowed


@pytest.mark.parametrize(
    "words", [[(0, 2)], [(1, 2), (1, 3)], [(2, 3), (0, 1)], [(1, 1)], [(0, 9)], [(-1, 2)], "b c", [(None, 2)]]
)
def test_words_of_a_splitter_are_checked(words):
    with pytest.raises(ValueError, match="sentence 1"):
        list(sentences_by(lambda text: [[(0, 1)], words], "a b c"))


class TestTagger:
    @pytest.fixture(scope="class")
    def pipeline(self, tmp_path_factory) -> str:
        """Folder of a spaCy pipeline that knows three words."""
        nlp = spacy.blank("en")
        ruler = nlp.add_pipe("attribute_ruler")
        for word, tag, pos in (("gene", "NN", "NOUN"), ("binds", "VBZ", "VERB"), ("the", "DT", "DET")):
            ruler.add(patterns=[[{"LOWER": word}]], attrs={"TAG": tag, "POS": pos})
        nlp.add_pipe("sentencizer", name="parser")  # what is not needed is not read
        folder = tmp_path_factory.mktemp("spacy") / "pipeline"
        nlp.to_disk(folder)
        return str(folder)

    def test_given_words_are_tagged(self, pipeline):
        sentences = [["The", "gene", "IL-2"], ["gene", "", "binds"]]
        assert spacy_tagger(pipeline)(sentences) == [["DET", "NOUN", ""], ["NOUN", "", "VERB"]]
        assert spacy_tagger(spacy.load(pipeline), tags="fine")(sentences) == [["DT", "NN", ""], ["NN", "", "VBZ"]]
        assert spacy_tagger(pipeline)([]) == []

    def test_records_keep_their_own_tags_and_the_others_get_the_taggers(self):
        records = micro_records(3)
        records[1]["pos"] = ["OWN"] * len(records[1]["tokens"])
        data = Dataset.from_list(micro_dataset(records).to_list(), features=FEATURES, split="train")
        tagged = add_parts_of_speech(data, lambda sentences: [[word.upper() for word in words] for words in sentences])
        expected = [[word.upper() for word in record["tokens"]] for record in records]
        expected[1] = records[1]["pos"]
        assert list(tagged["pos"]) == expected
        assert (tagged.features, tagged.split) == (data.features, data.split)
        assert tagged.remove_columns("pos").to_list() == data.remove_columns("pos").to_list()

    def test_a_training_has_its_data_tagged(self, tmp_path: Path, pipeline):
        train = write_lines(tmp_path / "train.jsonl", micro_records(5))
        options = ["--recipe", write_recipe(tmp_path / "recipe"), "--train_file", train, "--validation_file", train]
        options += ["--output_dir", tmp_path / "out", "--use_cpu", "--pos_tagger", pipeline, "--pos_embedding_size", 3]
        run = prepare_run([*map(str, options)])
        processor = run.trainer.processing_class
        assert {"NOUN", "VERB", "DET"} < set(processor.vocabularies["pos"])
        record = run.trainer.train_dataset[0]
        assert [tag == "NOUN" for tag in record["pos"]] == [word == "gene" for word in record["tokens"]]
        [(feature, _)] = processor.encode_text("gene binds")  # as for the examples of the model card
        assert feature["pos_ids"].tolist() == [processor.vocabularies["pos"][tag] for tag in ("NOUN", "VERB")]


def test_mistakes_are_named(monkeypatch):
    with pytest.raises(OSError, match="'nowhere'"):
        spacy_tagger("nowhere")
    with pytest.raises(ValueError, match="no universal tags"):
        spacy_tagger(spacy.blank("en"))([["gene"]])
    with pytest.raises(ValueError, match=r"`tags` is 'upos'; choose one of 'universal', 'fine'"):
        spacy_tagger(spacy.blank("en"), tags="upos")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ImportError, match=r"needs spaCy.*pip install -e '\.\[spacy\]'"):
        spacy_tagger("any")
