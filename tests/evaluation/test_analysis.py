"""Analyses of a model: candidates, cases, comparison of two models, all of them together, and the command."""

import importlib
import json
import re
import sys
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.commands.analyse import command as analyse_command
from modeling_triaffine.data.collator import encode_records
from modeling_triaffine.data.windows import Windows
from modeling_triaffine.evaluation import significance
from modeling_triaffine.evaluation.analysis import NamedModel, analyse
from modeling_triaffine.evaluation.cases import make_cases
from modeling_triaffine.evaluation.error_analysis import sentences_with_errors
from modeling_triaffine.evaluation.figures import draw_figures
from modeling_triaffine.evaluation.prediction import predict_words, sweep_candidates
from modeling_triaffine.evaluation.report import html_report, markdown_report
from modeling_triaffine.evaluation.scoring import score_entities
from modeling_triaffine.evaluation.significance import paired_bootstrap
from modeling_triaffine.model.decoding_triaffine import find_entities
from tests.helpers.analysed import FINDS, HOSTILE, make_records
from tests.helpers.micro_training import micro_dataset, write_lines
from tests.helpers.portable import near
from tests.helpers.scored import entities, sentences
from tests.helpers.tiny import tiny_model, tiny_processor


@pytest.fixture
def model(encoder):
    return tiny_model(encoder, **FINDS)


@pytest.fixture(scope="module")
def processor(encoder):
    return tiny_processor(encoder)


@torch.no_grad()
def run_alone(model, processor, record):
    return model(**processor.pad(encode_records(processor, [record])))


# ---- candidates


def test_each_number_of_candidates_is_as_if_the_model_had_it(model, processor):
    records = make_records()
    references = [record["entities"] for record in records]
    rows = sweep_candidates(model, processor, records, counts=[100, 2, 6, 2], batch_size=3)
    assert [row["max_candidates"] for row in rows] == [2, 6, 100]
    for row in rows:
        model.config.max_candidates = row["max_candidates"]
        predictions, found = [], 0
        for record in records:
            output = run_alone(model, processor, record)
            predictions += find_entities(output, model.config)
            kept = {(i, j + 1) for i, j in output.candidates[0].tolist()}
            found += sum((entity["start"], entity["end"]) in kept for entity in record["entities"])
        assert row["scores"] == score_entities(predictions, references)
        assert row["candidates"] == {"found": found, "gold": 7, "recall": found / 7}
    assert rows[0]["candidates"]["found"] < rows[-1]["candidates"]["found"] == 7
    assert rows[0]["scores"]["predicted"] != rows[-1]["scores"]["predicted"]


def test_the_model_is_left_as_it_was_whatever_happens(model, processor, monkeypatch):
    model.train()
    sweep_candidates(model, processor, make_records(), counts=[1, 3])
    assert (model.config.max_candidates, model.training) == (6, True)

    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr(type(model.head), "forward", fail)
    with pytest.raises(RuntimeError):
        sweep_candidates(model, processor, make_records(), counts=[1, 3])
    assert (model.config.max_candidates, model.training) == (6, True)


def test_sweeps_need_candidates(encoder, processor):
    with pytest.raises(ValueError, match="no cross-span stage"):
        sweep_candidates(tiny_model(encoder, cross_span=False), processor, make_records())


# ---- cases


@pytest.mark.parametrize(
    "fields", [{}, {"cross_span": False}, {"max_span_width": 2}], ids=["full", "no-cross-span", "narrow"]
)
def test_cases_have_the_scores_of_the_model(encoder, processor, fields):
    model = tiny_model(encoder, **FINDS | fields)
    names = model.config.id2label
    records = make_records()
    cases = make_cases(model, processor, records)
    assert [case.id for case in cases] == [record["id"] for record in records]
    for case, record in zip(cases, records, strict=True):
        output, words = run_alone(model, processor, record), record["tokens"]
        width = fields.get("max_span_width", len(words))
        spans = [(i, j) for i, j in product(range(len(words)), repeat=2) if i <= j]
        probability = {(i, j): output.span_logits[0, i, j].softmax(-1) for i, j in spans}
        ranked = sorted((span for span in spans if span[1] - span[0] < width), key=lambda s: -probability[s][:-1].max())
        final = {}
        if output.candidates is not None:
            final = {
                (i, j): logits.softmax(-1)
                for (i, j), logits in zip(output.candidates[0].tolist(), output.logits[0], strict=True)
            }
        gold = {(entity["start"], entity["end"] - 1) for entity in record["entities"]}
        found = {s for table in (probability, final) for s, row in table.items() if names[int(row.argmax())] != "None"}
        assert case.num_spans == len(ranked)
        assert [(span.start, span.end - 1) for span in case.spans] == sorted(gold | found, key=lambda s: (s[0], -s[1]))
        for span in case.spans:
            at = span.start, span.end - 1
            assert span.text == " ".join(words[span.start : span.end])
            assert span.gold == sorted(e["type"] for e in record["entities"] if (e["start"], e["end"] - 1) == at)
            assert span.label == names[int(probability[at].argmax())]
            assert span.probability == pytest.approx(probability[at].max().item(), rel=1e-5)
            assert span.rank == (ranked.index(at) + 1 if at in ranked else None)
            assert span.final_label == (names[int(final[at].argmax())] if at in final else None)
            assert span.final_probability == (pytest.approx(final[at].max().item(), rel=1e-5) if at in final else None)
    shown = [span for case in cases for span in case.spans]
    assert any(span.final_label is None for span in shown)
    assert any(span.rank is None for span in shown) == ("max_span_width" in fields)


