"""Whole runs of `triaffine-ner train`: start, mistakes, and what is left behind."""

import json
import shutil
import unicodedata
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from transformers import AutoModel, AutoProcessor

from modeling_triaffine.publishing.model_card import build_model_card, repository_name
from modeling_triaffine.publishing.run_summary import SUMMARY_FILE, Epoch, RunSummary
from modeling_triaffine.training.run import Run, choose_sentences, prepare_run, train_and_save
from modeling_triaffine.training.start import learn_tokenizer
from modeling_triaffine.training.trainer import read_training_table
from tests.helpers.cards import cells, epoch_scores, section
from tests.helpers.corpora import entity, write_json
from tests.helpers.faults import assert_same_weights
from tests.helpers.micro_training import micro_records, run_arguments, write_corpus, write_recipe


@pytest.fixture
def micro_corpus(tmp_path: Path) -> Path:
    train = micro_records(24, 0)
    return write_corpus(tmp_path / "corpus", train=train, dev=[*micro_records(6, 1), *train], test=micro_records(6, 2))


@pytest.fixture
def prepare(tmp_path: Path, micro_corpus: Path):
    """Prepares a run into the folder `out`, by a recipe with this training."""

    def prepare(*options: object, **training: object) -> Run:
        recipe = write_recipe(tmp_path / "recipe", training=training)
        options = ("--use_cpu", "--disable_tqdm", 1, *options)
        return prepare_run(run_arguments(recipe, micro_corpus, tmp_path / "out", *options))

    return prepare


def test_the_same_sentences_give_the_same_tokenizer() -> None:
    sentences = [*(record["tokens"] for record in micro_records(50)), *[["crème", "brûlée"]] * 30]
    first, second = (learn_tokenizer(sentences, vocab_size=280).backend_tokenizer.to_str() for _ in range(2))
    assert first == second
    decomposed = [[unicodedata.normalize("NFD", word) for word in words] for words in sentences]
    assert learn_tokenizer(decomposed, vocab_size=280).backend_tokenizer.to_str() == first
    tokenizer = learn_tokenizer(sentences, vocab_size=280)
    assert len(tokenizer) == 280
    known = tokenizer(["gene", "Ωmega-3"], is_split_into_words=True)["input_ids"]
    assert tokenizer.unk_token_id not in known
    assert tokenizer.decode(known, skip_special_tokens=True).strip() == "gene Ωmega-3"


def test_a_run_leaves_a_model_that_loads_and_nothing_unfinished(tmp_path: Path, prepare) -> None:
    rates = dict.fromkeys(("learning_rate", "encoder_learning_rate", "embeddings_learning_rate"), 1e-2)
    steps = {"num_train_epochs": 6, "per_device_train_batch_size": 4, "logging_steps": 6, "max_grad_norm": 1.0}
    output_dir = tmp_path / "my model"
    run = prepare("--output_dir", output_dir, "--do_predict", **rates, **steps, dataset_name="micro")
    metrics = train_and_save(run)
    assert json.loads((output_dir / "all_results.json").read_text(encoding="utf-8")) == metrics
    summary = RunSummary.load(output_dir)
    assert summary.is_trained
    assert summary.training_seconds == metrics["train_runtime"]
    written = (output_dir / SUMMARY_FILE).read_text(encoding="utf-8")
    assert not any(str(private) in written for private in (tmp_path, Path.home()))
    scores = summary.evaluation.scores
    assert (summary.evaluation.split, summary.evaluation.sentences) == ("test", 6)
    for ratio in ("precision", "recall", "f1"):
        assert scores[ratio] == metrics[f"test_{ratio}"]
    assert 0 < scores["f1"] < 1, "no difference would be seen"
    assert scores["by_label"]["DNA"]["f1"] == metrics["test_f1_DNA"]
    assert sum(row["gold"] for row in summary.evaluation.by_length.values()) == scores["gold"]
    candidates = summary.evaluation.candidate_recall
    assert (candidates["recall"], candidates["gold"]) == (metrics["test_candidate_recall"], scores["gold"])
    (kept,) = (row for row in summary.training_table if row.kept)
    expected = [metrics["eval_loss"], metrics["eval_f1"]]
    assert [kept.validation_loss, kept.scores["f1"]] == pytest.approx(expected, rel=1e-5)
    card = build_model_card(run.trainer.model.config, model_name=repository_name(output_dir), summary=summary)
    assert (output_dir / "README.md").read_text(encoding="utf-8") == str(card)
    assert (summary.dataset, summary.recipe, summary.from_scratch) == ("micro", "recipe", True)
    assert summary.settings["learning_rate"] == 1e-2
    assert summary.settings["triaffine_rank"] == 4
    assert [row.epoch for row in summary.training_table] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert all(row.training_loss > 0 for row in summary.training_table)
    assert sum(summary.label_counts.values()) == sum(map(len, run.corpus.to_train_on["train"]["entities"]))
    assert len(summary.examples) == 3
    assert {one.text for one in summary.examples}.isdisjoint(map(" ".join, run.corpus.given["train"]["tokens"]))
    for split in ("validation", "test"):
        predictions = [json.loads(line) for line in (output_dir / f"{split}_predictions.jsonl").open(encoding="utf-8")]
        assert [record["id"] for record in predictions] == list(run.corpus.to_train_on[split]["id"])
    assert not list(output_dir.rglob("training_args.bin"))

    assert_same_weights(AutoModel.from_pretrained(output_dir).state_dict(), run.trainer.model.state_dict())
    processor = AutoProcessor.from_pretrained(output_dir)
    sentence = [["the", "alpha", "gene"]]
    expected = run.trainer.processing_class(words=sentence)["input_ids"]
    assert torch.equal(processor(words=sentence)["input_ids"], expected)


