"""Faults in training, saving and loading: each is told in one paragraph, and nothing broken is taken for a whole.

The faults are real ones: numbers that overflow, an allocation beyond all memory, files that the system does not take,
files that are cut off. What the script says of them it says in processes of its own.
"""

import json
import multiprocessing
import os
import runpy
import shutil
import socket
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

import datasets
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, TrainerCallback

from modeling_triaffine import NestedNERTrainer, TriaffineForNestedNER
from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.batching import RECORD_IDS, RecordCollator
from modeling_triaffine.training.checkpoints import list_checkpoints
from modeling_triaffine.training.faults import FAILED_UPDATE_FILE, TrainingFault, check_writable
from modeling_triaffine.training.run import prepare_run, train_and_save
from tests.micro_training import REPOSITORY, micro_records, micro_trainer, write_lines, write_recipe
from tests.tiny import tiny_model

# 2 epochs of 6 batches.
RECORDS = micro_records(12, seed=4)
UPDATES = {"num_train_epochs": 2, "per_device_train_batch_size": 2, "save_strategy": "steps", "save_steps": 1}
UPDATES["save_total_limit"] = 99


def failing_at_batch(number: int, fail: Callable) -> Callable:
    """A forward hook of the model that lets `fail(output)` happen at its `number`-th batch."""
    batches = 0

    def hook(_module, _inputs, output):
        nonlocal batches
        batches += 1
        if batches == number:
            fail(output)

    return hook


def make_loss_nan(output) -> None:
    output.loss = output.loss * float("nan")


def take_all_memory(_output) -> None:
    torch.empty(2**60, dtype=torch.uint8)


def failed_update(folder: Path) -> dict:
    return json.loads((folder / FAILED_UPDATE_FILE).read_text(encoding="utf-8"))


def ids_of_update(trainer: NestedNERTrainer, update: int, accumulation: int) -> list[list[str]]:
    """The ids of the records in each batch of an update, as the sampler cuts them."""
    sampler = trainer.get_train_dataloader().batch_sampler
    in_an_epoch = len(sampler) // accumulation
    epoch, place = divmod(update - 1, in_an_epoch)
    sampler.set_epoch(epoch)
    batches = list(sampler)[place * accumulation : (place + 1) * accumulation]
    return [[trainer.train_dataset[row]["id"] for row in batch] for batch in batches]


def assert_same_weights(weights: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert set(weights) == set(expected)
    for name, values in expected.items():
        assert torch.equal(weights[name], values), name


# ---- Numbers ----


@pytest.mark.parametrize(("accumulation", "workers"), [(1, 0), (2, 2)], ids=["single", "accumulated with workers"])
def test_a_loss_that_is_no_number_ends_training_before_the_update(tmp_path, accumulation, workers) -> None:
    options = {**UPDATES, "gradient_accumulation_steps": accumulation, "dataloader_num_workers": workers}
    uninterrupted = micro_trainer(tmp_path / "whole", RECORDS, **options)
    uninterrupted.train()

    trainer = micro_trainer(tmp_path / "out", RECORDS, **options)
    trainer.model.register_forward_hook(failing_at_batch(4 * accumulation - 1, make_loss_nan))
    broken = 4 if accumulation > 1 else 3
    with pytest.raises(FloatingPointError) as caught:
        trainer.train()
    message = str(caught.value)
    assert f"The loss of update {broken} is nan" in message
    assert "All weights are finite" in message
    assert str(tmp_path / "out" / FAILED_UPDATE_FILE) in message
    assert f"checkpoint-{broken - 1}: resume_from_checkpoint" in message
    report = failed_update(tmp_path / "out")
    ids = ids_of_update(trainer, broken, accumulation)
    assert (report["update"], report["broken_weights"]) == (broken, [])
    assert [batch["sentences"] for batch in report["batches"]] == ids
    assert [batch["loss"] == "nan" for batch in report["batches"]] == [True, False][:accumulation]
    assert [path.name for path in list_checkpoints(tmp_path / "out")][-1] == f"checkpoint-{broken - 1}"
    assert_same_weights(
        trainer.model.state_dict(), load_file(tmp_path / f"out/checkpoint-{broken - 1}/model.safetensors")
    )

    resumed = micro_trainer(tmp_path / "out", RECORDS, **options)
    resumed.train(resume_from_checkpoint=True)
    assert_same_weights(resumed.model.state_dict(), uninterrupted.model.state_dict())


class BreakGradients(TrainerCallback):
    def __init__(self, update: int):
        self.update = update

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        if state.global_step + 1 == self.update:
            model.head.label_bias.grad.fill_(float("inf"))


def test_an_update_that_broke_the_weights_is_named_by_the_next(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, **{**UPDATES, "save_steps": 2})
    trainer.add_callback(BreakGradients(3))
    with pytest.raises(FloatingPointError, match=r"loss of update 4 is nan.*Update 3, .*broke.*weight head.label_bias"):
        trainer.train()
    report = failed_update(tmp_path)
    assert (report["update"], report["broken_weights"]) == (3, ["head.label_bias"])
    assert [batch["sentences"] for batch in report["batches"]] == ids_of_update(trainer, 3, 1)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["checkpoint-2"]


def test_broken_weights_are_not_saved(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, **UPDATES)
    trainer.add_callback(BreakGradients(3))
    with pytest.raises(FloatingPointError, match=r"checkpoint of update 3 is not saved: the weight head\.label_bias"):
        trainer.train()
    assert failed_update(tmp_path)["update"] == 3
    assert [path.name for path in list_checkpoints(tmp_path)] == ["checkpoint-1", "checkpoint-2"]
    with pytest.raises(FloatingPointError, match=r"The model is not saved"):
        trainer.save_model()
    assert not (tmp_path / "config.json").exists()


def test_remedies_are_those_of_the_settings(tmp_path, monkeypatch) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, max_grad_norm=0)
    trainer.model.register_forward_hook(failing_at_batch(1, make_loss_nan))
    monkeypatch.setattr(type(trainer.accelerator), "mixed_precision", "fp16")
    with pytest.raises(FloatingPointError, match=r"or bf16 instead of fp16, or max_grad_norm to clip the gradients\."):
        trainer.train()