def test_a_long_sentence_has_the_cases_of_its_windows(encoder):
    model, processor = tiny_model(encoder, **FINDS), tiny_processor(encoder, max_sentence_words=16)
    record = {**make_records()[0], "tokens": make_records()[0]["tokens"] * 9, "entities": []}
    cases = make_cases(model, processor, [record])
    windows = Windows([record], processor)
    assert [case.id for case in cases] == [window["id"] for window in windows]
    shown = [[{"start": span.start, "end": span.end} for span in case.spans] for case in cases]
    found = {(entity["start"], entity["end"]) for entity in predict_words(model, processor, [record])[0]}
    assert found
    assert found <= {(span["start"], span["end"]) for span in windows.join(shown)[0]}


# ---- comparison of two models

GOLD = [entities((0, 1, "LOC"), (2, 4, "ORG")), entities((0, 2, "LOC")), entities((1, 2, "ORG"))]
BETTER = [GOLD[0], GOLD[1], entities((0, 2, "ORG"))]
WORSE = [GOLD[0][:1], GOLD[1], []]


def test_bootstrap_is_that_of_all_samples():
    """With three sentences all 27 samples can be listed; 40,000 drawn ones come close to them."""
    sides = {"better": BETTER, "worse": WORSE}
    whole = score_entities(BETTER, GOLD)["f1"] - score_entities(WORSE, GOLD)["f1"]
    differences = []
    for rows in product(range(3), repeat=3):
        gold = [GOLD[row] for row in rows]
        f1 = {name: score_entities([side[row] for row in rows], gold)["f1"] for name, side in sides.items()}
        differences.append(f1["better"] - f1["worse"])
    drawn = paired_bootstrap(BETTER, WORSE, GOLD, samples=40_000)
    assert drawn["difference"] == pytest.approx(whole)
    assert drawn["wins"] == pytest.approx(np.mean(np.array(differences) > 0), abs=0.01)
    extreme = np.mean(np.abs(np.array(differences) - whole) >= abs(whole) - 1e-12)
    assert 0 < extreme < 1
    assert drawn["p_value"] == pytest.approx(extreme, abs=0.01)
    assert drawn["interval"] == pytest.approx([min(differences), max(differences)])  # 1 of 27 is 3.7 %


@given(st.lists(st.tuples(sentences, sentences, sentences), min_size=1, max_size=5))
def test_bootstrap_of_swapped_models_is_the_mirror_image(rows):
    first, second, gold = (list(side) for side in zip(*rows, strict=True))
    there = paired_bootstrap(first, second, gold, samples=50)
    back = paired_bootstrap(second, first, gold, samples=50)
    assert there["difference"] == pytest.approx(score_entities(first, gold)["f1"] - score_entities(second, gold)["f1"])
    assert there["difference"] == -back["difference"]
    assert there["interval"] == pytest.approx([-value for value in reversed(back["interval"])])
    assert there["p_value"] == back["p_value"]
    assert there["wins"] + back["wins"] <= 1


def test_bootstrap_depends_on_its_seed_alone(monkeypatch):
    whole = paired_bootstrap(BETTER, WORSE, GOLD, samples=500, seed=7)
    monkeypatch.setattr(significance, "_DRAWN_AT_ONCE", 100)
    assert paired_bootstrap(BETTER, WORSE, GOLD, samples=500, seed=7) == whole
    assert paired_bootstrap(BETTER, WORSE, GOLD, samples=500, seed=8) != whole


def test_bootstrap_of_equal_and_of_clearly_different_models():
    equal = paired_bootstrap(BETTER, BETTER, GOLD, samples=20)
    assert (equal["difference"], equal["interval"], equal["p_value"], equal["wins"]) == (0, [0, 0], 1, 0)
    gold = [entities((0, 1, "LOC"))] * 30
    clear = paired_bootstrap(gold, [[] for _ in gold], gold, samples=99)
    assert (clear["difference"], clear["p_value"]) == (1.0, 1 / 100)  # p is small but not 0


@pytest.mark.parametrize(
    "sides", [([[]], [[], []], [[]]), ([[], []], [[]], [[]])], ids=["other predictions", "predictions"]
)
def test_bootstrap_needs_the_same_sentences(sides):
    with pytest.raises(ValueError, match="predictions for 2 sentences and references for 1"):
        paired_bootstrap(*sides, samples=9)


# ---- the whole


