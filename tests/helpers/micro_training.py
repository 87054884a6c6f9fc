"""A micro corpus, model and recipe, with which the tests of training run in seconds."""

import json
import random
from pathlib import Path

import datasets
import torch
import yaml
from transformers import TrainingArguments

from modeling_triaffine import NestedNERTrainer, TriaffineConfig, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.data import FEATURES
from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.start import learn_tokenizer
from tests.helpers.corpora import write_json

REPOSITORY = Path(__file__).resolve().parents[2]

MICRO_ENCODER = {  # of a model that trains in seconds: one layer, 16 wide
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
    return datasets.Dataset.from_list([{**context, **record} for record in records], features=FEATURES)


def micro_trainer(
    folder: Path, train: list[dict], validation: list[dict] = (), config: dict | None = None, **options
) -> NestedNERTrainer:
    """A trainer of a new model: the same model for the same sentences, without dropout unless `config` says so."""
    tokenizer = learn_tokenizer([record["tokens"] for record in train], vocab_size=300)
    encoder = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, **MICRO_ENCODER}
    defaults = {
        **dict.fromkeys(("learning_rate", "encoder_learning_rate", "embeddings_learning_rate"), 1e-2),
        "num_train_epochs": 1,
        "eval_strategy": "no",
        "save_strategy": "no",
        "load_best_model_at_end": False,
        "disable_tqdm": True,
        "use_cpu": True,
    }
    torch.manual_seed(0)
    model = TriaffineForNestedNER(
        TriaffineConfig(
            encoder_config={**encoder, "vocab_size": len(tokenizer)},
            **{"id2label": {0: "DNA", 1: "protein", 2: "None"}, **MICRO_CONFIG, **NO_DROPOUT, **(config or {})},
        )
    )
    return NestedNERTrainer(
        model,
        NestedNERTrainingArguments(output_dir=str(folder), **{**defaults, **options}),
        processing_class=TriaffineProcessor(tokenizer, max_subwords=64, context=model.config.context),
        train_dataset=micro_dataset(train),
        eval_dataset=micro_dataset(validation) if validation else None,
    )


def weights_after_training(trainer: NestedNERTrainer) -> dict[str, torch.Tensor]:
    trainer.model.double()  # so that only a real difference is one
    trainer.train()
    return trainer.model.state_dict()


def trainer_like(like: NestedNERTrainer, args: TrainingArguments | None = None, **changes: object) -> NestedNERTrainer:
    """Another trainer of the same model, with the same arguments and data but for these changes."""
    data = {"train_dataset": like.train_dataset, "eval_dataset": like.eval_dataset, **changes}
    return NestedNERTrainer(like.model, args or like.args, processing_class=like.processing_class, **data)


def write_corpus(folder: Path, **splits: list[dict]) -> Path:
    """A new folder with a file for each split."""
    folder.mkdir()
    for name, records in splits.items():
        write_json(folder / f"{name}.jsonl", *records)
    return folder


def write_recipe(folder: Path, config: dict | None = None, training: dict | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    config = {"encoder_config": {**MICRO_ENCODER, "vocab_size": 300}, **MICRO_CONFIG} if config is None else config
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "training.yaml").write_text(yaml.safe_dump(training or {}), encoding="utf-8")
    return folder


def write_task(
    folder: Path, training: dict, train: list[dict], validation: list[dict] = (), config: dict | None = None
) -> Path:
    """A recipe, and beside it the corpus, whose folder is returned."""
    write_recipe(folder / "recipe", config, training)
    return write_corpus(folder / "corpus", train=train, **{"dev": validation} if validation else {})


def run_arguments(recipe: str | Path, corpus: Path, output_dir: Path, *more: object) -> list[str]:
    """The command line of a run."""
    return [str(part) for part in ("--recipe", recipe, "--train_file", corpus, "--output_dir", output_dir, *more)]


def task_arguments(corpus: Path, output_dir: Path, *more: object) -> list[str]:
    """The command line of a run on what `write_task` has written."""
    return run_arguments(corpus.parent / "recipe", corpus, output_dir, *more)
