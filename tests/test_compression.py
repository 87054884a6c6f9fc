"""Full triaffine tensors to low rank: what is recovered, what error is left and told, what is refused."""

import json
from functools import partial

import datasets
import pytest
import torch

from modeling_triaffine import TriaffineForNestedNER
from modeling_triaffine.compression import compress_triaffine, decompose, format_report
from modeling_triaffine.decoding_triaffine import decode_batch
from modeling_triaffine.evaluation.scoring import score_entities
from tests.tiny import tiny_model, tiny_processor

SENTENCES = [
    ["IL2", "gene", "binds"],
    ["protein"],
    ["the", "gene", "protein", "binds", "DNA", "."],
    ["a", "protein", "of", "kappa", "B", "(", "p50", ")"],
]
# What has triaffine tensors → their names within the head and the stages that use each.
BOTH, SPAN, CROSS_SPAN = {"span", "cross-span"}, {"span"}, {"cross-span"}
OWN_TENSORS = {"cross_span.attention_triaffine": CROSS_SPAN, "cross_span.scoring_triaffine": CROSS_SPAN}
VARIANTS = {
    "all": ({}, {"attention.triaffine": BOTH, "scoring.triaffine": BOTH}),
    "own_tensors": (
        {"share_triaffine": False},
        {"attention.triaffine": SPAN, "scoring.triaffine": SPAN, **OWN_TENSORS},
    ),
    "no_cross_span": ({"cross_span": False}, {"attention.triaffine": SPAN, "scoring.triaffine": SPAN}),
    "no_label": ({"attention": "triaffine_no_label"}, {"attention.triaffine": BOTH, "scoring.triaffine": BOTH}),
    "narrow": ({"max_span_width": 2}, {"attention.triaffine": BOTH, "scoring.triaffine": BOTH}),
    "query_axis": ({"cross_span_axis": "query"}, {"attention.triaffine": BOTH, "scoring.triaffine": BOTH}),
    "linear_scoring": ({"scoring": "linear", "cross_span": False}, {"attention.triaffine": SPAN}),
    "linear_boundary_shared": (
        {"scoring": "linear_boundary_shared", "share_triaffine": False},
        {"attention.triaffine": SPAN, **OWN_TENSORS},
    ),
    "label_attention": ({"attention": "label", "cross_span": False}, {"scoring.triaffine": SPAN}),
    "linear_attention": (
        {"attention": "linear", "share_triaffine": False},
        {"scoring.triaffine": SPAN, **OWN_TENSORS},
    ),
    "cross_span_only": ({"attention": "label", "scoring": "linear", "share_triaffine": False}, OWN_TENSORS),
}


@pytest.fixture(scope="module")
def sample(encoder):
    processor = tiny_processor(encoder)
    return [processor.pad(processor.encode(SENTENCES[:2])), processor.pad(processor.encode(SENTENCES[2:]))]


def random_factors(*sizes, rank, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(size, rank, generator=generator, dtype=torch.float64) for size in sizes]


def product(inside, head, tail):
    return torch.einsum("cp,ap,ep->cae", inside, head, tail)


def full_tensors(model):
    return [value for name, value in model.head.named_parameters() if name.endswith("triaffine.weight")]


@torch.no_grad()
def give_rank(model, rank):
    """Makes the model's tensors ones of this rank."""
    for seed, tensor in enumerate(full_tensors(model)):
        for label, weight in enumerate(tensor):
            weight.copy_(0.1 * product(*random_factors(*weight.shape, rank=rank, seed=10 * seed + label)))
    return model


# ---- Rank-one terms ----


@pytest.mark.parametrize(("sizes", "rank"), [((6, 7, 7), 3), ((1, 2, 2), 1), ((9, 10, 10), 9), ((4, 5, 5), 1)])
def test_a_tensor_of_known_rank_is_recovered(sizes, rank):
    tensor = 50 * product(*random_factors(*sizes, rank=rank))
    found = product(*decompose(tensor, rank, sweeps=300))
    assert (found - tensor).norm() < 1e-6 * tensor.norm()


@pytest.mark.parametrize("rank", [2, 40])
def test_a_tensor_of_lower_rank_than_asked_for_or_of_zeros(rank):
    tensor = product(*random_factors(6, 7, 7, rank=1))
    torch.testing.assert_close(product(*decompose(tensor, rank)), tensor, rtol=0, atol=1e-6)
    assert not product(*decompose(torch.zeros_like(tensor), rank)).any()