def test_a_finished_run_is_not_overwritten_and_its_model_keeps_its_sizes(tmp_path, micro_corpus, prepare):
    folder, sizes = tmp_path / "out", "--char_embedding_size 4 --char_lstm_hidden_size 4"
    metrics = train_and_save(prepare(*f"{sizes} --num_train_epochs 1 --card_examples 0 --cross_span false".split()))
    summary = RunSummary.load(folder)
    assert summary.examples == []
    assert (summary.evaluation.split, summary.evaluation.candidate_recall) == ("validation", None)
    assert summary.evaluation.scores["f1"] == metrics["eval_f1"]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert not any(word in card for word in ("kappa", "alpha gene", "beta gene", "widget:"))
    for checkpoint in folder.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)
    for more in ((), ("--resume_from_checkpoint",)):
        with pytest.raises(ValueError, match=r"out has \S+ of an earlier run\. "):
            prepare(*more)
    (folder / "all_results.json").unlink()  # as if killed before it had saved everything
    assert prepare("--resume_from_checkpoint").plan.training.resume_from_checkpoint is None
    further = ["--model_name_or_path", folder, "--train_file", micro_corpus, "--output_dir", tmp_path / "other"]
    prepare_run([*map(str, further), "--use_cpu", "--recipe", "demo"])  # whose sizes are for new models
    for option, problem in {"--triaffine_dim": "is 9, but .* trained with 8", "--word_vectors": "without any"}.items():
        with pytest.raises(ValueError, match=problem):
            prepare_run([*map(str, further), "--use_cpu", option, "9"])


def without_entities(corpus: Path) -> list[str]:
    records = [{**record, "entities": []} for record in micro_records(3)]
    return ["--train_file", str(write_json(corpus.parent / "bare.jsonl", *records)), "--eval_strategy", "no"]


MISTAKES = {
    "no entities": (without_entities, r"training data has no entities.*--train_file"),
    "encoder": (["--model_name_or_path", "{corpus}/none"], "/none"),
    "file": (["--train_file", "{corpus}/nothing.jsonl"], r"nothing\.jsonl"),
    "validation": (["--train_file", "{corpus}/train.jsonl"], r"There is no validation data.*--dev_share 0\.1"),
    "threshold": (["--train_file", "{corpus}/train.jsonl", "--eval_strategy=no", "--calibrate_threshold"], "calibrate"),
    "checkpoint": (["--resume_from_checkpoint", "{corpus}"], r"is not a complete checkpoint"),
    "attention": (["--attention", "nonesuch"], r"attention is 'nonesuch'; choose one of"),
}