def test_analysis_is_made_of_its_parts(analysis, encoder):
    records = make_records(HOSTILE)
    references = [record["entities"] for record in records]
    model, processor = tiny_model(encoder, **FINDS), tiny_processor(encoder)
    predictions = predict_words(model, processor, records)
    assert analysis.scores == score_entities(predictions, references, ["DNA", "protein"])
    assert analysis.scores["predicted"] > 0
    assert (analysis.sentences, analysis.max_candidates) == (4, 6)
    assert analysis.unknown_labels == sorted(["RNA", HOSTILE])
    assert analysis.candidates == near(sweep_candidates(model, processor, records, [2, 6, 40]))
    assert analysis.sentences_with_errors == sentences_with_errors(predictions, records)
    assert [case.id for case in analysis.cases] == ["s2", "s0"]
    others = predict_words(tiny_model(encoder, **FINDS | {"seed": 4}), processor, records)
    assert analysis.comparison.unknown_labels == analysis.unknown_labels
    assert analysis.comparison.scores == score_entities(others, references, ["DNA", "protein"])
    assert analysis.comparison.bootstrap == paired_bootstrap(predictions, others, references)


def test_unknown_sentences_are_named(model, processor):
    with pytest.raises(ValueError, match="no sentence 'x', 'y'; its 4 ids begin with 's0', 's1', 's2'"):
        analyse(NamedModel("m", model, processor), micro_dataset(make_records()), "c", sentences=["s1", "x", "y"])


def test_analysis_without_candidates_and_any_entity_has_a_report(encoder, processor):
    corpus = micro_dataset([{**record, "entities": []} for record in make_records()])
    model = tiny_model(encoder, cross_span=False)
    model.head.label_bias.data[-1] = 1e3
    analysis = analyse(NamedModel("m", model, processor), corpus, "c")
    assert analysis.scores["predicted"] == analysis.scores["gold"] == 0
    assert (analysis.candidates, analysis.max_candidates) == (None, None)
    text = markdown_report(analysis)
    assert "0 of the 0 entities in 4 sentences of c" in text
    assert not re.search("## (Sentences with errors|Candidates|Comparison|Cases)", text)
    assert "--lane-height" not in html_report(analysis, {})
    assert set(draw_figures(analysis)) == {"by_label.svg", "by_label.png"}
    with pytest.raises(ValueError, match="no cross-span stage"):
        analyse(NamedModel("m", model, processor), corpus, "c", counts=[5])


# ---- the command


@pytest.fixture
def run(saved_model, command, tmp_path):
    """Runs the command on a corpus."""
    path = tmp_path / "dev.jsonl"
    write_lines(path, make_records())
    always = ["--model", saved_model, "--split", "train", "--candidates", "3", "6"]
    return lambda *options: command("analyse", path, *always, *options)


def test_command_prints_tables_and_writes_the_report(run, saved_model, tmp_path):
    output = tmp_path / "new" / "report"
    options = "--compare", saved_model, "--sentences", "s0", "--output", output
    result = run(*options)
    assert result.code == 0, result.err
    assert result.out.startswith("# Analysis of ")
    assert "**s0: The IL2 gene binds protein !**" in result.out
    written = json.loads((output / "report.json").read_text())
    assert [row["max_candidates"] for row in written["candidates"]] == [3, 6]
    assert written["comparison"]["bootstrap"]["p_value"] == 1
    assert (output / "report.html").read_text().startswith("<!doctype html>")
    assert (output / "candidates.png").exists()
    again = run(*options)
    assert again.code == 2
    assert f"{output} exists" in again.err


def test_command_without_matplotlib(run, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "modeling_triaffine.evaluation.figures", raising=False)
    for name in ("matplotlib", "matplotlib.axes"):
        monkeypatch.setitem(sys.modules, name, None)
    assert run().code == 0
    output = tmp_path / "report"
    refused = run("--output", output)
    assert (refused.code, refused.out) == (2, "")  # before the model runs
    assert "pip install -e '.[plot]'" in refused.err
    assert not output.exists()
    assert run("--output", output, "--no-figures").code == 0
    assert {path.name for path in output.iterdir()} == {"report.html", "report.md", "report.json"}
    monkeypatch.undo()
    importlib.import_module("modeling_triaffine.evaluation.figures")


def test_the_report_is_written_where_its_tables_are_not_read_to_the_end(run, saved_model, tmp_path, monkeypatch):
    """As by `triaffine-ner analyse … | head`."""

    def fail(_):
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", fail)
    options = {"corpus": str(tmp_path / "dev.jsonl"), "split": "train", "candidates": [3], "no_figures": True}
    with pytest.raises(BrokenPipeError):
        analyse_command(str(saved_model), **options, output=tmp_path / "report")
    assert (tmp_path / "report" / "report.html").exists()


def test_command_leaves_no_half_written_report(run, tmp_path, monkeypatch):
    def fail(analysis, folder, figures):
        (folder / "report.html").write_text("half")
        raise OSError("the disk is full")

    monkeypatch.setattr("modeling_triaffine.evaluation.report.write_report", fail)
    result = run("--output", tmp_path / "report", "--no-figures")
    assert result.code == 2
    assert result.out.startswith("# Analysis of ")
    assert "the disk is full" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["dev.jsonl"]
