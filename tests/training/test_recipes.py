"""The paper's recipes against its table, a short training of one; the same command twice."""

from collections import namedtuple
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig

from modeling_triaffine import TriaffineConfig
from modeling_triaffine.publishing.run_summary import RunSummary
from modeling_triaffine.training.plan import TrainingPlan, parse_training_plan
from modeling_triaffine.training.run import prepare_run, train_and_save
from tests.helpers.faults import assert_same_weights
from tests.helpers.micro_training import REPOSITORY, micro_records, run_arguments, write_corpus, write_recipe

LIBRARY = REPOSITORY / "hub_configs"
# A column of the table of hyper-parameters (Yuan et al., appendix), and the labels of its corpus in order.
COLUMNS = "encoder vectors vector_size epochs encoder_rate embeddings_rate task_rate batch dim dropout labels context"
Row = namedtuple("Row", COLUMNS)
FASTTEXT, BIOWORDVEC = ("cc.en.300.vec.gz", 300), ("BioWordVec_PubMed_MIMICIII_d200.vec.bin", 200)
BERT, BIOBERT, ALBERT = "google-bert/bert-large-cased", "dmis-lab/biobert-v1.1", "albert/albert-xxlarge-v2"
ACE, KBP = ("PER LOC ORG GPE FAC VEH WEA", "document"), ("GPE FAC ORG PER LOC", "document")
GENIA = ("protein cell_type cell_line DNA RNA", "previous_sentence")
TABLE = {
    "ace2004-bert": Row(BERT, *FASTTEXT, 50, 1e-5, 1e-4, 1e-5, 8, 256, 0.1, *ACE),
    "ace2005-bert": Row(BERT, *FASTTEXT, 50, 3e-5, 5e-4, 3e-5, 72, 256, 0.1, *ACE),
    "kbp2017-bert": Row(BERT, *FASTTEXT, 50, 1e-5, 1e-4, 1e-5, 8, 256, 0.1, *KBP),
    "genia-biobert": Row(BIOBERT, *BIOWORDVEC, 15, 3e-5, 5e-4, 3e-5, 48, 320, 0.2, *GENIA),
    "ace2004-albert": Row(ALBERT, *FASTTEXT, 10, 1e-5, 1e-4, 1e-5, 8, 256, 0.1, *ACE),
    "ace2005-albert": Row(ALBERT, *FASTTEXT, 10, 1e-5, 1e-4, 1e-5, 8, 256, 0.1, *ACE),
    "kbp2017-albert": Row(ALBERT, *FASTTEXT, 10, 3e-5, 5e-4, 3e-5, 72, 256, 0.2, *KBP),
}
COMMON_TO_MODELS = {
    **{"attention": "triaffine", "scoring": "triaffine", "cross_span": True, "share_triaffine": True},
    **{"cross_span_axis": "key", "loss_reduction": "sentence", "aux_loss_weight": 1.0, "subword_pooling": "max"},
    **{"max_candidates": 30, "triaffine_init_std": 0.01, "triaffine_rank": None, "max_subwords": 192},
    **{"pos_embedding_size": 50, "char_embedding_size": 50, "char_lstm_hidden_size": 25, "char_readout": "both_ends"},
    **{"lstm_hidden_size": 512, "lstm_layers": 2, "lstm_dropout": 0.2, "encoder_dropout": 0.0},
    **dict.fromkeys(("word_dropout", "pos_dropout", "char_dropout"), 0.2),
}
COMMON_TO_TRAININGS = {
    **{"weight_decay": 0.01, "max_grad_norm": 0.1, "adam_epsilon": 1e-8, "lr_scheduler_type": "linear"},
    **{"warmup_steps": 0, "train_sampling_strategy": "random", "seed": 42},
}


def plan_of(name: str, *arguments: object) -> TrainingPlan:
    return parse_training_plan(["--recipe", name, "--output_dir", "out", *map(str, arguments)])


def fields_of(holder: object, names: dict) -> dict:
    return {name: getattr(holder, name) for name in names}


@pytest.mark.parametrize("name", TABLE)
def test_a_recipe_is_that_of_the_table(name: str) -> None:
    row, plan, config = TABLE[name], plan_of(name), AutoConfig.from_pretrained(LIBRARY / name)
    training = plan.training
    assert (plan.model_name_or_path, plan.word_vectors) == (row.encoder, row.vectors)
    assert training.num_train_epochs == row.epochs
    rates = (training.encoder_learning_rate, training.embeddings_learning_rate, training.learning_rate)
    assert rates == (row.encoder_rate, row.embeddings_rate, row.task_rate)
    assert training.per_device_train_batch_size * training.gradient_accumulation_steps == row.batch
    assert fields_of(training, COMMON_TO_TRAININGS) == COMMON_TO_TRAININGS
    licensed = not name.startswith("genia")
    assert (plan.card_examples == 0) == licensed, "the text of a licensed corpus has no place in a card"
    assert isinstance(config, TriaffineConfig)
    assert list(config.id2label.values()) == [*row.labels.split(), "None"]
    assert (config.triaffine_dim, config.mlp_dropout, config.context) == (row.dim, row.dropout, row.context)
    assert config.word_embedding_size == row.vector_size
    assert fields_of(config, COMMON_TO_MODELS) == COMMON_TO_MODELS


