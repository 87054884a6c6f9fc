"""Faults in whole runs: what the script says of them in processes of its own, of folders, checkpoints and settings.

The faults are real ones: files that the system does not take, files that are cut off.
"""

import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from modeling_triaffine import NestedNERTrainer, TriaffineForNestedNER
from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.checkpoints import find_checkpoint, list_checkpoints
from modeling_triaffine.training.interruptions import TrainingFault, check_writable
from modeling_triaffine.training.run import prepare_run, train_and_save
from tests.helpers.faults import RECORDS, assert_same_weights
from tests.helpers.micro_training import micro_records, micro_trainer, task_arguments, write_lines, write_task
from tests.helpers.processes import PATIENCE, start_script
from tests.helpers.tiny import tiny_model

# ---- The script, in processes of its own ----


TRAINING = {
    "max_steps": 9,
    "per_device_train_batch_size": 4,
    "eval_strategy": "steps",
    "eval_steps": 3,
    "save_strategy": "steps",
    "save_steps": 3,
    "logging_steps": 1,
    "learning_rate": 1e-2,
    "use_cpu": True,
    "disable_tqdm": True,
}


def limit_files(share: Callable[[int, int], int]) -> Callable[[NestedNERTrainer], None]:
    """No file may grow beyond a size: `share` of that of the weights and of the optimizer's state in a checkpoint."""
    import resource

    def at_save(trainer: NestedNERTrainer) -> None:
        checkpoint, *_ = list_checkpoints(trainer.args.output_dir)
        sizes = [(checkpoint / name).stat().st_size for name in ("model.safetensors", "optimizer.pt")]
        resource.setrlimit(resource.RLIMIT_FSIZE, (share(*sizes), resource.RLIM_INFINITY))

    return at_save


def before_second_checkpoint(act: Callable[[NestedNERTrainer], None]) -> None:
    original, calls = NestedNERTrainer._save_checkpoint, []

    def save(self, model, trial):
        calls.append(1)
        if len(calls) == 2:
            act(self)
        original(self, model, trial)

    NestedNERTrainer._save_checkpoint = save


def before_the_model(act: Callable[[NestedNERTrainer], None]) -> None:
    original = NestedNERTrainer.save_model

    def save(self, *arguments, **options):
        if not arguments and not options:
            act(self)
        original(self, *arguments, **options)

    NestedNERTrainer.save_model = save


def break_program() -> None:
    def predict(*_arguments, **_options):
        raise KeyError("an error of the program")

    NestedNERTrainer.predict = predict


def break_fifth_loss() -> None:
    original, calls = NestedNERTrainer.compute_loss, []

    def compute_loss(self, model, *arguments, **options):
        loss = original(self, model, *arguments, **options)
        if not model.training:  # an evaluation, which computes the loss, too
            return loss
        calls.append(1)
        return loss * (float("nan") if len(calls) == 5 else 1)

    NestedNERTrainer.compute_loss = compute_loss


