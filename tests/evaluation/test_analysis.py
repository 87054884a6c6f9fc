"""Analyses of a model: candidates, comparison of two models, all of them together, the report and the command."""

import html
import json
import re
from itertools import product

import numpy as np
import pytest
import torch

from modeling_triaffine.data.collator import encode_records
from modeling_triaffine.evaluation.analysis import (
    MOST_EXAMPLES,
    NamedModel,
    analyse,
    html_report,
    summarize,
    write_report,
)
from modeling_triaffine.evaluation.error_analysis import error_examples
from modeling_triaffine.evaluation.prediction import predict_words, sweep_candidates
from modeling_triaffine.evaluation.scores import Counts, Scores, percentages
from modeling_triaffine.evaluation.scoring import score_entities
from modeling_triaffine.evaluation.significance import paired_bootstrap
from modeling_triaffine.model.decoding_triaffine import find_entities
from tests.helpers.micro_training import micro_dataset
from tests.helpers.portable import near
from tests.helpers.scored import entities
from tests.helpers.tiny import tiny_model, tiny_processor

# A model that finds something.
FINDS = {"seed": 3, "max_candidates": 6, "triaffine_init_std": 3.0}
HOSTILE = "<script>alert(1)</script> | `x` & $y$"


def make_records(hostile=""):
    sentences = [
        (
            ["The", "IL2", "gene", "binds", "protein", "!"],
            entities((1, 3, "DNA"), (1, 2, "protein"), (4, 5, "protein")),
        ),
        (["DNA"], entities((0, 1, "DNA"))),
        (["It", "works", hostile or "."], entities((0, 3, hostile)) if hostile else []),
        (["gene", "of", "the", "protein", "gene"], entities((0, 5, "DNA"), (3, 5, "DNA"), (3, 4, "RNA"))),
    ]
    return [
        {"id": f"s{number}", "doc_id": "d", "sent_id": number, "tokens": tokens, "pos": [], "entities": gold}
        for number, (tokens, gold) in enumerate(sentences)
    ]


@pytest.fixture
def model(encoder):
    return tiny_model(encoder, **FINDS)


@pytest.fixture(scope="module")
def processor(encoder):
    return tiny_processor(encoder)


@pytest.fixture(scope="module")
def analysis(encoder):
    """Of a corpus whose texts and types are full of markup, with another model."""
    subject, other = (
        NamedModel(name, tiny_model(encoder, **FINDS | {"seed": seed}), tiny_processor(encoder))
        for name, seed in ((HOSTILE, 3), ("other", 4))
    )
    corpus = micro_dataset(make_records(HOSTILE))
    return analyse(subject, corpus, "corpus, test", counts=[2, 6, 40], other=other)


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
            with torch.no_grad():
                output = model(**processor.pad(encode_records(processor, [record])))
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
    monkeypatch.delattr(type(model.head), "forward")
    with pytest.raises(NotImplementedError):
        sweep_candidates(model, processor, make_records(), counts=[1, 3])
    assert (model.config.max_candidates, model.training) == (6, True)


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


def test_bootstrap_of_equal_and_of_clearly_different_models():
    equal = paired_bootstrap(BETTER, BETTER, GOLD, samples=20)
    assert (equal["difference"], equal["interval"], equal["p_value"], equal["wins"]) == (0, [0, 0], 1, 0)
    there, back = (paired_bootstrap(*sides, GOLD, samples=50) for sides in ((BETTER, WORSE), (WORSE, BETTER)))
    assert there["interval"] == pytest.approx([-value for value in reversed(back["interval"])])
    assert (there["difference"], there["p_value"]) == (-back["difference"], back["p_value"])
    gold = [entities((0, 1, "LOC"))] * 30
    clear = paired_bootstrap(gold, [[] for _ in gold], gold, samples=99)
    assert (clear["difference"], clear["p_value"]) == (1.0, 1 / 100)  # p is small but not 0


# ---- the whole


def test_analysis_is_made_of_its_parts(analysis, encoder):
    records = make_records(HOSTILE)
    references = [record["entities"] for record in records]
    model, processor = tiny_model(encoder, **FINDS), tiny_processor(encoder)
    predictions = predict_words(model, processor, records)
    assert analysis["scores"] == score_entities(predictions, references, ["DNA", "protein"])
    assert analysis["scores"]["predicted"] > 0
    assert (analysis["sentences"], analysis["max_candidates"]) == (4, 6)
    assert analysis["unknown_labels"] == sorted(["RNA", HOSTILE])
    assert [row["candidates"] for row in analysis["candidates"]] == near(
        [row["candidates"] for row in sweep_candidates(model, processor, records, [2, 6, 40])]
    )
    assert analysis["examples"] == error_examples(predictions, records)
    others = predict_words(tiny_model(encoder, **FINDS | {"seed": 4}), processor, records)
    assert analysis["comparison"]["unknown_labels"] == analysis["unknown_labels"]
    assert analysis["comparison"]["scores"]["correct"] == score_entities(others, references)["correct"]
    assert analysis["comparison"]["bootstrap"] == paired_bootstrap(predictions, others, references)


def test_auxiliary_labels_are_neither_missing_nor_unknown(encoder, processor):
    labels = {0: "DNA", 1: "protein", 2: "RNA", 3: "None"}
    model = tiny_model(encoder, id2label=labels, auxiliary_labels=["RNA"])
    analysis = analyse(NamedModel("m", model, processor), micro_dataset(make_records()), "c", counts=[6])
    assert analysis["unknown_labels"] == []
    assert list(analysis["scores"]["by_label"]) == ["DNA", "protein"]
    assert analysis["scores"]["gold"] == 6