def test_error_falls_with_every_term():
    tensor = torch.randn(6, 7, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    errors = [float((product(*decompose(tensor, rank)) - tensor).norm() / tensor.norm()) for rank in range(1, 13)]
    assert errors == sorted(errors, reverse=True)
    # The best single term: no other start of alternating least squares gets below.
    spectral = max(float(_best_term(tensor, seed)) for seed in range(5))
    assert errors[0] == pytest.approx((1 - spectral**2 / float(tensor.norm()) ** 2) ** 0.5, rel=0.02)


def _best_term(tensor, seed):
    """Length of the term that the higher-order power method ends with."""
    x, y, z = (factor[:, 0] for factor in random_factors(*tensor.shape, rank=1, seed=seed))
    for _ in range(100):
        x = torch.nn.functional.normalize(torch.einsum("cae,a,e->c", tensor, y, z), dim=0)
        y = torch.nn.functional.normalize(torch.einsum("cae,c,e->a", tensor, x, z), dim=0)
        z = torch.einsum("cae,c,a->e", tensor, x, y)
        length, z = z.norm(), torch.nn.functional.normalize(z, dim=0)
    return length


# ---- Models ----


@pytest.mark.parametrize("sampled", [True, False], ids=["sample", "no_sample"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_model_of_known_rank_keeps_its_scores(encoder, sample, variant, sampled):
    fields, stages = VARIANTS[variant]
    model = give_rank(tiny_model(encoder, **fields).double(), rank=2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    compressed, report = compress_triaffine(model, 2, sample if sampled else None, sweeps=300)

    assert compressed.config.triaffine_rank == compressed.head.config.triaffine_rank == 2
    assert model.config.triaffine_rank is None
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    after = compressed.state_dict()
    kept = set(before) & set(after)
    assert set(before) - kept == {f"head.{name}.weight" for name in stages}
    assert all(torch.equal(before[name], after[name]) for name in kept)
    assert all(before[name].data_ptr() != after[name].data_ptr() for name in kept)

    assert {tensor.name: set(tensor.score_errors) for tensor in report.tensors} == {
        name: stages[name] if sampled else set() for name in stages
    }
    for tensor in report.tensors:
        assert tensor.weight_error < 1e-5
        assert all(error < 2e-6 for error in tensor.score_errors.values())
    for batch in sample:
        exact, found = model(**batch, output_attentions=True), compressed(**batch, output_attentions=True)
        assert set(exact) == set(found)
        for name, values in exact.items():
            torch.testing.assert_close(found[name], values, rtol=1e-6, atol=1e-6)


def test_error_is_least_where_the_inputs_are(encoder, sample):
    """Vectors almost along a few axes, one of them another in every MLP: the weights' error counts all axes alike."""
    model = tiny_model(encoder).double()
    for name, module in model.head.named_modules():
        if isinstance(module, torch.nn.Linear) and module.out_features == model.config.triaffine_dim:
            with torch.no_grad():
                scale = 10.0 ** -torch.arange(6.0, dtype=torch.float64)
                module.weight.mul_(scale.roll(len(name))[:, None])
                module.bias.mul_(scale.roll(len(name)))

    @torch.no_grad()
    def difference(compressed):
        return sum(float((compressed(**one).span_logits - model(**one).span_logits).square().sum()) for one in sample)

    with_sample, report = compress_triaffine(model, 3, sample)
    without, blind = compress_triaffine(model, 3)
    assert difference(with_sample) < 0.1 * difference(without)
    for seeing, not_seeing in zip(report.tensors, blind.tensors, strict=True):
        assert not_seeing.weight_error < seeing.weight_error


@torch.no_grad()
def test_reported_errors_of_a_sentence_of_one_word(encoder):
    """There is one triple of words, and one of candidates, so the errors can be computed by hand."""
    model, processor = tiny_model(encoder).double(), tiny_processor(encoder)
    batch = processor.pad(processor.encode([["gene"]]))
    compressed, report = compress_triaffine(model, 1, [batch])

    hidden = []
    hook = model.head.register_forward_hook(lambda head, inputs, output: hidden.append(inputs[0]))
    model(**batch)
    hook.remove()
    head, stage, word = model.head, model.head.cross_span, hidden[0][0, 0]

    def scores(weight, boundaries, inside):
        ahead, back = (torch.cat([vector, vector.new_ones(1)]) for vector in boundaries(word))
        return torch.einsum("rcae,c,a,e->r", weight, inside, ahead, back)

    # The only word has all the attention.
    span = head.scoring.inside(word)
    uses = {
        "attention.triaffine": {
            "span": (head.attention.boundaries, head.attention.inside(word)),
            "cross-span": (stage.attention_boundaries, stage.attention_span(span)),
        },
        "scoring.triaffine": {
            "span": (head.scoring.boundaries, span),
            "cross-span": (stage.scoring_boundaries, stage.scoring_span(span)),
        },
    }
    for tensor in report.tensors:
        weight = model.head.get_submodule(tensor.name).weight
        low_rank = compressed.head.get_submodule(tensor.name)
        approximate = torch.einsum("rap,rcp,rep->rcae", low_rank.head, low_rank.inside, low_rank.tail)
        assert tensor.weight_error == pytest.approx(float((approximate - weight).norm() / weight.norm()))
        assert (tensor.numbers_before, tensor.numbers_after) == (weight.numel(), 3 * (7 + 6 + 7))
        for name, use in uses[tensor.name].items():
            exact = scores(weight, *use)
            error = (scores(approximate, *use) - exact).square().mean().sqrt() / exact.std(correction=0)
            assert tensor.score_errors[name] == pytest.approx(float(error), rel=1e-6)
    assert (report.numbers_before, report.numbers_after) == (model.num_parameters(), compressed.num_parameters())


def test_compression_is_repeatable_and_leaves_the_model_alone(encoder, sample):
    model = tiny_model(encoder, mlp_dropout=0.5).train()
    labelled = [{**batch, "labels": torch.zeros(2, *2 * [int(batch["num_words"].max())]).long()} for batch in sample]
    torch.manual_seed(3)
    first, report = compress_triaffine(model, 3, sample)
    state = torch.get_rng_state()
    torch.manual_seed(3)
    assert torch.equal(state, torch.get_rng_state())
    second, again = compress_triaffine(model, 3, iter(labelled))
    assert report == again
    assert all(torch.equal(value, second.state_dict()[name]) for name, value in first.state_dict().items())
    assert model.training
    assert first.training
    assert not model.head._forward_hooks
    assert not first.head._forward_hooks


def test_agreement_is_that_of_the_entities_found(encoder, sample):
    model = give_rank(tiny_model(encoder), 3)
    bias = model.head.label_bias
    with torch.no_grad():
        bias.copy_(torch.tensor([0.0, 0.1, 0.0]))
    exact = [entities for batch in sample for entities in decode_batch(model(**batch), model.config.id2label)]
    assert compress_triaffine(model, 3, sample)[1].agreement == 1
    compressed, report = compress_triaffine(model, 1, sample)
    found = [entities for batch in sample for entities in decode_batch(compressed(**batch), model.config.id2label)]
    assert report.agreement == score_entities(found, exact)["f1"]
    assert 0 < report.agreement < 1
    assert compress_triaffine(model, 1)[1].agreement is None
    with torch.no_grad():
        bias[-1] = 50.0
    assert compress_triaffine(model, 1, sample)[1].agreement == 1  # neither finds anything


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_compressed_model_is_saved_and_loaded(encoder, sample, tmp_path, dtype):
    compressed, _ = compress_triaffine(tiny_model(encoder).to(dtype), 3, sample)
    assert {value.dtype for value in compressed.parameters()} == {dtype}
    compressed.save_pretrained(tmp_path)
    loaded = TriaffineForNestedNER.from_pretrained(tmp_path, dtype=dtype)
    for batch in sample:
        expected = compressed(**batch)
        for name, values in loaded(**batch).items():
            assert torch.equal(values, expected[name])


def test_compressed_model_can_be_trained_on(encoder, sample):
    compressed, _ = compress_triaffine(tiny_model(encoder), 2, sample)
    compressed(**sample[1]).span_logits[:, 0, 0].sum().backward()
    assert all(value.grad is not None for name, value in compressed.named_parameters() if "scoring.triaffine" in name)


def test_what_cannot_be_compressed_is_refused(encoder, sample):
    biaffine = tiny_model(encoder, attention="none", scoring="biaffine", cross_span=False)
    with pytest.raises(ValueError, match=r"no triaffine tensor .* attention is 'none', its scoring 'biaffine'"):
        compress_triaffine(biaffine, 2)
    with pytest.raises(ValueError, match=r"low-rank already \(triaffine_rank=3\)"):
        compress_triaffine(tiny_model(encoder, triaffine_rank=3), 2)
    model = tiny_model(encoder)
    for rank in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match="a whole number of at least 1"):
            compress_triaffine(model, rank)
    with pytest.raises(ValueError, match="a rank of at most 14"):
        compress_triaffine(model, 15)
    _, report = compress_triaffine(model, 14)
    assert report.numbers_after < report.numbers_before
    for nothing in ([], [{**sample[0], "num_words": torch.zeros(2, dtype=torch.long)}]):
        with pytest.raises(ValueError, match="The sample has no words"):
            compress_triaffine(model, 2, nothing)


def test_a_sample_may_hold_empty_sentences(encoder, sample):
    processor = tiny_processor(encoder)
    batch = processor.pad(processor.encode([[], SENTENCES[0]]))
    _, report = compress_triaffine(tiny_model(encoder), 2, [batch])
    assert all(0 < error < 2 for tensor in report.tensors for error in tensor.score_errors.values())


def test_report_as_a_table(encoder, sample):
    _, report = compress_triaffine(tiny_model(encoder, cross_span=False), 2, sample)
    head, attention, scoring, model, agreement = format_report(report).splitlines()
    assert "at rank 2" in head
    assert attention.split() == [
        *("attention.triaffine", "882", "120", f"{100 * report.tensors[0].weight_error:.2f}"),
        *(f"{100 * report.tensors[0].score_errors['span']:.2f}", "–"),
    ]
    assert scoring.startswith("scoring.triaffine")
    assert model.split() == ["model", f"{report.numbers_before:,}", f"{report.numbers_after:,}"]
    assert agreement.endswith(f"{100 * report.agreement:.2f}")


# ---- The command ----


@pytest.fixture
def compress(monkeypatch, tmp_path, command):
    """`triaffine-ner compress` as a function of its arguments."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return partial(command, "compress")


@pytest.fixture
def saved(encoder, tmp_path):
    tiny_model(encoder).save_pretrained(tmp_path / "model")
    tiny_processor(encoder).save_pretrained(tmp_path / "model")
    records = [
        {"id": str(n), "doc_id": "d", "sent_id": n, "tokens": words, "pos": [], "entities": []}
        for n, words in enumerate(SENTENCES)
    ]
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return tmp_path / "model"


def test_command_saves_a_whole_model_and_tells_the_errors(compress, saved, tmp_path, encoder, sample):
    options = ["--model", saved, "--rank", 3, "--data", tmp_path / "train.jsonl", "--sentences", 2, "--batch-size", 2]
    code, output, _ = compress(*options, "--output", tmp_path / "new" / "small")
    assert code == 0
    assert "at rank 3" in output
    assert "F1 of its entities" in output
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["small"]
    files = {path.name for path in saved.iterdir()}
    assert {path.name for path in (tmp_path / "new" / "small").iterdir()} == files
    loaded = TriaffineForNestedNER.from_pretrained(tmp_path / "new" / "small")
    # Sentences 0 and 2 of the four, evenly spread.
    processor = tiny_processor(encoder)
    read = [processor.pad(processor.encode([SENTENCES[0], SENTENCES[2]]))]
    expected, _ = compress_triaffine(TriaffineForNestedNER.from_pretrained(saved), 3, read)
    for name, value in loaded.state_dict().items():
        assert torch.equal(value, expected.state_dict()[name])


def test_command_tells_mistakes_in_one_paragraph_and_leaves_nothing(compress, saved, tmp_path, encoder, monkeypatch):
    data = ["--data", tmp_path / "train.jsonl"]
    compress("--model", saved, "--rank", 2, "--output", tmp_path / "small")
    there = sorted(path.name for path in tmp_path.iterdir())
    for arguments, message in (
        (["--model", saved, "--rank", 2, "--output", tmp_path / "small"], "is there already"),
        (["--model", tmp_path / "small", "--rank", 2], "low-rank already (triaffine_rank=2)"),
        (["--model", saved, "--rank", 0], "argument --rank: 0 is too small"),
        (["--model", saved, "--rank", 2, *data, "--split", "test"], "has no split 'test'; give --split train"),
        (["--model", saved, "--rank", 2, *data, "--sentences", 0], "argument --sentences: 0 is too small"),
        (["--model", saved, "--rank", 2, "--device", "bogus"], "--device bogus"),
    ):
        output = [] if "--output" in arguments else ["--output", tmp_path / "other"]
        code, _, errors = compress(*arguments, *output)
        assert code == 2
        assert "error: " in errors.splitlines()[-1]
        assert message in errors.splitlines()[-1]

    def stop_half_way(*_):
        raise OSError("no space left")

    monkeypatch.setattr("modeling_triaffine.processing_triaffine.TriaffineProcessor.save_pretrained", stop_half_way)
    code, _, errors = compress("--model", saved, "--rank", 2, "--output", tmp_path / "other")
    assert (code, errors.splitlines()[-1]) == (2, "error: no space left")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == there
