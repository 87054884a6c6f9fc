"""A trained model goes on with new labels, and keeps those that the new data does not annotate."""

import json
import logging
import runpy
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from modeling_triaffine import DataCollatorForNestedNER, TriaffineConfig
from modeling_triaffine.evaluation.prediction import predict_words
from modeling_triaffine.model.span_head_triaffine import smooth_boundaries
from modeling_triaffine.training.new_labels import START_BELOW, Teacher, extend_labels, span_probabilities
from modeling_triaffine.training.run import prepare_run, score, train_and_save
from tests.helpers.factors import FACTORS, WITHOUT_WORDS, fields_of
from tests.helpers.faults import assert_same_weights
from tests.helpers.micro_training import REPOSITORY, micro_records, write_corpus
from tests.helpers.tiny import tiny_model, tiny_processor

RECORDS = [{"tokens": ["The", "gene", "binds", "DNA"]}, {"tokens": ["protein"]}]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"triaffine_rank": 3},
        {"share_triaffine": False},
        *(fields_of(*pair) for pair in [*FACTORS[1:], *WITHOUT_WORDS]),
        {"multi_label": True, "triaffine_rank": 3},
        *({"multi_label": True, **fields_of(*pair)} for pair in [*FACTORS, *WITHOUT_WORDS]),
    ],
    ids=str,
)
def test_a_model_finds_the_same_with_new_labels(encoder, fields):
    model, processor = tiny_model(encoder, **fields), tiny_processor(encoder)
    for bias in (value for name, value in model.named_parameters() if name.endswith("label_bias")):
        bias.data[-1] += 3 if model.config.multi_label else -3  # so that something is found
    extended = extend_labels(model, ["RNA", "virus"])
    assert extended.config.entity_labels == ["DNA", "protein", "RNA", "virus"]
    assert extended.training == model.training
    batch = processor.pad(processor.encode([record["tokens"] for record in RECORDS]))
    with torch.no_grad():
        before, after = model(**batch).span_logits, extended(**batch).span_logits
    columns = [0, 1] if model.config.multi_label else [0, 1, 4]
    torch.testing.assert_close(after[..., columns], before, rtol=1e-4, atol=1e-5)
    spans = before[..., 0] > -1e3
    of_none = torch.zeros_like(before[..., 0]) if model.config.multi_label else before[..., -1]
    lower = of_none[spans] - START_BELOW
    torch.testing.assert_close(after[..., 2:4][spans], torch.stack([lower, lower], dim=-1), rtol=1e-4, atol=1e-5)
    old, new = (
        [[(one["start"], one["end"], one["type"]) for one in found] for found in predict_words(one, processor, RECORDS)]
        for one in (model, extended)
    )
    assert any(old)
    assert old == new


@pytest.mark.parametrize("rank", [None, 3])
def test_a_new_label_among_several_on_a_span_learns_by_its_tensor(encoder, rank):
    """Although its scores begin with 0."""
    model, processor = tiny_model(encoder, multi_label=True, triaffine_rank=rank), tiny_processor(encoder)
    extended = extend_labels(model, ["RNA"])
    batch = processor.pad(processor.encode([RECORDS[0]["tokens"]]))
    labels = torch.zeros(1, 4, 4, 3, dtype=torch.long)
    labels[0, 1, 1, 2] = 1
    extended(**batch, labels=labels).loss.backward()
    tensor = extended.head.scoring.triaffine
    weights = tensor.weight if rank is None else tensor.head
    assert not weights[2].any()
    assert weights.grad[2].any()


def test_new_labels_leave_the_candidates(encoder):
    """Although spans that are clearly None have the likeliest new labels."""
    model, processor = tiny_model(encoder), tiny_processor(encoder)
    model.head.label_bias.data[-1] += 5
    batch = processor.pad(processor.encode([["The", "gene", "binds", "DNA", "of", "a", "protein"]]))
    with torch.no_grad():
        before, after = model(**batch), extend_labels(model, ["RNA"])(**batch)
    assert torch.equal(after.candidates, before.candidates)
    torch.testing.assert_close(after.logits[..., [0, 1, 3]], before.logits, rtol=1e-4, atol=1e-5)


