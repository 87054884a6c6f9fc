"""Analyses of a model: candidates, cases, comparison of two models, and the report of them all."""

import importlib
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modeling_triaffine.commands import analyse as analyse_command
from modeling_triaffine.data.collator import encode_records
from modeling_triaffine.decoding_triaffine import decode_batch
from modeling_triaffine.evaluation import significance
from modeling_triaffine.evaluation.analysis import NamedModel, analyse
from modeling_triaffine.evaluation.candidates import DEFAULT_COUNTS, sweep_candidates
from modeling_triaffine.evaluation.cases import Case, CaseSpan, make_cases
from modeling_triaffine.evaluation.figures import draw_figures
from modeling_triaffine.evaluation.mistakes import list_mistakes
from modeling_triaffine.evaluation.prediction import predict_words
from modeling_triaffine.evaluation.report import html_report, markdown_report, write_report
from modeling_triaffine.evaluation.scoring import score_entities
from modeling_triaffine.evaluation.sections import MOST_SENTENCES, SHOWN_COUNTS
from modeling_triaffine.evaluation.significance import paired_bootstrap
from modeling_triaffine.evaluation.tables import Table, html_text, markdown_text
from tests.micro_training import micro_dataset, write_lines
from tests.tiny import tiny_model, tiny_processor

# A model that finds something.
FINDS = {"seed": 3, "max_candidates": 6, "triaffine_init_std": 3.0}
HOSTILE = "<script>alert(1)</script> | `x` & $y$"


def entities(*triples):
    return [{"start": start, "end": end, "type": label} for start, end, label in triples]


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
    """Of a corpus whose texts and types are full of markup, with another model and two cases."""
    subject = NamedModel(HOSTILE, tiny_model(encoder, **FINDS), tiny_processor(encoder))
    other = NamedModel("other", tiny_model(encoder, **FINDS | {"seed": 4}), tiny_processor(encoder))
    corpus = micro_dataset(make_records(HOSTILE))
    return analyse(subject, corpus, "corpus, test", counts=[2, 6, 40], other=other, sentences=["s2", "s0"])


@pytest.fixture(scope="module")
def figures(analysis):
    return draw_figures(analysis)


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
            predictions += decode_batch(output, model.config.id2label)
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


def test_what_has_no_candidates_is_told(encoder, model, processor):
    with pytest.raises(ValueError, match="0 is no number of candidates"):
        sweep_candidates(model, processor, make_records(), counts=[5, 0])
    without = tiny_model(encoder, cross_span=False)
    with pytest.raises(ValueError, match="no cross-span stage"):
        sweep_candidates(without, processor, make_records())
    corpus = micro_dataset(make_records())
    analysis = analyse(NamedModel("m", without, processor), corpus, "c")
    assert (analysis.candidates, analysis.max_candidates) == (None, None)
    assert "## Candidates" not in markdown_report(analysis)
    with pytest.raises(ValueError, match="no cross-span stage"):
        analyse(NamedModel("m", without, processor), corpus, "c", counts=[5])


# ---- cases


@pytest.mark.parametrize(
    "fields", [{}, {"cross_span": False}, {"max_span_width": 2}], ids=["full", "no-cross-span", "narrow"]
)
def test_cases_say_what_the_model_says(encoder, processor, fields):
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
        assert case.num_spans == len(spans)
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


# ---- comparison of two models

GOLD = [entities((0, 1, "LOC"), (2, 4, "ORG")), entities((0, 2, "LOC")), entities((1, 2, "ORG"))]
BETTER = [GOLD[0], GOLD[1], entities((0, 2, "ORG"))]
WORSE = [GOLD[0][:1], GOLD[1], []]

sentences = st.lists(
    st.builds(
        lambda start, label: {"start": start, "end": start + 1, "type": label},
        st.integers(0, 3),
        st.sampled_from(["LOC", "ORG"]),
    ),
    max_size=4,
)


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


@settings(max_examples=25, deadline=None)
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


def test_bootstrap_of_equal_models():
    result = paired_bootstrap(BETTER, BETTER, GOLD, samples=20)
    assert (result["difference"], result["interval"], result["p_value"], result["wins"]) == (0, [0, 0], 1, 0)


def test_bootstrap_depends_on_its_seed_alone(monkeypatch):
    whole = paired_bootstrap(BETTER, WORSE, GOLD, samples=500, seed=7)
    monkeypatch.setattr(significance, "_DRAWN_AT_ONCE", 100)
    assert paired_bootstrap(BETTER, WORSE, GOLD, samples=500, seed=7) == whole
    assert paired_bootstrap(BETTER, WORSE, GOLD, samples=500, seed=8) != whole