# ---- the report


def text_of(page):
    return html.unescape(re.sub(r"(?s)<style>.*?</style>|<[^>]*>", "", page))


def cells_of(page, first):
    """The cells of the rows that begin with a cell."""
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>.*?</tr>", page)]
    return [row[1:] for row in rows if row[:1] == [first]]


def test_page_is_closed_in_itself_and_shows_markup_as_text(analysis):
    page = html_report(analysis)
    assert not re.search(r"<script|<link|<img|url\(|\s(src|href|srcset|data)=", page)
    assert page.count("<svg ") == page.count("</svg>") == 4
    assert HOSTILE in text_of(page)
    for part in ("by label", "by length", "by depth", "Errors", "Sentences with errors", "Candidates", "Comparison"):
        assert part in text_of(page)


def test_numbers_of_the_report(analysis):
    page = html_report(analysis)
    scores, comparison = analysis["scores"]["by_label"]["DNA"], analysis["comparison"]
    ratios = [ratio or "–" for ratio in percentages(scores)]
    assert [*ratios, str(scores["predicted"]), str(scores["gold"])] in cells_of(page, "DNA")
    assert f"p = {comparison['bootstrap']['p_value']:.4f}" in page
    assert f"by {100 * comparison['bootstrap']['difference']:+.2f}".replace("-", "−") in page
    assert f"{comparison['model']} cannot find entities of types that are not among its labels: " in page
    assert re.findall(r'<rect x="180" y="3" width="([\d.]+)"', page)[0] == str(round(400 * scores["f1"], 1))


def test_sentences_with_errors_are_drawn_and_their_errors_listed(analysis):
    gold = entities((0, 2, "ORG"), (1, 2, "LOC"))
    record = {"id": "s<7>", "tokens": ["the", "Oxav", "\u2028", "`[x]`"], "entities": gold}
    examples = error_examples([entities((0, 3, "ORG"), (1, 2, "LOC"), (3, 4, "LOC"))], [record])
    page = html_report({**analysis, "examples": examples})
    assert text_of(page).count("the Oxav \N{REPLACEMENT CHARACTER} `[x]`") == 2
    drawn = re.findall(r'<span class="entity[^>]* data-start="(\d+)" data-end="(\d+)" data-label="(\w+)"', page)
    assert drawn == [("0", "8", "ORG"), ("4", "8", "LOC"), ("0", "10", "ORG"), ("4", "8", "LOC"), ("11", "16", "LOC")]
    assert cells_of(page, "wrong boundary") == [["the Oxav (ORG)", "the Oxav \N{REPLACEMENT CHARACTER} (ORG)"]]
    assert cells_of(page, "spurious") == [["–", "`[x]` (LOC)"]]


def test_the_report_shows_some_sentences_with_errors_and_json_all(analysis, tmp_path):
    many = [{**analysis["examples"][0], "id": f"many-{n}"} for n in range(MOST_EXAMPLES + 3)]
    write_report({**analysis, "model": "a\ud800", "examples": many}, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.json"}
    page = (tmp_path / "report.html").read_text()
    assert f"23 of the 4 sentences have errors; the {MOST_EXAMPLES} with the most are shown" in page
    assert re.findall("<h3>(many-\\d+)", page) == [example["id"] for example in many[:MOST_EXAMPLES]]
    written = json.loads((tmp_path / "report.json").read_text())
    assert [example["id"] for example in written["examples"]] == [example["id"] for example in many]
    assert written["model"] == "a\ud800"
    assert written["errors"] == analysis["errors"]


def test_what_is_undefined_is_null_in_json_and_a_dash_in_tables(encoder, processor, tmp_path):
    corpus = micro_dataset([{**record, "entities": []} for record in make_records()])
    model = tiny_model(encoder, cross_span=False)
    model.head.label_bias.data[-1] = 1e3
    analysis = analyse(NamedModel("m", model, processor), corpus, "c")
    write_report(analysis, tmp_path)
    scores = json.loads((tmp_path / "report.json").read_text())["scores"]
    assert [scores[name] for name in ("precision", "recall", "f1", "predicted")] == [None, None, None, 0]
    assert scores["by_label"]["DNA"]["f1"] is scores["flat"]["precision"] is None
    assert (analysis["candidates"], analysis["max_candidates"]) == (None, None)
    page = html_report(analysis)
    assert "0 of the 0 entities in 4 sentences of c" in page
    assert not re.search("<h2[^>]*>(Sentences with errors|Candidates|Comparison)", page)
    assert "<rect" not in page
    with pytest.raises(ValueError, match="no cross-span stage"):
        analyse(NamedModel("m", model, processor), corpus, "c", counts=[5])


def test_the_summary_has_at_most_30_lines(analysis):
    labels = {f"label-{n}": Counts(n, n, n, 100).scores() for n in range(50)}
    names = [f"a very long name of a type, number {n}" for n in range(50)]
    many = {"scores": Scores({**analysis["scores"], "by_label": labels}), "unknown_labels": names}
    lines = summarize({**analysis, **many}).splitlines()
    assert len(lines) <= 30
    assert "The 10 labels with the most entities are shown, of 50." in lines
    errors = analysis["errors"]["by_gold_label"].values()
    assert f"missing {sum(row['missing'] for row in errors)}, spurious " in summarize(analysis)