def inputs_and_output(teacher, student, processor):
    """A batch for the student, and what the teacher says of it."""
    (feature,) = processor.encode([["a", "b"]])
    feature["entities"] = [{"start": 0, "end": 1, "type": student.config.entity_labels[-1]}]
    config = student.config
    inputs = DataCollatorForNestedNER(processor, config.label2id, multi_label=config.multi_label)([feature])
    with torch.no_grad():
        output = teacher.eval()(**{name: value for name, value in inputs.items() if name != "labels"})
    return inputs, output


@pytest.mark.parametrize("multi_label", [False, True])
def test_half_of_each_target_is_the_probability_of_a_teacher_of_the_same_labels(encoder, multi_label):
    teacher, student = (tiny_model(encoder, multi_label=multi_label) for _ in range(2))
    inputs, output = inputs_and_output(teacher, student, tiny_processor(encoder))
    own = smooth_boundaries(inputs["labels"], 3, student.config.boundary_smoothing, 1)
    theirs = span_probabilities(output, multi_label)[..., : own.shape[-1]]
    torch.testing.assert_close(Teacher(teacher, student).targets(inputs), (own + theirs) / 2)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_teacher_shares_out_what_the_data_says_of_none(encoder, multi_label, smoothing):
    teacher, processor = tiny_model(encoder, multi_label=multi_label), tiny_processor(encoder)
    teacher.head.label_bias.data[-1] -= 3  # so that entities are likely
    student = extend_labels(teacher, ["RNA"])
    student.config.boundary_smoothing = smoothing
    inputs, output = inputs_and_output(teacher, student, processor)
    likely = span_probabilities(output, multi_label)[0]
    targets = Teacher(teacher, student, ["DNA", "protein"]).targets(inputs)[0]
    own = smooth_boundaries(inputs["labels"], 4, smoothing, 1)[0]
    label2id = student.config.label2id
    torch.testing.assert_close(targets[..., label2id["RNA"]], own[..., label2id["RNA"]])
    for span in [(0, 0), (0, 1), (1, 1)]:
        kept = likely[span][[teacher.config.label2id["DNA"], teacher.config.label2id["protein"]]]
        assert kept.min() > 1e-3
        if multi_label:
            torch.testing.assert_close(targets[span][:2], kept)
        else:
            torch.testing.assert_close(targets[span][:2], kept * own[span][-1])
            torch.testing.assert_close(targets[span].sum(), torch.tensor(1.0))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """As of the micro model, but with proteins only; every second one is a virus."""
    splits = {"train": micro_records(6, 0), "dev": micro_records(6, 1)}
    for record in (*splits["train"], *splits["dev"]):
        proteins = [entity for entity in record["entities"] if entity["type"] == "protein"]
        for entity in proteins[::2]:
            entity["type"] = "virus"
        record["entities"] = proteins
    return write_corpus(tmp_path / "corpus", **splits)


@pytest.fixture
def options(saved_model, corpus, tmp_path):
    given = {"model_name_or_path": saved_model, "train_file": corpus, "output_dir": tmp_path / "out"}
    given |= {"num_train_epochs": 1, "disable_tqdm": 1, "card_examples": 0}
    return ["--use_cpu", *(str(part) for name, value in given.items() for part in (f"--{name}", value))]


def test_training_goes_on_with_new_labels_and_warns_of_those_that_are_gone(options, tmp_path, caplog, monkeypatch):
    caplog.set_level(logging.WARNING)
    more = ["--keep_labels", "--eval_strategy", "no", "--save_strategy", "no"]
    monkeypatch.setattr("sys.argv", ["train.py", *options, *more])
    runpy.run_path(str(REPOSITORY / "examples" / "train.py"), run_name="__main__")
    assert "no entity of the model's labels DNA: these are learned from the model's own predictions" in caplog.text
    config = TriaffineConfig.from_pretrained(tmp_path / "out")
    assert config.entity_labels == ["DNA", "protein", "virus"]
    summary = json.loads((tmp_path / "out" / "run_summary.json").read_text())
    assert summary["label_counts"]["DNA"] == 0
    assert summary["evaluation"]["unscored"] == ["DNA"]
    assert "Predictions of `DNA` do not count" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("is_annotated", [False, True])