def test_bootstrap_p_value_of_a_clear_difference_is_small_but_not_zero():
    gold = [entities((0, 1, "LOC"))] * 30
    result = paired_bootstrap(gold, [[] for _ in gold], gold, samples=99)
    assert result["difference"] == 1.0
    assert result["p_value"] == 1 / 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), "no sentences to compare"),
        (([[]], [[], []], [[]]), "predictions for 2 sentences and references for 1"),
        (([[], []], [[]], [[]]), "predictions for 2 sentences and references for 1"),
        (([[], [{"start": 1}]], [[], []], [[], []]), "predictions, sentence 1, entity 0: end missing"),
    ],
)
def test_bootstrap_tells_ill_formed_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(*arguments)
    with pytest.raises(ValueError, match="draw at least 1"):
        paired_bootstrap([[]], [[]], [[]], samples=0)


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
    assert analysis.candidates == sweep_candidates(model, processor, records, [2, 6, 40])
    assert analysis.sentences_with_errors == list_mistakes(predictions, records)
    assert [case.id for case in analysis.cases] == ["s2", "s0"]
    others = predict_words(tiny_model(encoder, **FINDS | {"seed": 4}), processor, records)
    assert analysis.comparison.scores == score_entities(others, references, ["DNA", "protein"])
    assert analysis.comparison.bootstrap == paired_bootstrap(predictions, others, references)


def test_sentences_that_are_not_there_are_told(model, processor):
    with pytest.raises(ValueError, match="no sentence 'x', 'y'; its 4 ids begin with 's0', 's1', 's2'"):
        analyse(NamedModel("m", model, processor), micro_dataset(make_records()), "c", sentences=["s1", "x", "y"])


def test_analysis_without_any_entity_has_a_report(encoder, processor):
    records = [{**record, "entities": []} for record in make_records()]
    model = tiny_model(encoder, cross_span=False)
    model.head.label_bias.data[-1] = 1e3
    analysis = analyse(NamedModel("m", model, processor), micro_dataset(records), "c")
    assert analysis.scores["predicted"] == analysis.scores["gold"] == 0
    assert "4 sentences of c, with 0 entities" in markdown_report(analysis)
    assert "Sentences with errors" not in markdown_report(analysis)
    assert "--lane-height" not in html_report(analysis, {})
    assert set(draw_figures(analysis)) == {"by_label.svg", "by_label.png"}


# ---- tables


def test_table_in_markdown():
    table = Table("Ca|ption", ["name", "n"], [["a|b", "1"], ["c", "1000"]], "lr")
    assert table.markdown().splitlines() == [
        "**Ca\\|ption**",
        "",
        "| name |    n |",
        "| ---- | ---: |",
        "| a\\|b |    1 |",
        "| c    | 1000 |",
    ]


def test_table_in_html():
    root = ElementTree.fromstring(Table("<b>", ["name", "n"], [["a&b", "<1>"]], "lr").html())
    assert root.find("figcaption").text == "<b>"
    assert [cell.text for cell in root.iter("td")] == ["<1>"]
    assert [(cell.text, cell.get("class")) for cell in root.iter("th")] == [("name", "l"), ("n", "r"), ("a&b", "l")]


@pytest.mark.parametrize(
    ("text", "markdown", "html"),
    [
        ("cell_type", "cell_type", "cell_type"),
        ("_x_ *y*", r"\_x\_ \*y\*", "_x_ *y*"),
        ("<b>&amp;", r"\<b\>\&amp;", "&lt;b&gt;&amp;amp;"),
        ("a\n# b\x00", "a # b\N{REPLACEMENT CHARACTER}", "a # b\N{REPLACEMENT CHARACTER}"),
        ("[a](b) $x$ ~~c~~ \\", r"\[a\](b) \$x\$ \~\~c\~\~ \\", "[a](b) $x$ ~~c~~ \\"),
        ('"it\'s"', '"it\'s"', "&quot;it&#x27;s&quot;"),
    ],
)
def test_text_is_no_markup(text, markdown, html):
    assert (markdown_text(text), html_text(text)) == (markdown, html)


# ---- the report