@pytest.mark.parametrize(("mistake", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_noticed_before_training(micro_corpus: Path, prepare, mistake, message: str) -> None:
    options = mistake(micro_corpus) if callable(mistake) else [part.format(corpus=micro_corpus) for part in mistake]
    with pytest.raises((ValueError, OSError), match=message):
        prepare(*options)


@pytest.mark.parametrize("lacking", ["config.json", "model.safetensors", "tokenizer"])
def test_a_folder_with_a_part_of_an_encoder_is_refused_before_texts_are_read(tmp_path, encoder, prepare, lacking):
    shutil.copytree(encoder, tmp_path / "part", ignore=shutil.ignore_patterns(f"{lacking}*"))
    with pytest.raises((ValueError, OSError), match=f"part has no {lacking}"):
        prepare("--model_name_or_path", tmp_path / "part", "--train_file", tmp_path / "nothing.jsonl")


def test_labels_are_those_of_all_data_although_few_sentences_are_trained_on(tmp_path: Path, prepare, caplog) -> None:
    records = micro_records(6)
    records[0]["entities"] = records[0]["entities"][:1]
    train = write_json(tmp_path / "few.jsonl", *records)
    records[1]["entities"][0]["type"] = "virus"
    other = write_json(tmp_path / "other.jsonl", *records)
    run = prepare("--max_train_samples", 1, "--train_file", train, "--validation_file", other, "--max_candidates", 1)
    assert "The validation data has types of entities that are not learned, but missed: virus (1)." in caplog.text
    assert "beyond the 1 candidates" in caplog.text
    assert run.trainer.model.config.entity_labels == ["DNA", "protein", "virus"]
    assert len(run.trainer.train_dataset) == 1


def test_spans_are_as_wide_as_entities_in_training(micro_corpus: Path, prepare, caplog) -> None:
    lines = (micro_corpus / "train.jsonl").read_text(encoding="utf-8").splitlines()
    widest = max(entity["end"] - entity["start"] for line in lines for entity in json.loads(line)["entities"])
    for given, width in (((), widest), (("--max_span_width", "1"), 1)):
        assert prepare("--learn_span_width", *given).trainer.model.config.max_span_width == width
    assert "of more than 1 words (--max_span_width)" in caplog.text


def test_flat_annotation_leaves_spans_out_of_the_training_loss(prepare) -> None:
    run = prepare("--flat_annotation", "outermost")
    record = {"tokens": ["beta", "gene"], "entities": [{"start": 0, "end": 2, "type": "DNA"}]}
    processor = run.trainer.processing_class
    batch = run.trainer.data_collator([{**processor.encode([record["tokens"]])[0], "entities": record["entities"]}])
    assert batch["labels"].tolist() == [[[-100, run.trainer.model.config.label2id["DNA"]], [-100, -100]]]


def test_a_run_is_scored_on_given_words_and_on_raw_text(tmp_path: Path, prepare, caplog) -> None:
    """The words of the corpus have a hyphen that raw text is cut at."""
    blank = "_\t" * 7
    tokens, misc = ["the", "alpha-gene", "works", "."], ["_", "Entity=(1-DNA)", "SpaceAfter=No", "_"]
    rows = [f"{n}\t{word}\t{blank}{value}\n" for n, (word, value) in enumerate(zip(tokens, misc, strict=True), 1)]
    corpus = tmp_path / "a.conllu"
    corpus.write_text(8 * ("".join(rows) + "\n"), encoding="utf-8")
    options = ("--train_file", corpus, "--validation_file", corpus, "--test_file", corpus, "--do_predict")
    run = prepare(*options, num_train_epochs=1, card_examples=0)
    assert run.trainer.train_dataset[0]["tokens"] == ["the", "alpha", "-", "gene", "works", "."]
    with caplog.at_level("INFO", logger="modeling_triaffine"):
        metrics = train_and_save(run)
    assert {f"{split}_raw_text_{kind}f1" for split in ("eval", "test") for kind in ("", "flat_")} <= set(metrics)
    for kind in ("given words", "raw text"):
        assert any(message.startswith(f"Scores on the test data, {kind}") for message in caplog.messages)
    predicted = json.loads((tmp_path / "out" / "test_predictions.jsonl").read_text().splitlines()[0])
    assert predicted["tokens"] == tokens
    summary = RunSummary.load(tmp_path / "out")
    assert summary.evaluation.raw_text["gold"] == summary.evaluation.scores["gold"] == 8
    assert summary.settings["words"] == "text"
    card = ModelCard.load(tmp_path / "out" / "README.md")
    assert [row[0] for row in cells(section(card, "Raw text", "###"))] == ["given words", "raw text"]


def test_progress_and_scores_are_logged(tmp_path: Path, prepare, caplog, capfd) -> None:
    with caplog.at_level("INFO", logger="modeling_triaffine"):
        run = prepare("--data_format", "json_lines", num_train_epochs=2)
        metrics = train_and_save(run)
    history = [row for row in run.trainer.state.log_history if "eval_f1" in row]
    lines = [line for line in caplog.messages if line.startswith("Update") and ": precision " in line]
    assert [line.split(":")[0] for line in lines] == ["Update 3 of 6, epoch 1", "Update 6 of 6, epoch 2"]
    for line, row in zip(lines, history, strict=True):
        assert f"F1 {100 * row['eval_f1']:.1f}, flat F1 " in line
    assert any(line.startswith("Update 6 of 6, epoch 2: training loss ") for line in caplog.messages)
    saved, steps = caplog.messages[-2:]
    assert saved.startswith(f"Saved in {tmp_path / 'out'}. Validation data: ")
    assert f"F1 {100 * metrics['eval_f1']:.1f}" in saved
    assert [line.split()[1::4] for line in steps.splitlines()[1:]] == [["predict"], ["evaluate", "--format"], ["page"]]
    assert "it/s" not in capfd.readouterr().err  # no bars where there is no terminal


def test_a_run_without_validation_data_holds_some_out(tmp_path: Path, prepare, caplog) -> None:
    lines = [{**record, "doc_id": str(number // 2)} for number, record in enumerate(micro_records(24))]
    train = write_json(tmp_path / "documents.jsonl", *lines)
    run = prepare("--train_file", train, "--dev_share", "0.25", "--format", "json_lines", num_train_epochs=1)
    with caplog.at_level("INFO", logger="modeling_triaffine"):
        train_and_save(run)
    assert "evaluate" not in caplog.messages[-1]  # which would score training sentences
    assert RunSummary.load(tmp_path / "out").settings["dev_share"] == 0.25


RECORDS = [
    {"tokens": ["IL", "-", "2", "binds", "IL"], "entities": [entity(0, 3, "protein")]},
    {"tokens": ["the", "(", "IL", ")", "gene"], "entities": [entity(1, 5, "DNA"), entity(2, 3, "protein")]},
    {"tokens": ["IL"], "entities": [entity(0, 1, "protein")]},
    {"tokens": ["long"] * 30, "entities": [entity(0, end, "protein") for end in range(14, 20)]},
]


def log_entry(epoch: float, step: int, **scores: float) -> dict[str, float]:
    return {**{f"eval_{name}": value for name, value in scores.items()}, "epoch": epoch, "step": step}


def test_training_table_from_the_log():
    log = [
        {"loss": 3.0, "epoch": 0.3, "step": 3},
        {"loss": 2.0, "epoch": 0.9, "step": 9},
        log_entry(1.0, 10, loss=1.5, **epoch_scores(0.1, 0.2, 0.3, 0.4, 0.5), f1_DNA=0.6),
        {"loss": 1.0, "epoch": 1.8, "step": 18},
        log_entry(2.0, 20, loss=0.9),
        log_entry(2.50004, 25, loss=0.8, f1=0.9),
        {"train_runtime": 5.0, "train_loss": 1.0, "epoch": 3.0, "step": 30},
    ]
    nothing = dict.fromkeys(epoch_scores(0.0))
    assert read_training_table(log, kept_step=25) == [
        Epoch(1.0, 2.5, 1.5, False, 10, epoch_scores(0.1, 0.2, 0.3, 0.4, 0.5)),
        Epoch(2.0, 1.0, 0.9, False, 20, nothing),
        Epoch(2.5, None, 0.8, True, 25, {**nothing, "f1": 0.9}),
    ]


def test_sentences_of_a_card_nest_and_fit_into_a_line():
    assert choose_sentences(RECORDS, 2) == ["the (IL) gene", "IL - 2 binds IL"]