@pytest.mark.parametrize("name", sorted(path.parent.name for path in LIBRARY.glob("*/training.yaml")))
def test_training_makes_the_model_that_the_recipes_configuration_describes(name: str) -> None:
    """Field by field, what `--recipe NAME` builds a model of is what `AutoConfig` loads."""
    config = AutoConfig.from_pretrained(LIBRARY / name)
    config._name_or_path = ""  # where it was read from
    assert TriaffineConfig(**plan_of(name).config).to_dict() == config.to_dict()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With parts of speech; only to be read."""
    splits = {"train": micro_records(12, 0), "dev": micro_records(4, 1)}
    for record in (*splits["train"], *splits["dev"]):
        record["pos"] = ["NOUN" if token == "gene" else "X" for token in record["tokens"]]
    return write_corpus(tmp_path_factory.mktemp("task") / "corpus", **splits)


def shrunken(name: str, corpus: Path, output_dir: Path, encoder: str, *more: object) -> list[str]:
    """The command that trains a recipe by its name, with a tiny encoder and head; all else is the recipe's."""
    sizes = ("--triaffine_dim", 6, "--lstm_hidden_size", 5, "--num_train_epochs", 2, "--use_cpu", "--disable_tqdm", 1)
    return run_arguments(name, corpus, output_dir, "--model_name_or_path", encoder, *sizes, *more)


def write_vectors(path: Path, size: int) -> Path:
    """Vectors of two words of the micro corpus, as text."""
    lines = [f"{word} {' '.join([number] * size)}" for word, number in (("gene", "0.5"), ("binds", "-0.25"))]
    path.write_text(f"2 {size}\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_recipe_trains_by_its_name_with_all_parts_of_a_word(tmp_path: Path, corpus: Path, encoder: str) -> None:
    row = TABLE["genia-biobert"]
    vectors = write_vectors(tmp_path / "vectors.vec", row.vector_size)
    arguments = shrunken("genia-biobert", corpus, tmp_path / "out", encoder, "--word_vectors", vectors)
    run = prepare_run(arguments)
    processor, model = run.trainer.processing_class, run.trainer.model
    assert set(processor.vocabularies) == {"words", "pos", "chars"}
    gene = model.words.word_embedding.weight[processor.vocabularies["words"]["gene"]]
    assert torch.equal(gene, torch.full((row.vector_size,), 0.5))
    before = {name: value.clone() for name, value in model.state_dict().items() if name.startswith("words.")}
    train_and_save(run)
    after = model.state_dict()
    assert [name for name in before if torch.equal(before[name], after[name])] == []
    summary = RunSummary.load(tmp_path / "out")
    assert (summary.recipe, summary.settings["gradient_accumulation_steps"]) == ("genia-biobert", 6)


def test_files_that_a_recipe_needs_are_required_unless_left_out(tmp_path, corpus, encoder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = shrunken("genia-biobert", corpus, tmp_path / "out", encoder)
    with pytest.raises((ValueError, OSError), match=r"BioWordVec_PubMed_MIMICIII_d200\.vec\.bin"):
        prepare_run(arguments)
    run = prepare_run([*arguments, "--word_vectors=", "--word_embedding_size", "0", "--pos_embedding_size", "0"])
    assert list(run.trainer.processing_class.vocabularies) == ["chars"]


def test_a_run_can_be_repeated_and_its_model_trained_further(corpus, encoder, tmp_path, monkeypatch):
    """With dropout, and files that are named from another folder."""
    training = {"num_train_epochs": 2, "learning_rate": 1e-2, "embeddings_learning_rate": 1e-2, "max_grad_norm": 1.0}
    write_recipe(tmp_path / "recipe", training={**training, "use_cpu": True})
    options = ["--recipe", "recipe", "--train_file", str(corpus), "--model_name_or_path", encoder, "--seed", "7"]
    options += ["--word_vectors", write_vectors(tmp_path / "vectors.vec", 3).name, "--pos_embedding_size", "2"]
    options += ["--char_embedding_size", "4", "--char_lstm_hidden_size", "3"]
    monkeypatch.chdir(tmp_path)
    metrics = [train_and_save(prepare_run([*options, "--output_dir", folder])) for folder in ("first", "again")]
    assert_same_weights(*(load_file(f"{folder}/model.safetensors") for folder in ("first", "again")))
    assert Path("first", "config.json").read_text() == Path("again", "config.json").read_text()
    first, again = (RunSummary.load(folder) for folder in ("first", "again"))
    assert (first.training_table, first.settings) == (again.training_table, again.settings)
    assert first.settings["seed"] == 7
    assert metrics[1]["eval_f1"] == first.evaluation.scores["f1"]
    further = ["--model_name_or_path", "first", "--train_file", str(corpus), "--output_dir", "further", "--use_cpu"]
    assert prepare_run(further).corpus.words == "corpus"  # to which the tags that the model reads belong
