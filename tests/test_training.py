"""Training and evaluation: parameter groups, batches, the loss of an update, scores, recipes and the command line."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import AutoModel, AutoProcessor

from modeling_triaffine import NestedNERTrainer, TriaffineConfig, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.data import FEATURES
from modeling_triaffine.evaluation.scoring import score_entities
from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.batching import EvaluationBatchSampler, ShuffledLengthSampler
from modeling_triaffine.training.command_line import CommandLineError, parse_training_plan
from modeling_triaffine.training.parameter_groups import build_parameter_groups
from modeling_triaffine.training.preparation import label_names
from modeling_triaffine.training.recipes import RecipeError
from modeling_triaffine.training.run import prepare_run, train_and_save
from modeling_triaffine.training.vocabularies import learn_tokenizer, read_word_vectors

REPOSITORY = Path(__file__).resolve().parents[1]
RECIPES = REPOSITORY / "hub_configs"

# A model that trains in seconds: one encoder layer, 16 wide.
MICRO_ENCODER = {
    "model_type": "bert",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
MICRO_CONFIG = {
    "triaffine_dim": 8,
    "triaffine_rank": 4,
    "lstm_hidden_size": 8,
    "lstm_layers": 1,
    "max_candidates": 6,
    "max_subwords": 64,
}
NO_DROPOUT = {f"{part}_dropout": 0.0 for part in ("encoder", "word", "pos", "char", "lstm", "mlp")}


# ---- A micro corpus and model, used by test_resume.py as well ----


def micro_records(count: int, seed: int = 0) -> list[dict]:
    """Sentences in which "alpha gene" is a DNA with a protein inside, and "kappa" a protein."""
    choose = random.Random(seed)
    records = []
    for number in range(count):
        tokens: list[str] = []
        entities = []
        for _ in range(choose.randint(1, 3)):
            tokens += choose.choices(["the", "of", "binds", "and"], k=choose.randint(1, 4))
            start = len(tokens)
            entities.append({"start": start, "end": start + 1, "type": "protein"})
            if choose.random() < 0.5:
                tokens += [choose.choice(["alpha", "beta"]), "gene"]
                entities.append({"start": start, "end": start + 2, "type": "DNA"})
            else:
                tokens.append("kappa")
        records.append(
            {"id": str(number), "doc_id": "d", "sent_id": number, "tokens": tokens, "pos": [], "entities": entities}
        )
    return records


def micro_dataset(records: list[dict]) -> datasets.Dataset:
    context = {"left_tokens": None, "right_tokens": None}
    return datasets.Dataset.from_list([{**record, **context} for record in records], features=FEATURES)


def micro_model(records: list[dict], **config) -> tuple[TriaffineForNestedNER, TriaffineProcessor]:
    tokenizer = learn_tokenizer([record["tokens"] for record in records], vocab_size=300)
    encoder = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, **MICRO_ENCODER}
    torch.manual_seed(0)
    model = TriaffineForNestedNER(
        TriaffineConfig(
            encoder_config={**encoder, "vocab_size": len(tokenizer)},
            id2label={0: "DNA", 1: "protein", 2: "None"},
            **{**MICRO_CONFIG, **NO_DROPOUT, **config},
        )
    )
    return model, TriaffineProcessor(tokenizer, max_subwords=64)


def micro_arguments(folder: Path, **options) -> NestedNERTrainingArguments:
    defaults = {
        "learning_rate": 1e-2,
        "encoder_learning_rate": 1e-2,
        "embeddings_learning_rate": 1e-2,
        "num_train_epochs": 1,
        "eval_strategy": "no",
        "save_strategy": "no",
        "load_best_model_at_end": False,
        "disable_tqdm": True,
        "use_cpu": True,
    }
    return NestedNERTrainingArguments(output_dir=str(folder), **{**defaults, **options})


def write_lines(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def write_recipe(folder: Path, config: dict | None = None, training: dict | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    config = {"encoder_config": {**MICRO_ENCODER, "vocab_size": 300}, **MICRO_CONFIG} if config is None else config
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "training.yaml").write_text(yaml.safe_dump(training or {}), encoding="utf-8")
    return folder


@pytest.fixture
def micro_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the splits of a corpus; what `datasets` prepares of it stays out of the user's cache."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "corpus"
    folder.mkdir()
    for seed, (name, count) in enumerate({"train": 24, "dev": 6, "test": 6}.items()):
        write_lines(folder / f"{name}.jsonl", micro_records(count, seed))
    return folder


# ---- Parameter groups ----


def group_names(model: nn.Module, groups: list[dict]) -> dict[str, set[str]]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {group["name"]: {names[id(parameter)] for parameter in group["params"]} for group in groups}


def test_each_parameter_is_in_one_group_with_its_rate_and_decay(tmp_path: Path) -> None:
    model, processor = micro_model(micro_records(4))
    arguments = micro_arguments(tmp_path, learning_rate=3.0, embeddings_learning_rate=2.0, encoder_learning_rate=1.0)
    groups = NestedNERTrainer(model, arguments, processing_class=processor).create_optimizer().param_groups
    by_group = group_names(model, groups)

    counted = Counter(name for names in by_group.values() for name in names)
    assert set(counted) == {name for name, _ in model.named_parameters()}
    assert set(counted.values()) == {1}
    rates = {"encoder": 1.0, "words": 2.0, "head": 3.0}
    for group in groups:
        part, *no_decay = group["name"].split("_", 1)
        assert all(name.startswith(f"{part}.") for name in by_group[group["name"]])
        assert (group["lr"], group["weight_decay"]) == (rates[part], 0.0 if no_decay else 0.01)
    assert groups[0]["name"].startswith("head")


def test_biases_norms_and_the_label_bias_do_not_decay(tmp_path: Path) -> None:
    model, processor = micro_model(micro_records(4))
    trainer = NestedNERTrainer(model, micro_arguments(tmp_path), processing_class=processor)
    by_group = group_names(model, trainer.create_optimizer().param_groups)
    no_decay = {name for group, names in by_group.items() if group.endswith("no_decay") for name in names}
    norms = {
        f"{module_name}.{name}"
        for module_name, module in model.named_modules()
        if isinstance(module, nn.LayerNorm)
        for name, _ in module.named_parameters()
    }
    biases = {name for name, _ in model.named_parameters() if "bias" in name}
    assert "head.label_bias" in biases
    assert norms
    assert no_decay == norms | biases


def test_frozen_parameters_are_in_no_group() -> None:
    model = nn.ModuleDict({"head": nn.Linear(2, 2), "encoder": nn.Linear(2, 2)})
    model["encoder"].requires_grad_(False)
    groups = build_parameter_groups(model.named_parameters(), {"head": 1.0, "encoder": 1.0}, 0.1, {"head.weight"})
    assert [group["name"] for group in groups] == ["head", "head_no_decay"]


def test_a_parameter_without_a_rate_is_an_error() -> None:
    model = nn.ModuleDict({"tail": nn.Linear(2, 2)})
    with pytest.raises(ValueError, match=r"'tail.weight' has no learning rate"):
        build_parameter_groups(model.named_parameters(), {}, 0.1, set())


# ---- Batches ----

lengths_strategy = st.lists(st.integers(0, 60), max_size=120)


@given(lengths_strategy, st.integers(1, 9), st.integers(0, 3), st.integers(0, 3), st.booleans())
@settings(deadline=None)
def test_training_order_is_a_permutation_fixed_by_seed_and_epoch(lengths, batch_size, seed, epoch, grouped) -> None:
    sampler, again = (ShuffledLengthSampler(lengths, batch_size, seed, grouped) for _ in range(2))
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    list(again)  # another epoch before, another state of the global generators
    for one in (sampler, again):
        one.set_epoch(epoch)
    order = list(sampler)
    assert sorted(order) == list(range(len(lengths)))
    assert order == list(again)
    if grouped and len(lengths) >= batch_size:
        assert max(lengths) in [lengths[row] for row in order[:batch_size]] + [
            lengths[row] for row in order[len(order) // batch_size * batch_size :]
        ]


def test_training_order_changes_with_seed_and_epoch_and_groups_lengths() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, size=1000)

    def order(seed: int, epoch: int, grouped: bool = True) -> list[int]:
        sampler = ShuffledLengthSampler(lengths, 10, seed, grouped)
        sampler.set_epoch(epoch)
        return list(sampler)

    def padding(rows: list[int]) -> int:
        batches = lengths[rows].reshape(-1, 10)
        return int((batches.max(1, keepdims=True) - batches).sum())

    assert order(0, 0) != order(0, 1) != order(1, 0)
    assert order(1, 2) != order(2, 1)
    assert padding(order(0, 0)) < padding(order(0, 0, grouped=False)) / 10
    batch_mates = [{frozenset(order(0, epoch)[start : start + 10]) for start in range(0, 1000, 10)} for epoch in (0, 1)]
    assert len(batch_mates[0] & batch_mates[1]) < 10


@given(st.lists(st.integers(0, 60), min_size=1, max_size=60), st.integers(1, 7), st.integers(1, 4))
def test_evaluation_counts_each_row_once_over_all_processes(lengths, batch_size, processes) -> None:
    samplers = [EvaluationBatchSampler(lengths, batch_size, processes, index) for index in range(processes)]
    counted = [row for sampler in samplers for rows in sampler.rows_that_count for row in rows]
    assert sorted(counted) == list(range(len(lengths)))
    assert len({len(sampler) for sampler in samplers}) == 1  # collective operations need this
    for sampler in samplers:
        for batch, rows in zip(sampler, sampler.rows_that_count, strict=True):
            assert 0 < len(batch) <= batch_size
            assert rows in ([], batch)


# ---- Updates ----


def trained_weights(folder: Path, records: list[dict], **options) -> dict[str, torch.Tensor]:
    model, processor = micro_model(records)
    arguments = micro_arguments(folder, optim="sgd", **options)
    NestedNERTrainer(model.double(), arguments, micro_dataset(records), processing_class=processor).train()
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize(("batch_size", "accumulation"), [(4, 2), (3, 3), (1, 8)], ids=["4+4", "3+3+2", "8x1"])
def test_accumulated_update_is_that_of_one_batch(tmp_path: Path, batch_size: int, accumulation: int) -> None:
    records = micro_records(8)
    whole = trained_weights(tmp_path, records, per_device_train_batch_size=8)
    parts = trained_weights(
        tmp_path, records, per_device_train_batch_size=batch_size, gradient_accumulation_steps=accumulation
    )
    start = micro_model(records)[0].state_dict()
    assert any(not torch.equal(start[name].double(), whole[name]) for name in whole)
    for name in whole:
        torch.testing.assert_close(parts[name], whole[name], rtol=0, atol=1e-10, msg=name)


def test_rates_fall_linearly_to_zero_over_the_real_updates(tmp_path: Path) -> None:
    records = micro_records(7)
    model, processor = micro_model(records)
    arguments = micro_arguments(
        tmp_path, per_device_train_batch_size=2, gradient_accumulation_steps=2, num_train_epochs=2, logging_steps=1
    )
    trainer = NestedNERTrainer(model, arguments, micro_dataset(records), processing_class=processor)
    trainer.train()
    logged = [entry["learning_rate"] for entry in trainer.state.log_history if "learning_rate" in entry]
    assert logged == pytest.approx([1e-2, 0.75e-2, 0.5e-2, 0.25e-2])
    assert set(trainer.lr_scheduler.get_last_lr()) == {0.0}


def test_a_loss_that_is_no_number_is_not_hidden(tmp_path: Path) -> None:
    records = micro_records(4)
    model, processor = micro_model(records)
    model.head.label_bias.data.fill_(float("nan"))
    trainer = NestedNERTrainer(
        model, micro_arguments(tmp_path, logging_steps=1), micro_dataset(records), processing_class=processor
    )
    trainer.train()
    assert np.isnan(trainer.state.log_history[0]["loss"])


# ---- Evaluation ----


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> NestedNERTrainer:
    """A trainer whose model has learned something, with evaluation data that holds two types on one span."""
    train, validation = micro_records(64), micro_records(9, seed=1)
    first = validation[0]["entities"][0]
    validation[0]["entities"].append({**first, "type": "DNA"})
    model, processor = micro_model(train)
    arguments = micro_arguments(
        tmp_path_factory.mktemp("trained"), num_train_epochs=6, per_device_eval_batch_size=4, max_grad_norm=1.0
    )
    trainer = NestedNERTrainer(model, arguments, micro_dataset(train), micro_dataset(validation), processor)
    trainer.train()
    return trainer


def test_metrics_are_the_scores_of_the_predictions_against_the_entity_lists(trained: NestedNERTrainer) -> None:
    metrics = trained.evaluate()
    predictions = trained.predict_entities(trained.eval_dataset)
    scores = score_entities(predictions, trained.eval_dataset["entities"])
    assert 0.5 < scores["f1"] < 1.0
    assert scores["gold"] == sum(map(len, trained.eval_dataset["entities"]))
    for ratio in ("f1", "precision", "recall"):
        assert metrics[f"eval_{ratio}"] == scores[ratio]
        assert metrics[f"eval_flat_{ratio}"] == scores["flat"][ratio]
        assert metrics[f"eval_nested_{ratio}"] == scores["nested"][ratio]
        assert metrics[f"eval_{ratio}_protein"] == scores["by_label"]["protein"][ratio]
    assert trained.state.log_history[-1]["eval_f1"] == scores["f1"]


def test_evaluation_does_not_depend_on_batch_size_or_order(trained: NestedNERTrainer) -> None:
    dataset = trained.eval_dataset
    turned = dataset.select(range(len(dataset) - 1, -1, -1))
    losses, predictions = [], []
    for batch_size, rows in ((1, dataset), (4, dataset), (50, dataset), (4, turned)):
        trained.args.per_device_eval_batch_size = batch_size
        losses.append(trained.evaluate(rows)["eval_loss"])
        found = trained.predict_entities(rows)
        predictions.append(found if rows is dataset else found[::-1])
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-5)
    spans = [
        [[(entity["start"], entity["end"], entity["type"]) for entity in of_sentence] for of_sentence in found]
        for found in predictions
    ]
    assert spans[0] == spans[1] == spans[2] == spans[3]


def test_evaluation_leaves_the_random_generators_alone(trained: NestedNERTrainer) -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    trained.evaluate()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]


def test_records_without_entities_are_predicted_without_metrics(trained: NestedNERTrainer) -> None:
    bare = trained.eval_dataset.remove_columns("entities")
    output = trained.predict(bare)
    assert output.predictions == trained.predict_entities(trained.eval_dataset)
    assert output.label_ids is None
    assert not [name for name in output.metrics if "f1" in name or "loss" in name]


# ---- Tokenizer, word vectors, labels ----


def test_the_same_sentences_give_the_same_tokenizer() -> None:
    sentences = [record["tokens"] for record in micro_records(50)]
    first, second = (learn_tokenizer(sentences, vocab_size=280).backend_tokenizer.to_str() for _ in range(2))
    assert first == second
    tokenizer = learn_tokenizer(sentences, vocab_size=280)
    assert len(tokenizer) == 280
    assert tokenizer.unk_token_id not in tokenizer(["gene", "Ωmega-3"], is_split_into_words=True)["input_ids"]


def test_word_vectors_are_read_for_the_words_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "vectors.vec"
    path.write_text("3 2\nalpha 1 2\nNew York 3 4\nbeta 5 6\n", encoding="utf-8")
    vectors = read_word_vectors(path, {"alpha", "New York", "gamma"}, size=2)
    assert {word: vector.tolist() for word, vector in vectors.items()} == {"alpha": [1, 2], "New York": [3, 4]}
    with pytest.raises(ValueError, match=r"line 2: there are 2 numbers .* word_embedding_size is 3"):
        read_word_vectors(path, {"alpha"}, size=3)


def test_labels_are_those_of_the_training_data_in_order_and_none() -> None:
    assert label_names(micro_dataset(micro_records(9))) == ["DNA", "protein", "None"]


# ---- Recipes and command line ----


def parse(recipe: Path, *arguments: str):
    return parse_training_plan(["--recipe", str(recipe), "--output_dir", str(recipe / "out"), *arguments])


def test_command_line_wins_over_recipe_and_recipe_over_defaults(tmp_path: Path) -> None:
    recipe = write_recipe(
        tmp_path / "recipe", training={"learning_rate": "1e-3", "num_train_epochs": 7, "do_predict": True}
    )
    default = NestedNERTrainingArguments(output_dir=str(tmp_path))
    plan = parse(recipe)
    assert (plan.training.learning_rate, plan.training.num_train_epochs) == (1e-3, 7)
    assert plan.training.do_predict
    assert plan.training.max_grad_norm == default.max_grad_norm
    assert plan.config["triaffine_rank"] == 4

    plan = parse(recipe, "--learning_rate", "0.5", "--no_do_train", "--triaffine_rank=none", "--attention", "label")
    assert (plan.training.learning_rate, plan.training.num_train_epochs) == (0.5, 7)
    assert not plan.training.do_train
    assert (plan.config["triaffine_rank"], plan.config["attention"]) == (None, "label")
    assert plan.config["triaffine_dim"] == 8


def test_an_option_set_to_its_default_still_wins_over_the_recipe(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "recipe", training={"weight_decay": 0.5, "do_train": False})
    plan = parse(recipe, "--weight_decay", "0.01", "--do_train", "--triaffine_dim", "256")
    assert (plan.training.weight_decay, plan.training.do_train) == (0.01, True)
    assert plan.config["triaffine_dim"] == 256


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [([], None), (["--resume_from_checkpoint"], "latest"), (["--resume_from_checkpoint", "there"], "there")],
    ids=["not", "latest", "path"],
)
def test_resume_flag_with_and_without_a_path(tmp_path: Path, arguments: list[str], expected: str | None) -> None:
    assert parse(write_recipe(tmp_path / "recipe"), *arguments).training.resume_from_checkpoint == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lerning_rate", "1"], "lerning_rate"),
        (["--learning_rat", "1"], "learning_rat"),
        (["--learning_rate", "fast"], "learning.rate: invalid float value: 'fast'"),
        (["--train_sampling_strategy", "sequential"], "group_by_length or random"),
        (["--output_dir", ""], "--output_dir is missing"),
    ],
)
def test_options_that_cannot_be_are_errors(tmp_path: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandLineError, match=message):
        parse(write_recipe(tmp_path / "recipe"), *arguments)


@pytest.mark.parametrize(
    ("config", "training", "message"),
    [
        ({}, {"lerning_rate": 1}, "training.yaml, 'lerning_rate'"),
        ({}, {"learning_rate": "fast"}, "training.yaml, 'learning_rate'.*invalid float value"),
        ({}, {"triaffine_dim": 3}, "'triaffine_dim'.*config.json"),
        ({"triafine_dim": 3}, {}, "config.json has fields .*triafine_dim"),
    ],
)
def test_bad_recipes_name_file_and_field(tmp_path: Path, config: dict, training: dict, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        parse(write_recipe(tmp_path / "recipe", config, training))


def test_recipes_that_cannot_be_read(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "recipe")
    (recipe / "training.yaml").write_text("- a list\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"must hold options by name"):
        parse(recipe)
    (recipe / "training.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"training\.yaml cannot be read"):
        parse(recipe)
    (recipe / "config.json").unlink()
    with pytest.raises(RecipeError, match=r"has no config\.json"):
        parse(recipe)
    with pytest.raises(RecipeError, match=r"There is no recipe 'nothing'.*: demo, genia-minilm"):
        parse_training_plan(["--recipe", "nothing"], library=RECIPES)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in RECIPES.glob("*/training.yaml")))
def test_every_recipe_of_the_repository_is_a_model_and_a_plan(tmp_path: Path, name: str) -> None:
    plan = parse_training_plan(["--recipe", name, "--output_dir", str(tmp_path)], library=RECIPES)
    config = TriaffineConfig.from_pretrained(RECIPES / name)
    assert all(getattr(config, field) == value for field, value in plan.config.items() if field != "encoder_config")
    assert (RECIPES / name / "README.md").read_text(encoding="utf-8").startswith("---\n")


# ---- Whole runs ----


def run_options(corpus: Path, recipe: Path, output_dir: Path, *more: str) -> list[str]:
    options = [
        "--recipe",
        recipe,
        "--train_file",
        corpus,
        "--output_dir",
        output_dir,
        "--use_cpu",
        "--disable_tqdm",
        "1",
    ]
    return [*map(str, options), *more]


def test_a_run_leaves_a_model_that_loads_and_nothing_unfinished(tmp_path: Path, micro_corpus: Path) -> None:
    training = {"num_train_epochs": 2, "learning_rate": 1e-2, "embeddings_learning_rate": 1e-2, "dataset_name": "micro"}
    recipe = write_recipe(tmp_path / "recipe", training=training)
    output_dir = tmp_path / "my model"
    run = prepare_run(run_options(micro_corpus, recipe, output_dir, "--do_predict"))
    metrics = train_and_save(run)

    assert {"train_loss", "eval_f1", "test_f1", "test_f1_DNA"} <= set(metrics)
    assert json.loads((output_dir / "all_results.json").read_text(encoding="utf-8")) == metrics
    card = (output_dir / "README.md").read_text(encoding="utf-8")
    assert f"{100 * metrics['test_f1']:.2f}" in card
    predictions = [json.loads(line) for line in (output_dir / "test_predictions.jsonl").open(encoding="utf-8")]
    assert [record["id"] for record in predictions] == list(run.dataset["test"]["id"])
    assert not (output_dir / "_incomplete").exists()
    assert not list(output_dir.rglob("training_args.bin"))

    model = AutoModel.from_pretrained(output_dir)
    for name, value in run.trainer.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    processor = AutoProcessor.from_pretrained(output_dir)
    sentence = [["the", "alpha", "gene"]]
    assert torch.equal(
        processor(words=sentence)["input_ids"], run.trainer.processing_class(words=sentence)["input_ids"]
    )


def test_a_trained_model_can_be_scored_without_training(tmp_path: Path, micro_corpus: Path) -> None:
    recipe = write_recipe(tmp_path / "recipe")
    trained_folder, scored_folder = tmp_path / "trained", tmp_path / "scored"
    options = ("--char_embedding_size", "4", "--char_lstm_hidden_size", "4", "--num_train_epochs", "1")
    before = train_and_save(prepare_run(run_options(micro_corpus, recipe, trained_folder, *options)))
    again = ["--model_name_or_path", str(trained_folder), "--train_file", str(micro_corpus), "--no_do_train"]
    run = prepare_run([*again, "--output_dir", str(scored_folder), "--use_cpu"])
    after = train_and_save(run)
    assert after["eval_loss"] == pytest.approx(before["eval_loss"], rel=1e-6)
    assert [path.name for path in scored_folder.iterdir() if path.is_file()] == ["all_results.json"]
    with pytest.raises(ValueError, match=r"triaffine_dim is to be 9, but the model in .* was made with 8"):
        prepare_run([*again, "--output_dir", str(scored_folder), "--use_cpu", "--triaffine_dim", "9"])


def test_word_vectors_start_the_embeddings(tmp_path: Path, micro_corpus: Path) -> None:
    vectors = tmp_path / "vectors.vec"
    vectors.write_text("kappa 1 2 3\nelsewhere 4 5 6\n", encoding="utf-8")
    recipe = write_recipe(tmp_path / "recipe")
    options = ("--word_vectors", str(vectors), "--word_embedding_size", "3")
    run = prepare_run(run_options(micro_corpus, recipe, tmp_path / "out", *options))
    words = run.trainer.processing_class.vocabularies["words"]
    assert "elsewhere" not in words
    assert run.trainer.model.words.word_embedding.weight[words["kappa"]].tolist() == [1, 2, 3]


def unknown_label(corpus: Path) -> list[str]:
    records = micro_records(3)
    records[1]["entities"][0]["type"] = "virus"
    return ["--validation_file", str(write_lines(corpus.parent / "other.jsonl", records))]


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (unknown_label, r"The validation data has entities of type virus.*it knows DNA, protein\."),
        (lambda corpus: ["--train_file", str(corpus / "nothing.jsonl")], r"nothing\.jsonl"),
        (lambda corpus: ["--train_file", str(corpus / "train.jsonl")], r"There is no validation data"),
        (lambda corpus: ["--resume_from_checkpoint", str(corpus)], r"is no checkpoint to go on from"),
        (lambda corpus: ["--word_vectors", "some.vec"], r"--word_vectors is given, but word_embedding_size is 0"),
        (lambda corpus: ["--pos_embedding_size", "5"], r"no training sentence has parts of speech"),
        (lambda corpus: ["--attention", "magic"], r"`attention` is 'magic'; choose one of"),
    ],
    ids=["label", "file", "validation", "checkpoint", "vectors", "pos", "attention"],
)
def test_a_mistake_is_noticed_before_training(tmp_path: Path, micro_corpus: Path, mistake, message: str) -> None:
    recipe = write_recipe(tmp_path / "recipe")
    with pytest.raises((ValueError, OSError), match=message):
        prepare_run(run_options(micro_corpus, recipe, tmp_path / "out", *mistake(micro_corpus)))


def test_checkpoints_of_an_earlier_run_are_not_trained_over(tmp_path: Path, micro_corpus: Path) -> None:
    checkpoint = tmp_path / "out" / "checkpoint-3"
    checkpoint.mkdir(parents=True)
    (checkpoint / "trainer_state.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"already holds checkpoint-3 .*--resume_from_checkpoint"):
        prepare_run(run_options(micro_corpus, write_recipe(tmp_path / "recipe"), tmp_path / "out"))


def test_more_entities_than_candidates_are_warned_of(tmp_path: Path, micro_corpus: Path, caplog) -> None:
    recipe = write_recipe(tmp_path / "recipe")
    prepare_run(run_options(micro_corpus, recipe, tmp_path / "out", "--max_candidates", "1", "--max_span_width", "1"))
    assert "more than the 1 candidates" in caplog.text
    assert "more than 1 words, which are not scored" in caplog.text


def script_environment(tmp_path: Path) -> dict[str, str]:
    paths = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": paths, "HF_DATASETS_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}


def test_the_script_tells_a_mistake_in_one_paragraph(tmp_path: Path) -> None:
    command = [sys.executable, str(REPOSITORY / "examples" / "train.py"), "--recipe", "demo", "--nonsense", "3"]
    done = subprocess.run(command, env=script_environment(tmp_path), capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    assert "--nonsense" in done.stderr


# ---- Two processes ----

TWO_PROCESSES = """
import json, sys
from pathlib import Path
import torch
from tests.test_training import NestedNERTrainer, micro_arguments, micro_dataset, micro_model, micro_records