def test_a_model_that_was_broken_from_the_start_is_told(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.head.label_bias.data.fill_(float("nan"))
    with pytest.raises(
        FloatingPointError, match=r"update 1 is nan.*started with is broken: the weight head\.label_bias"
    ):
        trainer.train()
    assert not (tmp_path / FAILED_UPDATE_FILE).exists()


def test_a_record_without_an_id_is_named_by_its_words(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS)
    collate = RecordCollator(trainer.processing_class, trainer.data_collator, with_ids=True)
    record = {"tokens": ["the", "alpha", "gene"], "entities": []}
    assert collate([record, {**record, "id": "7"}])[RECORD_IDS] == ["the alpha gene", "7"]
    assert RECORD_IDS not in next(iter(trainer.get_eval_dataloader(trainer.train_dataset)))


# ---- Two processes ----


def train_in_process(rank: int, port: int, folder: Path) -> None:
    """One of two processes; the loss of the second is no number in update 3."""
    torch.set_num_threads(1)
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in names.items()}, MASTER_ADDR="127.0.0.1")
    trainer = micro_trainer(folder, RECORDS, **UPDATES)
    if rank == 1:
        trainer.model.register_forward_hook(failing_at_batch(3, make_loss_nan))
    try:
        trainer.train()
    except FloatingPointError as error:
        (folder / f"{rank}.txt").write_text(str(error))


