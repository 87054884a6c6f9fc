"""Parts of speech by a tagger: spaCy's, with a pipeline that the test makes, and in training."""

import sys
from pathlib import Path

import pytest
import spacy
from datasets import Dataset

from modeling_triaffine.data import FEATURES
from modeling_triaffine.data.parts_of_speech import add_parts_of_speech, spacy_tagger
from modeling_triaffine.training.run import prepare_run
from tests.helpers.micro_training import micro_dataset, micro_records, write_lines, write_recipe

SENTENCES = [["The", "gene", "IL-2"], ["gene", "", "binds"]]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> str:
    """Folder of a spaCy pipeline that knows three words."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("attribute_ruler")
    for word, tag, pos in (("gene", "NN", "NOUN"), ("binds", "VBZ", "VERB"), ("the", "DT", "DET")):
        ruler.add(patterns=[[{"LOWER": word}]], attrs={"TAG": tag, "POS": pos})
    nlp.add_pipe("sentencizer", name="parser")  # what is not needed is not read
    folder = tmp_path_factory.mktemp("spacy") / "pipeline"
    nlp.to_disk(folder)
    return str(folder)


def test_spacy_tags_given_words(pipeline):
    assert spacy_tagger(pipeline)(SENTENCES) == [["DET", "NOUN", ""], ["NOUN", "", "VERB"]]
    assert spacy_tagger(spacy.load(pipeline), tags="fine")(SENTENCES) == [["DT", "NN", ""], ["NN", "", "VBZ"]]
    assert spacy_tagger(pipeline)([]) == []


def test_mistakes_with_spacy_are_reported(pipeline, monkeypatch):
    with pytest.raises(OSError, match=r"'nowhere'.*python -m spacy download nowhere"):
        spacy_tagger("nowhere")
    with pytest.raises(ValueError, match="no universal tags"):
        spacy_tagger(spacy.blank("en"))(SENTENCES)
    with pytest.raises(ValueError, match=r"`tags` is 'upos'; choose one of 'universal', 'fine'"):
        spacy_tagger(pipeline, tags="upos")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ImportError, match=r"needs spaCy.*pip install -e '\.\[spacy\]'"):
        spacy_tagger(pipeline)


def test_records_keep_their_own_tags_and_the_others_get_the_taggers():
    records = micro_records(3)
    records[1]["pos"] = ["OWN"] * len(records[1]["tokens"])
    data = Dataset.from_list(micro_dataset(records).to_list(), features=FEATURES, split="train")
    tagged = add_parts_of_speech(data, lambda sentences: [[word.upper() for word in words] for words in sentences])
    expected = [[word.upper() for word in record["tokens"]] for record in records]
    expected[1] = records[1]["pos"]
    assert list(tagged["pos"]) == expected
    assert (tagged.features, tagged.split) == (data.features, data.split)
    assert tagged.remove_columns("pos").to_list() == data.remove_columns("pos").to_list()


def test_a_training_has_its_data_tagged(tmp_path: Path, pipeline):
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