folder = Path(sys.argv[1])
records = micro_records(8)
model, processor = micro_model(records)
arguments = micro_arguments(
    folder, optim="sgd", per_device_train_batch_size=4, per_device_eval_batch_size=2, save_strategy="epoch"
)
validation = micro_dataset(micro_records(7, seed=1))
trainer = NestedNERTrainer(model.double(), arguments, micro_dataset(records), validation, processor)
trainer.train()
result = {
    "processes": trainer.accelerator.num_processes,
    "metrics": trainer.evaluate(),
    "predictions": trainer.predict_entities(validation),
}
trainer.save_model()

def train_again(**options):
    # Checkpoint 4 lies in the middle of the second of two epochs of three updates.
    records = micro_records(12)
    model, processor = micro_model(records, mlp_dropout=0.3)
    arguments = micro_arguments(
        folder / "again", num_train_epochs=2, per_device_train_batch_size=2, save_strategy="steps", save_steps=4,
        save_total_limit=9,
    )
    NestedNERTrainer(model, arguments, micro_dataset(records), processing_class=processor).train(**options)
    return model.state_dict()

whole = train_again()
resumed = train_again(resume_from_checkpoint=folder / "again" / "checkpoint-4")
result["differing_after_resume"] = [name for name in whole if not torch.equal(whole[name], resumed[name])]
(folder / f"process_{arguments.process_index}.json").write_text(json.dumps(result))
"""


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    """The folder that two real processes wrote into, and the result of each."""
    folder = tmp_path_factory.mktemp("two")
    script = folder / "two.py"
    script.write_text(TWO_PROCESSES, encoding="utf-8")
    configuration = REPOSITORY / "examples" / "accelerate" / "cpu_2_processes.yaml"
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(configuration)]
    done = subprocess.run(
        [*launch, str(script), str(folder)],
        env=script_environment(folder),
        capture_output=True,
        text=True,
        timeout=300,
    )
    # Processes may abort when the interpreter ends, after all work is done: what they wrote is what counts.
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("process_*.json"))]
    assert [result["processes"] for result in results] == [2, 2], done.stderr
    return folder, results


def test_two_processes_train_and_score_as_one_does(tmp_path: Path, two_processes: tuple[Path, list[dict]]) -> None:
    folder, results = two_processes
    records, validation = micro_records(8), micro_dataset(micro_records(7, seed=1))
    model, processor = micro_model(records)
    arguments = micro_arguments(tmp_path, optim="sgd", per_device_train_batch_size=8)
    alone = NestedNERTrainer(model.double(), arguments, micro_dataset(records), validation, processor)
    alone.train()
    metrics = alone.evaluate()
    for result in results:
        for name in ("eval_loss", "eval_f1", "eval_nested_f1"):
            assert result["metrics"][name] == pytest.approx(metrics[name], rel=1e-9), name
        scores = score_entities(result["predictions"], validation["entities"])
        assert scores["f1"] == result["metrics"]["eval_f1"]
    saved = AutoModel.from_pretrained(folder, dtype=torch.float64).state_dict()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(saved[name], value, rtol=0, atol=1e-10, msg=name)


def test_two_processes_write_whole_checkpoints_and_resume_in_the_middle_of_an_epoch(
    two_processes: tuple[Path, list[dict]],
) -> None:
    folder, results = two_processes
    assert (folder / "checkpoint-1" / "rng_state_1.pth").is_file()
    assert not (folder / "_incomplete").exists()
    assert (folder / "again" / "checkpoint-4" / "rng_state_1.pth").is_file()
    assert [result["differing_after_resume"] for result in results] == [[], []]
