"""The benchmarks compare like with like, and count what they say they count."""

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

from modeling_triaffine import TriaffineConfig
from modeling_triaffine.data.demo import demo_corpus
from modeling_triaffine.model.span_head_triaffine import TriaffineSpanHead
from tests.helpers.micro_training import MICRO_CONFIG, write_recipe

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_what_a_benchmark_imports_exists(name):
    assert import_module(name).__doc__


@pytest.mark.parametrize("reference", [False, True], ids=["fast", "reference"])
@pytest.mark.parametrize("lengths", [[7, 2, 4], [1]], ids=str)
def test_published_form_has_the_scores_and_gradients_of_the_head(lengths, reference):
    from published import PublishedHead

    torch.manual_seed(0)
    config = TriaffineConfig(
        num_labels=3, hidden_size=12, triaffine_dim=8, max_candidates=5, triaffine_init_std=0.3, mlp_dropout=0.0
    )
    head = TriaffineSpanHead(config).double()
    head.reference = reference
    published = PublishedHead(head)
    batch, words = len(lengths), max(lengths)
    hidden = torch.randn(batch, words, 12, dtype=torch.float64)
    labels = torch.randint(3, (batch, words, words))

    expected = head(hidden, torch.tensor(lengths), labels)
    expected.loss.backward()
    expected_gradients = {name: value.grad for name, value in head.named_parameters()}
    published.zero_grad()
    actual = published(hidden, torch.tensor(lengths), labels)
    actual.loss.backward()

    for name in ("loss", "candidates", "candidate_mask"):
        torch.testing.assert_close(actual[name], expected[name])
    mask = expected.candidate_mask
    torch.testing.assert_close(actual.logits[mask], expected.logits[mask], rtol=0, atol=1e-10)
    gradients = {name: value.grad for name, value in head.named_parameters() if value.grad is not None}
    gradients |= published.triaffine_gradients()
    assert gradients.keys() == expected_gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=0, atol=1e-10, msg=name)


def test_rows_say_what_ran_and_where_the_time_went(encoder, monkeypatch, capsys, tmp_path):
    import throughput

    output = tmp_path / "rows.jsonl"
    options = {"model_name_or_path": encoder, "max_samples": 6, "batch_size": 4, "repeats": 1, "output": output}
    # As small as the encoder, but for the windows: all sentences fit.
    options |= {"recipe": write_recipe(tmp_path / "recipe", {**MICRO_CONFIG, "max_subwords": 192})}
    monkeypatch.setattr(sys, "argv", ["throughput.py", *(f"--{name}={value}" for name, value in options.items())])
    with_dropout = {}  # the encoder alone must do the work that it does in the whole

    def watched(step):
        def watch(encoder, batch):
            with_dropout.setdefault(step.__name__, set()).add(encoder.training)
            step(encoder, batch)

        return watch

    for step in (throughput.run_encoder, throughput.train_encoder):
        monkeypatch.setattr(throughput, step.__name__, watched(step))
    throughput.main()
    assert with_dropout == {"run_encoder": {False}, "train_encoder": {True}}

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["what"], row["tensors"]) for row in rows] == [
        (what, tensors) for tensors in ("low rank", "full") for what in ("raw text to entities", "training")
    ]
    words = [len(record["tokens"]) for record in demo_corpus()["train"][:6]]
    for row in rows:
        assert row["sentences"] == len(words)
        assert row["subwords"] >= sum(words) + 2 * len(words)
        assert row["padded_over_subwords"] >= 1
        assert row["sentences_a_second"] > 0
        assert list(row["share"]) == ["encoder", "words", "head", "rest"]
        assert min(row["share"].values()) > 0
        assert sum(row["share"].values()) == pytest.approx(1, abs=0.01)
    header, *written = map(json.loads, output.read_text().splitlines())
    assert written == rows
    assert "torch" in header


def test_a_peer_is_chosen_on_one_half_scored_on_the_other_and_trained_once(monkeypatch, tmp_path):
    import peer_accuracy

    inner, outer, last = ({"start": start, "end": end, "type": "A"} for start, end in ((0, 1), (0, 2), (1, 2)))
    sentences = {"train": [[outer, inner], [inner]] * 2, "dev": [[outer], [inner], [outer], [last]]}
    for split, annotated in sentences.items():
        records = [{"tokens": ["a", "b"], "entities": entities} for entities in annotated]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    # Finds again what it was trained on, with seed 2 the last of it only, or nothing; a second training is an error.
    setup = """
os.mkdir(folder)
assert os.environ["OMP_NUM_THREADS"] == "1" and labels == ["A"]
assert vars(torch.backends.mkldnn) == ({"fp32_precision": "bf16"} if given["products"] == "bfloat16" else {})
def predict(sentences):
    for record, words in zip(train, sentences, strict=True):
        assert record["tokens"] == words
        found = record["entities"][-1:] if seed == 2 else record["entities"]
        yield [(entity["start"], entity["end"], entity["type"]) for entity in found if options["finds"]]
"""
    # A dozen processes, in which nothing is computed, do without the seconds that the real one takes to import.
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "torch.py").write_text(
        "from types import SimpleNamespace\n"
        "def set_num_threads(number): assert number == 1\n"
        "backends = SimpleNamespace(mkldnn=SimpleNamespace())\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"))
    settings = [{"finds": False}, {"finds": True}]
    peers = {
        "modeling_triaffine": peer_accuracy.Peer("modeling_triaffine", (), setup, settings[1:]),
        "flat": peer_accuracy.Peer("none", (), setup, settings, flat=True),
    }
    monkeypatch.setattr(peer_accuracy, "PEERS", peers)
    corpus = f"--corpus=tiny={tmp_path / 'train.jsonl'},{tmp_path / 'dev.jsonl'}"
    monkeypatch.setattr(sys, "argv", ["peer_accuracy.py", str(tmp_path), "--encoder=none", corpus, "--peers", *peers])
    for _ in range(2):
        peer_accuracy.main()

    results = json.loads((tmp_path / "results.json").read_text())
    ours, flat = results["rows"]
    assert ours["dev_sentences"] == 4
    assert flat["complete"]
    assert flat["seeds"] == [1, 2]
    assert flat["options"] == {"finds": True}
    assert [setting["choosing_f1"] for setting in flat["settings"]] == [0.0, 1.0]  # of the first two sentences
    # Right in the third sentence, but without the inner entity, which it never saw; wrong in the fourth.
    assert flat["scores"]["all"]["f1"] == {"mean": 0.5, "values": [0.5, 0.5]}
    assert ours["scores"]["all"]["precision"]["values"] == pytest.approx([1 / 3, 0])
    assert flat["ours_minus_theirs"]["difference"] == pytest.approx(2 / 9 - 0.5)
    # An inner entity of seed 2 is inside an outer one of seed 1, but outermost in its own run.
    assert flat["ours_minus_theirs_outermost"]["difference"] == pytest.approx(0.25 - 0.5)
    assert flat["measured"][0]["training_peak_kilobytes"] > 0