FAULTS: dict[str, tuple[Callable[[], None], str]] = {
    "loss": (break_fifth_loss, r"The loss of update 5 is nan"),
    "weights": (
        lambda: before_second_checkpoint(limit_files(lambda weights, _optimizer: weights // 2)),
        r"could not be written to .*File too large",
    ),
    "optimizer": (
        lambda: before_second_checkpoint(limit_files(lambda weights, optimizer: (weights + optimizer) // 2)),
        r"could not be written to ",
    ),
    "model": (
        lambda: before_the_model(limit_files(lambda weights, _optimizer: weights // 2)),
        r"could not be written to .*File too large",
    ),
}


def introduce(fault: str) -> None:
    FAULTS[fault][0]()


def script(options: Iterable[object], prepare: Callable[[], None] | None, errors: Path) -> tuple[int | None, str]:
    """Exit code of the script and its standard error."""
    process = start_script(options, errors, prepare)
    process.join(PATIENCE)
    return process.exitcode, errors.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("faults"), TRAINING, micro_records(24, seed=1), micro_records(6, seed=2))


@pytest.fixture(scope="module")
def uninterrupted(corpus: Path) -> Path:
    folder = corpus.parent / "uninterrupted"
    options = task_arguments(corpus, folder, "--resume_from_checkpoint")
    code, printed = script(options, None, corpus.parent / "errors.txt")
    assert code == 0, printed
    assert "checkpoint" not in printed  # a fresh run needs none
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of resources")
@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=[pytest.mark.nightly] if fault == "weights" else []) for fault in FAULTS]
)
def test_the_script_explains_a_fault_and_can_be_resumed(tmp_path, corpus, uninterrupted, fault, capfd) -> None:
    options = task_arguments(corpus, tmp_path / "out")
    code, printed = script(options, partial(introduce, fault), tmp_path / "errors.txt")
    assert code == 2, printed
    assert "Traceback" not in printed
    (paragraph,) = (line for line in printed.splitlines() if line.startswith("error: "))
    assert printed.rstrip().endswith(paragraph)
    assert re.search(FAULTS[fault][1], paragraph)
    latest = find_checkpoint("latest", tmp_path / "out")
    assert latest is not None
    TriaffineForNestedNER.from_pretrained(latest)

    code, printed = script([*options, "--resume_from_checkpoint"], None, tmp_path / "errors.txt")
    assert code == 0, printed
    assert "Resuming from" in printed
    assert_same_weights(*(load_file(folder / "model.safetensors") for folder in (tmp_path / "out", uninterrupted)))


def test_the_script_shows_where_the_program_is_wrong(tmp_path, corpus) -> None:
    code, printed = script(task_arguments(corpus, tmp_path / "out"), break_program, tmp_path / "errors.txt")
    assert code == 1
    assert "Traceback" in printed
    assert "KeyError: 'an error of the program'" in printed


# ---- Folders and checkpoints ----


def test_a_folder_that_cannot_be_written_to_is_an_error_before_anything_is_done(tmp_path, corpus) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below", file / "far" / "below"):
        with pytest.raises(OSError, match=r"--output_dir .* cannot be written to .*file is a file"):
            prepare_run(task_arguments(corpus, folder))
    if Path("/proc/self").exists():
        with pytest.raises(OSError, match=r"/proc/outputs cannot be written to"):
            check_writable("/proc/outputs")
    trainer = micro_trainer(tmp_path / "out", RECORDS)
    trainer.args.output_dir = str(file / "below")
    with pytest.raises(TrainingFault, match="cannot be written to"):
        trainer.train()
    check_writable(tmp_path / "new" / "folder")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "out"}
    assert list((tmp_path / "out").iterdir()) == []


# ---- Loading ----


def test_weights_that_are_no_numbers_are_named_when_they_are_loaded(encoder, tmp_path) -> None:
    tiny_model(encoder).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    for name, value in (("head.label_bias", float("nan")), ("encoder.embeddings.word_embeddings.weight", float("inf"))):
        broken = {**weights, name: weights[name].clone()}
        broken[name].flatten()[-1] = value
        save_file(broken, path, metadata={"format": "pt"})
        for load in (TriaffineForNestedNER.from_pretrained, AutoModel.from_pretrained):
            with pytest.raises(ValueError, match=rf"hold numbers that are not finite .* in {name}, so"):
                load(tmp_path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_large_weights_are_loaded_in_every_precision(encoder, tmp_path, dtype) -> None:
    model = tiny_model(encoder)
    model.encoder.embeddings.word_embeddings.weight.data.fill_(60000)
    model.save_pretrained(tmp_path)
    loaded = TriaffineForNestedNER.from_pretrained(tmp_path, dtype=dtype)
    assert loaded.encoder.embeddings.word_embeddings.weight.dtype == dtype


def test_loading_by_device_map_looks_only_at_weights_that_are_there(encoder, tmp_path) -> None:
    tiny_model(encoder).save_pretrained(tmp_path)
    for device in ("cpu", "meta"):
        model = TriaffineForNestedNER.from_pretrained(tmp_path, device_map={"": device})
        assert {weight.device.type for weight in model.parameters()} == {device}


def test_an_encoder_with_weights_that_are_no_numbers_is_refused(encoder, tmp_path) -> None:
    broken = AutoModel.from_pretrained(encoder)
    broken.encoder.layer[0].output.dense.bias.data[0] = float("nan")
    broken.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"not finite .* in encoder\.layer\.0\.output\.dense\.bias"):
        TriaffineForNestedNER.from_encoder(str(tmp_path), id2label={0: "x", 1: "None"})


def test_labels_that_a_checkpoint_does_not_know_are_an_error_in_a_resumed_run(tmp_path, corpus, uninterrupted) -> None:
    records = micro_records(6)
    records[2]["entities"][0]["type"] = "virus"
    file = write_lines(tmp_path / "other.jsonl", records)
    other = ["--train_file", file, "--validation_file", file]
    resumed = task_arguments(corpus, uninterrupted, "--resume_from_checkpoint", *other)
    with pytest.raises(ValueError, match=r"data has entities of type virus \(the first in sentence '2'\)"):
        prepare_run(resumed)


# ---- Settings ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_train_epochs": 0}, "num_train_epochs is 0 and max_steps -1, so there is nothing to train"),
        ({"num_train_epochs": -1}, "num_train_epochs is -1"),
        ({"num_train_epochs": float("nan")}, "num_train_epochs is nan"),
        ({"per_device_train_batch_size": 0}, "per_device_train_batch_size is 0; it must be at least 1"),
        ({"per_device_eval_batch_size": -4}, "per_device_eval_batch_size is -4"),
        ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps is 0"),
        ({"learning_rate": -1e-3}, "^learning_rate is -0.001; it must be at least 0"),
        ({"encoder_learning_rate": float("nan")}, "encoder_learning_rate is nan"),
        ({"embeddings_learning_rate": float("inf")}, "embeddings_learning_rate is inf"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1"),
        ({"weight_decay": "small"}, "weight_decay is 'small'; it must be a number"),
        ({"max_grad_norm": -1}, "max_grad_norm is -1"),
        ({"warmup_steps": -1}, "warmup_steps is -1"),
        ({"adam_beta2": 1.0}, "adam_beta2 is 1; it must be at least 0 and below 1"),
        ({"dataloader_num_workers": -1}, "dataloader_num_workers is -1"),
        ({"eval_steps": 5}, "eval_steps is 5, but eval_strategy is 'epoch'. Set .* 'steps', or leave eval_steps out"),
        ({"eval_strategy": "no", "save_steps": 5}, "save_steps is 5, but save_strategy is 'epoch'"),
        ({"eval_strategy": "steps", "eval_steps": 3, "save_steps": 6}, "eval_steps is 3 and save_steps 6, .* alike"),
        ({"save_strategy": "no"}, "eval_strategy is 'epoch' and save_strategy 'no', .*--no_load_best_model_at_end"),
        ({"dataloader_persistent_workers": True}, "but dataloader_num_workers is 0, so there are none"),
        ({"seed": -1}, "seed is -1"),
        ({"data_seed": -5}, "data_seed is -5"),
        ({"max_subwords_per_batch": 0}, "max_subwords_per_batch is 0; it must be at least 1"),
        ({"max_subwords_per_batch": 9, "train_sampling_strategy": "random"}, "'group_by_length'"),
        ({"max_subwords_per_batch": 9, "auto_find_batch_size": True}, "leave out one of the two"),
        ({"ema_decay": 0.9, "optim": "schedule_free_sgd"}, "which schedule_free_sgd does itself; leave out one"),
    ],
)
def test_numbers_out_of_bounds_are_refused(tmp_path, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        NestedNERTrainingArguments(str(tmp_path), use_cpu=True, **options)


def test_numbers_at_their_bounds_are_accepted(tmp_path) -> None:
    options = {"encoder_learning_rate": 0, "num_train_epochs": 0, "max_steps": 5, "warmup_steps": 0.5}
    assert NestedNERTrainingArguments(str(tmp_path), use_cpu=True, **options).max_steps == 5


# ---- The end of a run ----


@pytest.mark.parametrize(("option", "value"), [("--max_steps", 3), ("--num_train_epochs", 1)])
def test_a_model_without_predictions_is_warned_of(tmp_path, corpus, caplog, option, value) -> None:
    options = ("--learning_rate", 0, "--encoder_learning_rate", 0, option, value)
    run = prepare_run(task_arguments(corpus, tmp_path / "out", *options))
    run.trainer.model.head.label_bias.data[-1] = 50.0  # None, whatever else is scored
    train_and_save(run)
    [message] = [record.getMessage() for record in caplog.records if "no entity" in record.getMessage()]
    assert f"{run.trainer.state.global_step} updates are too few. Raise {option} or" in message


def test_sentences_without_entities_are_named_where_hardly_any_has_one(tmp_path, caplog) -> None:
    empty = [{**micro_records(1)[0], "tokens": ["the", "of"], "entities": []} for _ in range(200)]
    one = {**micro_records(1)[0], "tokens": ["alpha", "gene"], "entities": [{"start": 0, "end": 1, "type": "protein"}]}
    train = [{key: value for key, value in record.items() if key != "id"} for record in (one, *empty)]
    corpus = write_task(tmp_path, TRAINING, train, [one])
    run = prepare_run(task_arguments(corpus, tmp_path / "out", "--max_steps", 1))
    run.trainer.model.head.label_bias.data[-1] = 50.0  # None, whatever else is scored
    train_and_save(run)
    [message] = [record.getMessage() for record in caplog.records if "predicts no entity" in record.getMessage()]
    assert "only 1 of the 201 training sentences have an entity, 1 entities in all. Annotate more" in message
    assert "updates" not in message