def test_of_two_processes_both_end_where_one_loss_is_no_number(tmp_path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [new_process(train_in_process, rank, port, tmp_path) for rank in range(2)]
    for process in processes:
        process.join(timeout=120)
    told = [(tmp_path / f"{rank}.txt").read_text() for rank in range(2)]
    assert told[0] == told[1]
    assert "The loss of update 3 is nan" in told[0]
    batches = failed_update(tmp_path)["batches"]
    assert [batch["loss"] == "nan" for batch in batches] == [False, True]
    ids = [name for batch in batches for name in batch["sentences"]]
    assert len(set(ids)) == 4
    assert [path.name for path in list_checkpoints(tmp_path)] == ["checkpoint-1", "checkpoint-2"]


# ---- Memory ----


def test_memory_that_runs_out_is_told_with_what_needs_less(tmp_path) -> None:
    options = {"per_device_train_batch_size": 4}
    trainer = micro_trainer(tmp_path, RECORDS, config={"triaffine_rank": None}, **options)
    trainer.model.register_forward_hook(failing_at_batch(2, take_all_memory))
    with pytest.raises(TrainingFault) as caught:
        trainer.train()
    message = str(caught.value)
    assert isinstance(caught.value, RuntimeError)
    assert "Memory ran out in training, at a batch of 4 sentences of up to" in message
    assert "DefaultCPUAllocator: can't allocate memory" in message
    for option in ("max_subwords_per_batch", "per_device_train_batch_size below 4", "gradient_accumulation_steps"):
        assert option in message
    for option in ("triaffine_rank", "save_memory", "gradient_checkpointing", "bf16"):
        assert option in message


def test_what_is_done_already_is_not_advised(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, gradient_checkpointing=True, per_device_train_batch_size=1)
    trainer.model.register_forward_hook(failing_at_batch(1, take_all_memory))
    with pytest.raises(TrainingFault, match=r"What needs less: bf16\.$"):
        trainer.train()


def test_memory_that_runs_out_in_evaluation_is_told(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.register_forward_hook(failing_at_batch(1, take_all_memory))
    with pytest.raises(TrainingFault, match=r"Memory ran out in evaluation, at a batch of \d+ sentences"):
        trainer.evaluate(trainer.train_dataset)


def test_memory_of_a_gpu_is_told_by_its_first_sentences(tmp_path) -> None:
    def fail(_output):
        raise torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.1 GiB "
            "is free. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF."
        )

    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.register_forward_hook(failing_at_batch(1, fail))
    with pytest.raises(
        TrainingFault, match=r"\(CUDA out of memory\. Tried to allocate 2\.00 GiB\)\. What needs less: "
    ):
        trainer.train()


def test_a_process_other_than_the_first_tells_its_own_faults(tmp_path, monkeypatch, caplog) -> None:
    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.register_forward_hook(failing_at_batch(1, take_all_memory))
    monkeypatch.setattr(NestedNERTrainingArguments, "process_index", 1)
    with pytest.raises(TrainingFault):
        trainer.train()
    assert "Process 1: Memory ran out in training" in caplog.text


def test_smaller_batches_are_found_where_memory_runs_out(tmp_path) -> None:
    trainer = micro_trainer(tmp_path, RECORDS, per_device_train_batch_size=8, auto_find_batch_size=True)

    def too_large(_module, _inputs, options, _output) -> None:
        if len(options["num_words"]) > 4:
            take_all_memory(None)

    trainer.model.register_forward_hook(too_large, with_kwargs=True)
    trainer.train()
    assert trainer.state.train_batch_size <= 4
    assert trainer.state.global_step == 3


def test_errors_of_the_program_are_not_dressed_up(tmp_path) -> None:
    def fail(_output):
        raise RuntimeError("sizes do not match")

    trainer = micro_trainer(tmp_path, RECORDS)
    trainer.model.register_forward_hook(failing_at_batch(1, fail))
    with pytest.raises(RuntimeError, match=r"^sizes do not match$") as caught:
        trainer.train()
    assert not isinstance(caught.value, TrainingFault)


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
        [checkpoint] = list_checkpoints(trainer.args.output_dir)
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
        if self._staging is None:
            act(self)
        original(self, *arguments, **options)

    NestedNERTrainer.save_model = save


def break_program() -> None:
    def predict(*_arguments, **_options):
        raise KeyError("an error of the program")

    NestedNERTrainer.predict = predict


def break_fifth_loss() -> None:
    original, calls = NestedNERTrainer.compute_loss, []

    def compute_loss(self, *arguments, **options):
        calls.append(1)
        return original(self, *arguments, **options) * (float("nan") if len(calls) == 5 else 1)

    NestedNERTrainer.compute_loss = compute_loss


FAULTS: dict[str, tuple[Callable[[], None], str]] = {
    "loss": (break_fifth_loss, r"The loss of update 5 is nan"),
    "weights": (
        lambda: before_second_checkpoint(limit_files(lambda weights, _optimizer: weights // 2)),
        r"The checkpoint of update 6 could not be written to .*File too large",
    ),
    "optimizer": (
        lambda: before_second_checkpoint(limit_files(lambda weights, optimizer: (weights + optimizer) // 2)),
        r"The checkpoint of update 6 could not be written to .*not all of it was taken",
    ),
    "model": (
        lambda: before_the_model(limit_files(lambda weights, _optimizer: weights // 2)),
        r"The finished model could not be written to .*File too large",
    ),
}


def new_process(function: Callable, *arguments: object) -> multiprocessing.Process:
    """A process forked from a server that has imported everything already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=function, args=arguments)
    process.start()
    return process


def run_script(options: list[str], fault: str | None, errors: Path) -> None:
    """What a process of its own does: examples/train.py, its standard error in a file."""
    torch.set_num_threads(1)
    datasets.config.HF_DATASETS_CACHE = errors.parent / "cache"
    os.dup2(os.open(errors, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 2)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    if fault == "program":
        break_program()
    elif fault is not None:
        FAULTS[fault][0]()
    sys.argv = ["train.py", *options]
    try:
        runpy.run_path(str(REPOSITORY / "examples" / "train.py"), run_name="__main__")
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    finally:
        sys.stderr.flush()


def script(options: Iterable[object], fault: str | None, errors: Path) -> tuple[int | None, str]:
    """Exit code of the script and what it told on standard error."""
    process = new_process(run_script, [*map(str, options)], fault, errors)
    process.join(timeout=120)
    return process.exitcode, errors.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults") / "corpus"
    folder.mkdir()
    write_lines(folder / "train.jsonl", micro_records(24, seed=1))
    write_lines(folder / "dev.jsonl", micro_records(6, seed=2))
    write_recipe(folder.parent / "recipe", training=TRAINING)
    return folder


def options_of_run(corpus: Path, output_dir: Path) -> list[object]:
    return ["--recipe", corpus.parent / "recipe", "--train_file", corpus, "--output_dir", output_dir]


@pytest.fixture(scope="module")
def uninterrupted(corpus: Path) -> Path:
    folder = corpus.parent / "uninterrupted"
    code, told = script(options_of_run(corpus, folder), None, corpus.parent / "errors.txt")
    assert code == 0, told
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of resources")
@pytest.mark.parametrize("fault", FAULTS)
def test_the_script_tells_a_fault_and_goes_on_afterwards(tmp_path, corpus, uninterrupted, fault, capfd) -> None:
    options = options_of_run(corpus, tmp_path / "out")
    code, told = script(options, fault, tmp_path / "errors.txt")
    assert code == 2, told
    assert "Traceback" not in told
    (paragraph,) = (line for line in told.splitlines() if line.startswith("error: "))
    assert told.rstrip().endswith(paragraph)
    assert_matches(FAULTS[fault][1], paragraph)
    whole = list_checkpoints(tmp_path / "out")
    assert whole[-1].name in paragraph
    for checkpoint in whole:
        TriaffineForNestedNER.from_pretrained(checkpoint)
    left = {path.name for path in (tmp_path / "out").iterdir()} - {path.name for path in whole}
    assert left == ({FAILED_UPDATE_FILE} if fault == "loss" else set())

    code, told = script([*options, "--resume_from_checkpoint"], None, tmp_path / "errors.txt")
    assert code == 0, told
    assert_same_weights(*(load_file(folder / "model.safetensors") for folder in (tmp_path / "out", uninterrupted)))


def assert_matches(pattern: str, text: str) -> None:
    with pytest.raises(AssertionError, match=pattern):
        raise AssertionError(text)


def test_the_script_shows_where_the_program_is_wrong(tmp_path, corpus) -> None:
    code, told = script(options_of_run(corpus, tmp_path / "out"), "program", tmp_path / "errors.txt")
    assert code == 1
    assert "Traceback" in told
    assert "KeyError: 'an error of the program'" in told


# ---- Folders and checkpoints ----


def test_a_folder_that_cannot_be_written_to_is_told_before_anything_is_done(tmp_path, corpus) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below", file / "far" / "below"):
        with pytest.raises(OSError, match=r"--output_dir .* cannot be written to .*file is a file"):
            prepare_run([*map(str, options_of_run(corpus, folder))])
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


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.fixture(scope="module")
def checkpointed(tmp_path_factory) -> Path:
    """A folder with the checkpoints of two updates."""
    folder = tmp_path_factory.mktemp("checkpointed")
    micro_trainer(folder, RECORDS[:4], **{**UPDATES, "num_train_epochs": 1}).train()
    return folder


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("optimizer.pt", cut_off),
        ("optimizer.pt", flip_a_byte),
        ("scheduler.pt", cut_off),
        ("rng_state.pth", flip_a_byte),
        ("trainer_state.json", cut_off),
        ("model.safetensors", cut_off),
    ],
)
def test_training_does_not_go_on_from_a_damaged_checkpoint(tmp_path, checkpointed, name, damage) -> None:
    folder = shutil.copytree(checkpointed, tmp_path / "out")
    damage(folder / "checkpoint-2" / name)
    trainer = micro_trainer(folder, RECORDS[:4], **UPDATES)
    with pytest.raises(ValueError, match=rf"checkpoint-2 is damaged or cut off \({name}: .*from another.*checkpoint-1"):
        trainer.train(resume_from_checkpoint=True)
    shutil.rmtree(folder / "checkpoint-2")
    trainer.train(resume_from_checkpoint=True)


def test_a_damaged_checkpoint_is_told_before_anything_is_loaded(corpus, tmp_path, uninterrupted) -> None:
    folder = shutil.copytree(uninterrupted, tmp_path / "out")
    checkpoint = list_checkpoints(folder)[-1]
    cut_off(checkpoint / "optimizer.pt")
    options = [*options_of_run(corpus, folder), "--resume_from_checkpoint"]
    with pytest.raises(ValueError, match=rf"{checkpoint.name} is damaged"):
        prepare_run([*map(str, options)])


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
            with pytest.raises(ValueError, match=rf"hold numbers that are not finite .* in {name}:"):
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


def test_labels_that_the_model_does_not_know_are_told_when_it_goes_on(tmp_path, corpus, uninterrupted) -> None:
    records = micro_records(6)
    records[2]["entities"][0]["type"] = "virus"
    file = write_lines(tmp_path / "other.jsonl", records)
    other = ["--train_file", file, "--validation_file", file]
    scored = ["--model_name_or_path", uninterrupted, "--output_dir", tmp_path / "scored", "--do_train", "False"]
    resumed = [*options_of_run(corpus, uninterrupted), "--resume_from_checkpoint"]
    for options in ([*scored, *other], [*resumed, *other]):
        with pytest.raises(ValueError, match=r"data has entities of type virus \(the first in sentence '2'\)"):
            prepare_run([*map(str, options)])


def test_a_checkpoint_without_its_vocabulary_is_told(tmp_path, corpus) -> None:
    folder = tmp_path / "out"
    options = [*options_of_run(corpus, folder), "--char_embedding_size", "4", "--char_lstm_hidden_size", "4"]
    options += ["--max_steps", "3"]
    train_and_save(prepare_run([*map(str, options)]))
    (folder / "checkpoint-3" / "vocabularies.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"checkpoint-3 has no vocabularies\.json"):
        prepare_run([*map(str, options), "--resume_from_checkpoint"])


# ---- Settings ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_train_epochs": 0}, "num_train_epochs is 0 and max_steps -1, so there is nothing to train"),
        ({"num_train_epochs": -1}, "num_train_epochs is -1"),
        ({"num_train_epochs": float("nan")}, "num_train_epochs is nan"),
        ({"per_device_train_batch_size": 0}, "per_device_train_batch_size is 0; the least is 1"),
        ({"per_device_eval_batch_size": -4}, "per_device_eval_batch_size is -4"),
        ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps is 0"),
        ({"learning_rate": -1e-3}, "^learning_rate is -0.001; give a number of 0 or more"),
        ({"encoder_learning_rate": float("nan")}, "encoder_learning_rate is nan"),
        ({"embeddings_learning_rate": float("inf")}, "embeddings_learning_rate is inf"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1"),
        ({"max_grad_norm": -1}, "max_grad_norm is -1"),
        ({"warmup_steps": -1}, "warmup_steps is -1"),
        ({"warmup_steps": 1.5}, "warmup_steps is 1.5; give a whole number"),
        ({"warmup_steps": 10, "max_steps": 10}, "warmup_steps is 10, but the training has 10 updates"),
        ({"adam_beta2": 1.0}, "adam_beta2 is 1; it must be at least 0 and below 1"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_numbers_without_sense_are_refused(tmp_path, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        NestedNERTrainingArguments(str(tmp_path), use_cpu=True, **options)


def test_numbers_with_sense_are_taken(tmp_path) -> None:
    options = {"encoder_learning_rate": 0, "num_train_epochs": 0, "max_steps": 5, "warmup_steps": 0.5}
    assert NestedNERTrainingArguments(str(tmp_path), use_cpu=True, **options).max_steps == 5


# ---- The end of a run ----


def test_a_model_that_marks_nothing_is_told(tmp_path, corpus, caplog) -> None:
    options = [*options_of_run(corpus, tmp_path / "out"), "--learning_rate", "0", "--encoder_learning_rate", "0"]
    run = prepare_run([*map(str, options), "--max_steps", "3"])
    run.trainer.model.head.label_bias.data[-1] = 50.0  # None, whatever else is scored
    train_and_save(run)
    told = [record.message for record in caplog.records if "marks no entity" in record.message]
    assert told == [
        "The model marks no entity in the validation data: 3 updates were too few; raise --num_train_epochs, or the "
        "learning rates."
    ]