def test_predictions_of_kept_labels_are_scored_where_the_data_annotates_them(options, monkeypatch, is_annotated):
    """The best checkpoint would otherwise be the one that forgets them."""
    run = prepare_run([*options, "--keep_labels"])
    kept = {"start": 0, "end": 1, "type": "DNA"}
    records = run.trainer.eval_dataset
    predictions = [[*entities, kept] for entities in records["entities"]]
    if is_annotated:
        records = records.map(lambda record, row: {"entities": predictions[row][row > 0 :]}, with_indices=True)
    monkeypatch.setattr(run.trainer, "_predict_rows", lambda _: ([(entities, []) for entities in predictions], 0.5))
    output = run.trainer.predict(records, metric_key_prefix="eval")
    assert output.predictions == predictions
    assert (output.metrics["eval_f1"] == 1) == (not is_annotated)
    run.corpus.given["validation"] = records
    evaluation = score(run, "validation", {})
    assert evaluation.scores["f1"] == output.metrics["eval_f1"]
    assert evaluation.unscored == ([] if is_annotated else ["DNA"])


def test_with_keep_labels_the_probabilities_of_old_labels_are_learned(options):
    run = prepare_run([*options, "--keep_labels"])
    trainer = run.trainer
    inputs = next(iter(trainer.get_train_dataloader()))
    trainer.model.eval()
    with torch.no_grad():
        loss = trainer.compute_loss(trainer.model, inputs)
        expected = trainer.model(**inputs, targets=trainer.teacher.targets(inputs)).loss
        plain = trainer.model(**inputs).loss
    torch.testing.assert_close(loss, expected)
    assert abs(loss - plain) > 1e-3
    assert prepare_run(options).trainer.teacher is None


def test_a_resumed_training_has_the_teacher_of_the_interrupted_one(options, tmp_path):
    """The teacher is the model that training started from, not that of the checkpoint."""
    given = [*options, "--keep_labels", "--no_do_eval", "--eval_strategy", "no", "--no_load_best_model_at_end"]
    given += ["--save_strategy", "steps", "--save_steps", "1", "--per_device_train_batch_size", "3"]
    train_and_save(prepare_run([*given, "--save_total_limit", "9"]))
    out = tmp_path / "out"
    expected = load_file(out / "model.safetensors")
    shutil.copytree(out / "checkpoint-1", tmp_path / "again" / "checkpoint-1")
    options[options.index(str(out))] = str(tmp_path / "again")
    resumed = prepare_run([*options, *given[len(options) :], "--resume_from_checkpoint"])
    train_and_save(resumed)
    assert resumed.trainer.run_summary.resumed
    assert_same_weights(load_file(tmp_path / "again" / "model.safetensors"), expected)


def test_a_teacher_fits_the_new_model(options, saved_model, encoder, tmp_path):
    options += ["--model_name_or_path", encoder, "--eval_strategy", "no"]
    with pytest.raises(ValueError, match="--keep_labels"):
        prepare_run([*options, "--keep_labels"])
    with pytest.raises(ValueError, match=r"--teacher.*'DNA', 'protein'.*'protein', 'virus'"):
        prepare_run([*options, "--teacher", str(saved_model)])
    train_and_save(prepare_run(options))
    teacher = shutil.move(tmp_path / "out", tmp_path / "teacher")
    run = prepare_run([*options, "--teacher", str(teacher)])
    assert run.trainer.teacher.kept == ()
    assert "teacher" not in run.trainer.describe_settings(run.plan)  # a folder of this machine
    run.lock.close()
    config = json.loads((teacher / "config.json").read_text())
    for name, value in {"max_span_width": 2, "max_subwords": 60}.items():
        (teacher / "config.json").write_text(json.dumps({**config, name: value}))
        with pytest.raises(ValueError, match=f"has {name} {value}, and the new model"):
            prepare_run([*options, "--teacher", str(teacher)])