class Page(HTMLParser):
    """What a page holds: tags, addresses and text; every tag that is opened must be closed in its turn."""

    VOID = ("meta", "img")

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.addresses, self.styles, self.text = [], [], [], [], ""
        self.source = page
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "data")]
        self.styles += [value for name, value in attributes if name == "style"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_page_is_closed_in_itself_and_shows_markup_as_text(analysis, figures):
    page = Page(html_report(analysis, figures))
    assert "script" not in page.tags
    assert page.tags.count("img") == 5
    assert all(address.startswith(("#part", "data:image/svg+xml;base64,")) for address in page.addresses)
    assert all(re.fullmatch(r"--lanes?:\d+", style) for style in page.styles)
    assert HOSTILE in page.text
    assert "url(" not in page.text
    for part in (
        "Scores by label",
        "Scores by length",
        "Errors",
        "Sentences with errors",
        "Candidates",
        "Comparison",
        "Cases",
        "s0: The IL2 gene",
    ):
        assert part in page.text


def test_page_and_markdown_say_the_same(analysis):
    page, text = html_report(analysis, {}), markdown_report(analysis)
    assert "<img" not in page
    assert "![" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| -", "| :"))]
    assert page.count("<tr>") == len(rows) > 30
    for value in ("precision", f"{100 * analysis.scores['f1']:.2f}"):
        assert value in page
        assert value in text


def cells_of(text, first):
    """The cells of the first row of a Markdown table that begins so."""
    row = next(line for line in text.splitlines() if line.startswith(f"| {first} "))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_numbers_of_the_report(analysis):
    text = markdown_report(analysis)
    scores = analysis.scores["by_label"]["DNA"]
    ratios = [f"{100 * scores[ratio]:.2f}" for ratio in ("precision", "recall", "f1")]
    assert cells_of(text, "DNA") == ["DNA", *ratios, str(scores["predicted"]), str(scores["gold"])]
    found = analysis.comparison.bootstrap
    assert f"p = {found['p_value']:.4f}" in text
    assert f"by {100 * found['difference']:+.2f}".replace("-", "−") in text


def test_labels_with_the_names_of_parts_have_rows_of_their_own(analysis):
    gold = [entities((0, 1, "all"), (0, 1, "flat"))]
    scores = score_entities(gold, gold)
    without_flat = {label: row for label, row in scores["by_label"].items() if label != "flat"}
    mine, other = scores | {"by_label": without_flat}, replace(analysis.comparison, scores=scores)
    text = markdown_report(replace(analysis, scores=mine, comparison=other))
    rows = [line for line in text[text.index("## Comparison") :].splitlines() if line.startswith(("| all", "| flat"))]
    assert [row.split()[3] for row in rows] == ["100.00", "100.00", "0.00", "100.00"]


def test_case_without_candidates_in_the_report(analysis):
    span = CaseSpan(0, 2, "IL2 gene", ["DNA", "RNA"], "DNA", 0.75, None, None, None)
    text = markdown_report(replace(analysis, cases=[Case("s", "IL2 gene .", 6, [span])]))
    assert cells_of(text, "IL2 gene") == ["IL2 gene", "0–2", "DNA", "0.750", "–", "–", "–", "DNA, RNA"]


def test_sentences_with_errors_are_drawn_and_their_mistakes_listed(analysis):
    gold = entities((0, 2, "ORG"), (1, 2, "LOC"))
    record = {"id": "s<7>", "tokens": ["the", "Oxav", "\u2028", "`[x]`"], "entities": gold}
    sentences = list_mistakes([entities((0, 3, "ORG"), (1, 2, "LOC"), (3, 4, "LOC"))], [record])
    report = replace(analysis, sentences_with_errors=sentences)
    text = markdown_report(report)
    part = text[text.index("### s") : text.index("## Candidates")]
    assert "1 of the 4 sentences have mistakes, those with most of them first." in text
    assert part.rstrip().split("\n") == [
        "### s\\<7\\>",
        "",
        "Gold:",
        "",
        "    the Oxav \N{REPLACEMENT CHARACTER} `[x]`",
        "        ╰──╯ LOC",
        "    ╰──────╯ ORG",
        "",
        "Predicted:",
        "",
        "    the Oxav \N{REPLACEMENT CHARACTER} `[x]`",
        "        ╰──╯ LOC",
        "               ╰───╯ LOC",
        "    ╰────────╯ ORG",
        "",
        "**2 mistakes**",
        "",
        "| mistake        | gold           | predicted        |",
        "| -------------- | -------------- | ---------------- |",
        "| wrong boundary | the Oxav (ORG) | the Oxav \N{REPLACEMENT CHARACTER} (ORG) |",
        "| invented       | –              | \\`\\[x\\]\\` (LOC)  |",
    ]
    page = Page(html_report(report, {}))
    assert page.text.count("the Oxav \N{REPLACEMENT CHARACTER} `[x]`") == 2
    drawn = re.findall(r'<span class="entity[^>]* data-start="(\d+)" data-end="(\d+)" data-label="(\w+)"', page.source)
    assert drawn == [("0", "8", "ORG"), ("4", "8", "LOC"), ("0", "10", "ORG"), ("4", "8", "LOC"), ("11", "16", "LOC")]


def test_the_report_shows_some_sentences_with_errors_and_json_all(analysis, tmp_path):
    (sentence, *_) = analysis.sentences_with_errors
    many = [replace(sentence, id=f"many-{number}") for number in range(MOST_SENTENCES + 3)]
    write_report(replace(analysis, sentences_with_errors=many), tmp_path, {})
    text = (tmp_path / "report.md").read_text()
    assert "23 of the 4 sentences have mistakes, here the 20 with most of them, in report.json all." in text
    assert re.findall("### (many-\\d+)", text) == [one.id for one in many[:MOST_SENTENCES]]
    written = json.loads((tmp_path / "report.json").read_text())["sentences_with_errors"]
    assert [one["id"] for one in written] == [one.id for one in many]


def test_of_the_candidates_tried_by_default_some_are_shown(analysis):
    def shown(counts):
        rows = [{**analysis.candidates[0], "max_candidates": count} for count in counts]
        text = markdown_report(replace(analysis, candidates=rows, max_candidates=35))
        part = text[text.index("## Candidates") : text.index("## Comparison")]
        return [int(number) for number in re.findall(r"^\| +(\d+) \|", part, re.MULTILINE)], "leaves some" in part

    assert shown(DEFAULT_COUNTS) == (sorted({35, *SHOWN_COUNTS}), True)
    assert shown(range(1, 31)) == (list(range(1, 31)), False)


def test_report_folder(analysis, figures, tmp_path):
    write_report(analysis, tmp_path, figures)
    names = {"by_label", "by_length", "by_depth", "errors", "candidates"}
    expected = {f"{name}.{form}" for name, form in product(names, ("svg", "png"))}
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.md", "report.json"} | expected
    for name in names:
        assert ElementTree.fromstring(figures[f"{name}.svg"]).tag.endswith("svg")
        assert figures[f"{name}.png"].startswith(b"\x89PNG")
        assert f"]({name}.png)" in (tmp_path / "report.md").read_text()
    assert json.loads((tmp_path / "report.json").read_text()) == json.loads(json.dumps(analysis.to_dict()))
    assert draw_figures(analysis) == figures  # the same analysis gives the same files


# ---- the command


@pytest.fixture
def corpus(tmp_path):
    write_lines(tmp_path / "dev.jsonl", make_records())
    return tmp_path / "dev.jsonl"


def run_options(saved_model, *options):
    return "analyse", "--model", saved_model, "--split", "train", "--candidates", "3", "6", *options


def test_command_prints_tables_and_writes_the_report(saved_model, corpus, command, tmp_path):
    output = tmp_path / "new" / "report"
    options = run_options(saved_model, "--compare", saved_model, "--sentences", "s0", "--output", output)
    result = command(*options, "--data", corpus)
    assert result.code == 0, result.err
    assert result.out.startswith("# Analysis of ")
    assert "**s0: The IL2 gene binds protein !**" in result.out
    written = json.loads((output / "report.json").read_text())
    assert [row["max_candidates"] for row in written["candidates"]] == [3, 6]
    assert written["comparison"]["bootstrap"]["p_value"] == 1
    assert (output / "report.html").read_text().startswith("<!doctype html>")
    assert (output / "candidates.png").exists()
    again = command(*options, "--data", corpus)
    assert again.code == 2
    assert "is there already; give the name of a new folder" in again.err


def test_command_takes_the_corpus_in_two_places(saved_model, corpus, command):
    first = command("analyse", corpus, "--model", saved_model, "--split", "train", "--candidates", "3")
    second = command("analyse", "--model", saved_model, "--split", "train", "--candidates", "3", "--data", corpus)
    assert first.code == second.code == 0
    assert first.out == second.out
    assert command("analyse", "--model", saved_model).code == 2
    assert command("analyse", corpus, "--data", corpus, "--model", saved_model).code == 2


def test_command_without_matplotlib(saved_model, corpus, command, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "modeling_triaffine.evaluation.figures")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    options = run_options(saved_model, "--data", corpus)
    assert command(*options).code == 0
    refused = command(*options, "--output", tmp_path / "report")
    assert refused.code == 2
    assert refused.out == ""  # told before the model runs
    assert 'pip install "modeling_triaffine[plot]"' in refused.err
    assert not (tmp_path / "report").exists()
    assert command(*options, "--output", tmp_path / "report", "--no-figures").code == 0
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"report.html", "report.md", "report.json"}
    monkeypatch.undo()
    importlib.import_module("modeling_triaffine.evaluation.figures")


def test_command_leaves_no_half_written_report(saved_model, corpus, command, tmp_path, monkeypatch):
    def fail(analysis, folder, figures):
        (folder / "report.html").write_text("half")
        raise OSError("the disk is full")

    monkeypatch.setattr(analyse_command, "write_report", fail)
    result = command(*run_options(saved_model, "--data", corpus, "--output", tmp_path / "report", "--no-figures"))
    assert result.code == 2
    assert "the disk is full" in result.err
    assert [path.name for path in tmp_path.iterdir()] == [corpus.name]
