"""Analyses of a model: comparison of two models, the whole, the report and its summary."""

import html
import json
import re
from itertools import product

import numpy as np
import pytest

from modeling_triaffine.evaluation.analysis import analyse, html_report, paired_bootstrap, summarize, write_report
from modeling_triaffine.evaluation.prediction import predict_words
from modeling_triaffine.evaluation.scores import Counts, Scores, error_examples, percentages, score_entities
from tests.evaluation.test_scores import entities
from tests.helpers.micro_training import micro_dataset
from tests.helpers.tiny import tiny_model, tiny_pipeline, tiny_processor

FINDS = {"max_candidates": 6, "triaffine_init_std": 3.0}  # a model that finds something
HOSTILE = "<script>alert(1)</script> | `x` & $y$"


def make_records(hostile=""):
    sentences = [
        (["The", "IL2", "gene", "binds", "protein", "!"], entities((1, 3, "DNA"), (1, 2, "protein"))),
        (["It", "works", hostile or "."], entities((0, 3, hostile)) if hostile else []),
        (["gene", "of", "the", "protein", "gene"], entities((0, 5, "DNA"), (3, 5, "DNA"), (3, 4, "RNA"))),
    ]
    return [
        {"id": f"s{number}", "doc_id": "d", "sent_id": number, "tokens": tokens, "pos": [], "entities": gold}
        for number, (tokens, gold) in enumerate(sentences)
    ]


@pytest.fixture(scope="module")
def analysis(encoder):
    """Of a corpus whose texts and types are full of markup, with another model."""
    models = [(name, tiny_pipeline(encoder, **FINDS, seed=seed)) for name, seed in ((HOSTILE, 3), ("other", 4))]
    return analyse(models, micro_dataset(make_records(HOSTILE)), "corpus, test")


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
    gold = [entities((0, 1, "LOC"))] * 30
    clear = paired_bootstrap(gold, [[] for _ in gold], gold, samples=99)
    assert (clear["difference"], clear["p_value"]) == (1.0, 1 / 100)  # p is small but not 0


def test_analysis_is_made_of_its_parts(analysis, encoder):
    records = make_records(HOSTILE)
    references = [record["entities"] for record in records]
    models = (tiny_model(encoder, **FINDS, seed=seed) for seed in (3, 4))
    predictions, others = (predict_words(model, tiny_processor(encoder), records) for model in models)
    assert analysis["scores"] == score_entities(predictions, references, ["DNA", "protein"])
    assert analysis["scores"]["predicted"] > 0
    assert analysis["sentences"] == 3
    assert analysis["unknown_labels"] == sorted(["RNA", HOSTILE])
    assert analysis["examples"] == error_examples(predictions, records)
    assert analysis["comparison"]["scores"]["correct"] == score_entities(others, references)["correct"]
    assert analysis["comparison"]["bootstrap"] == paired_bootstrap(predictions, others, references)


def test_auxiliary_labels_are_neither_missing_nor_unknown(encoder):
    labels = {0: "DNA", 1: "protein", 2: "RNA", 3: "None"}
    pipeline = tiny_pipeline(encoder, id2label=labels, auxiliary_labels=["RNA"])
    analysis = analyse([("m", pipeline)], micro_dataset(make_records()), "c")
    assert analysis["unknown_labels"] == []
    assert list(analysis["scores"]["by_label"]) == ["DNA", "protein"]
    assert analysis["scores"]["gold"] == 4


def test_page_is_closed_in_itself_and_shows_markup_as_text(analysis):
    page = html_report(analysis)
    text = html.unescape(re.sub(r"(?s)<style>.*?</style>|<[^>]*>", "", page))
    assert not re.search(r"<script|<link|<img|url\(|\s(src|href|srcset|data)=", page)
    assert page.count("<svg ") == page.count("</svg>") == 3
    assert HOSTILE in text
    for part in ("by label", "by length", "by depth", "Errors", "Sentences with errors", "Comparison"):
        assert part in text


def test_numbers_of_the_report(analysis):
    page = html_report(analysis)
    scores, comparison = analysis["scores"]["by_label"]["DNA"], analysis["comparison"]
    ratios = [ratio or "–" for ratio in percentages(scores)]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>.*?</tr>", page)]
    assert ["DNA", *ratios, str(scores["predicted"]), str(scores["gold"])] in rows
    assert f"p = {comparison['bootstrap']['p_value']:.4f}" in page
    assert f"by {100 * comparison['bootstrap']['difference']:+.2f}".replace("-", "−") in page
    widths = re.findall(r'<rect x="180" y="3" width="([\d.]+)"', page)
    assert widths[:2] == [str(round(400 * row["f1"], 1)) for row in (analysis["scores"], scores)]


def test_the_report_shows_some_sentences_with_errors_and_json_all(analysis, tmp_path):
    many = [{**analysis["examples"][0], "id": f"many-{n}"} for n in range(23)]
    write_report({**analysis, "model": "a\ud800", "examples": many}, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.json"}
    page = (tmp_path / "report.html").read_text()
    assert "23 of the 3 sentences have errors; the 20 with the most are shown" in page
    assert re.findall("<h3>(many-\\d+)", page) == [example["id"] for example in many[:20]]
    written = json.loads((tmp_path / "report.json").read_text())
    assert [example["id"] for example in written["examples"]] == [example["id"] for example in many]
    assert written["model"] == "a\ud800"
    assert written["errors"] == analysis["errors"]


def test_what_is_undefined_is_null_in_json_and_a_dash_in_tables(encoder, tmp_path):
    corpus = micro_dataset([{**record, "entities": []} for record in make_records()])
    pipeline = tiny_pipeline(encoder, cross_span=False)
    pipeline.model.head.label_bias.data[-1] = 1e3
    analysis = analyse([("m", pipeline)], corpus, "c")
    write_report(analysis, tmp_path)
    scores = json.loads((tmp_path / "report.json").read_text())["scores"]
    assert [scores[name] for name in ("precision", "recall", "f1", "predicted")] == [None, None, None, 0]
    assert scores["by_label"]["DNA"]["f1"] is scores["flat"]["precision"] is None
    page = html_report(analysis)
    assert "0 of the 0 entities in 3 sentences of c" in page
    assert not re.search("<h2[^>]*>(Sentences with errors|Comparison)", page)
    assert "<rect" not in page


def test_the_summary_has_at_most_30_lines(analysis):
    labels = {f"label-{n}": Counts(n, n, n, 100).scores() for n in range(50)}
    names = [f"a very long name of a type, number {n}" for n in range(50)]
    many = {"scores": Scores({**analysis["scores"], "by_label": labels}), "unknown_labels": names}
    lines = summarize({**analysis, **many}).splitlines()
    assert len(lines) <= 30
    assert "The 10 labels with the most entities are shown, of 50." in lines
    errors = analysis["errors"]["by_gold_label"].values()
    assert f"missing {sum(row['missing'] for row in errors)}, spurious " in summarize(analysis)
