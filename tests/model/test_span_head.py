"""The span head against an independent derivation in numpy, word by word, straight from the paper's equations."""

import itertools

import numpy as np
import pytest
import torch

from modeling_triaffine.model.configuration_triaffine import TriaffineConfig
from modeling_triaffine.model.options_triaffine import MODEL_OPTIONS
from modeling_triaffine.model.span_head_triaffine import TriaffineSpanHead, smooth_boundaries
from modeling_triaffine.model.triaffine_ops import gather_spans, span_mask
from tests.helpers.factors import FACTORS, HAVE_TENSORS, WITHOUT_WORDS, fields_of


def make_head(lengths=(1, 5, 3), seed=0, **fields):
    torch.manual_seed(seed)
    sizes = {"num_labels": 4, "hidden_size": 6, "triaffine_dim": 5, "max_candidates": 4, "triaffine_init_std": 0.5}
    head = TriaffineSpanHead(TriaffineConfig(**sizes | fields)).double().eval()
    hidden = torch.randn(len(lengths), max(lengths), 6, dtype=torch.double)
    return head, hidden, torch.tensor(lengths)


def random_labels(lengths, num_labels, num_words, seed=1):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.full((len(lengths), num_words, num_words), -100)
    for row, length in enumerate(lengths.tolist()):
        for i, j in itertools.combinations_with_replacement(range(length), 2):
            labels[row, i, j] = torch.randint(num_labels, (), generator=generator)
    return labels


EQUATIONS = {
    "attention": ["triaffine", "triaffine_no_label", "label", "linear"],
    "scoring": ["triaffine", "linear", "linear_boundary", "linear_boundary_shared", "biaffine", "biaffine_shared"],
}
OTHER_CHOICES = [
    {name: choice}
    for name, option in MODEL_OPTIONS.items()
    for choice in option.choices or ((False, True) if option.type is bool else ())
    if name not in EQUATIONS
]
STAGES = [
    *((pair, {"cross_span": False}) for pair in [*FACTORS, *WITHOUT_WORDS]),
    *((pair, {"cross_span_axis": axis}) for pair in HAVE_TENSORS for axis in ("key", "query")),
    *((pair, {"share_triaffine": False, "cross_span_axis": axis}) for pair in FACTORS for axis in ("key", "query")),
]


class Numpy:
    """Span stage and cross-span stage of one sentence, with loops over spans, words and labels."""

    def __init__(self, head, hidden):
        self.weights = {name: value.detach().numpy() for name, value in head.named_parameters()}
        self.config, self.hidden = head.config, hidden.numpy()
        self.labels, self.words = head.config.num_scores, len(hidden)

    def mlp(self, name, values):
        layers = sorted({key.rsplit(".", 1)[0] for key in self.weights if key.startswith(f"{name}.")})
        for number, layer in enumerate(layers):
            values = self.linear(layer, np.maximum(values, 0) if number else values)
        return values

    def projection(self, values):
        """The two layers of the published form of (a), without an activation between them."""
        return self.linear("biaffine.projection.2", self.linear("biaffine.projection.0", values))

    def linear(self, name, values):
        return values @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def tensor(self, name):
        """W as [label, inside, head, tail], rebuilt from its factors when it is of low rank."""
        if f"{name}.weight" in self.weights:
            return self.weights[f"{name}.weight"]
        factors = (self.weights[f"{name}.{part}"] for part in ("inside", "head", "tail"))
        return np.einsum("rcp,rap,rep->rcae", *factors)

    def triaffine(self, u, v, w, tensor):
        return np.einsum("a,e,c,cae->", np.append(u, 1), np.append(v, 1), w, tensor)

    def attention_score(self, i, j, k, label):
        inside = self.mlp("attention.inside", self.hidden[k])
        assert self.config.attention in EQUATIONS["attention"], "a new kind needs its equation here"
        if self.config.attention == "label":
            return self.weights["attention.query"][label] @ inside
        head, tail = (self.mlp(f"attention.boundaries.{end}", self.hidden[n]) for end, n in (("head", i), ("tail", j)))
        if self.config.attention == "linear":
            parts = (("head", head), ("tail", tail), ("inside", inside))
            return sum(self.linear(f"attention.linear_{part}", value)[label] for part, value in parts)
        tensor = self.tensor("attention.triaffine")
        return self.triaffine(head, tail, inside, tensor[label if len(tensor) > 1 else 0])

    def attention(self, i, j, label):
        scores = np.array([self.attention_score(i, j, k, label) for k in range(i, j + 1)])
        return np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()

    def span(self, i, j, label):
        """h_ijr: the representation that the decomposition never builds."""
        return self.attention(i, j, label) @ self.mlp("scoring.inside", self.hidden[i : j + 1])

    def score(self, i, j, label):
        scoring, bias = self.config.scoring, self.weights["label_bias"][label]
        assert scoring in EQUATIONS["scoring"], "a new kind needs its equation here"
        if scoring == "biaffine":
            ends = (self.mlp(f"biaffine.boundaries.{e}", self.hidden[n]) for e, n in (("head", i), ("tail", j)))
            head, tail = (np.append(end, 1) for end in ends)
            return head @ self.weights["biaffine.weight"][label] @ tail + bias
        if scoring == "biaffine_shared":
            head, tail = (self.projection(self.hidden[n]) for n in (i, j))
            linear = (head + tail) @ self.weights["biaffine.linear"][label]
            return head @ self.weights["biaffine.weight"][label] @ tail + linear + bias
        span = self.span(i, j, label)
        if scoring == "triaffine":
            ends = (self.mlp(f"scoring.boundaries.{e}", self.hidden[n]) for e, n in (("head", i), ("tail", j)))
            return self.triaffine(*ends, span, self.tensor("scoring.triaffine")[label]) + bias
        total = self.linear("scoring.linear_inside", span)[label] + bias
        if scoring != "linear":
            owner = "attention" if scoring == "linear_boundary_shared" else "scoring"
            for end, n in (("head", i), ("tail", j)):
                boundary = self.mlp(f"{owner}.boundaries.{end}", self.hidden[n])
                total += self.linear(f"scoring.linear_{end}", boundary)[label]
        return total

    def candidates(self):
        """The spans of the likeliest entities, in order."""
        spans = list(itertools.combinations_with_replacement(range(self.words), 2))
        scores = np.array([[self.score(i, j, label) for label in range(self.labels)] for i, j in spans])
        if not self.config.multi_label:
            scores = (scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))[:, :-1]
        likeliest = np.argsort(-scores.max(axis=1))[: self.config.max_candidates]
        return [spans[n] for n in sorted(likeliest)]

    def cross_scores(self, candidates):
        shares = self.config.share_triaffine
        attention = self.tensor("attention.triaffine" if shares else "cross_span.attention_triaffine")
        scoring = self.tensor("scoring.triaffine" if shares else "cross_span.scoring_triaffine")
        bias = self.weights["label_bias" if shares else "cross_span.label_bias"]
        count = len(candidates)
        final = np.zeros((count, self.labels))
        for label in range(self.labels):
            q, t = np.zeros((count, count)), np.zeros((count, count))
            for (row, (i, j)), (column, span) in itertools.product(enumerate(candidates), enumerate(candidates)):
                h = self.span(*span, label)
                for out, part, tensor in ((q, "attention", attention), (t, "scoring", scoring)):
                    name = f"cross_span.{part}"
                    ends = [self.mlp(f"{name}_boundaries.{e}", self.hidden[n]) for e, n in (("head", i), ("tail", j))]
                    related = self.mlp(f"{name}_span", h)
                    out[row, column] = self.triaffine(*ends, related, tensor[label if len(tensor) > 1 else 0])
            axis = 1 if self.config.cross_span_axis == "key" else 0
            beta = np.exp(q - q.max(axis, keepdims=True))
            beta /= beta.sum(axis, keepdims=True)
            final[:, label] = (beta * t).sum(axis) + bias[label]
            if self.config.cross_span_residual:
                final[:, label] += [self.score(i, j, label) for i, j in candidates]
        return final


def check_against_the_equations(**fields):
    """Seven candidates: more than the spans of three words, whose padding is no copy of the only candidate."""
    head, hidden, lengths = make_head(max_candidates=7, **fields)
    output = head(hidden, lengths)
    say = {"err_msg": f"write the equation of {fields} into Numpy", "rtol": 1e-9, "atol": 1e-9}
    for sentence, length in enumerate(lengths.tolist()):
        reference = Numpy(head, hidden[sentence, :length])
        for i, j in itertools.combinations_with_replacement(range(length), 2):
            expected = [reference.score(i, j, label) for label in range(reference.labels)]
            np.testing.assert_allclose(output.span_logits[sentence, i, j].detach().numpy(), expected, **say)
        if output.logits is not None:
            mask = output.candidate_mask[sentence]
            candidates = list(map(tuple, output.candidates[sentence][mask].tolist()))
            assert candidates == reference.candidates(), f"write the candidates of {fields} into Numpy"
            scores = output.logits[sentence][mask].detach().numpy()
            np.testing.assert_allclose(scores, reference.cross_scores(candidates), **say)


@pytest.mark.parametrize("rank", [None, 3], ids=["full", "rank3"])
@pytest.mark.parametrize(("factors", "fields"), STAGES, ids=str)
def test_scores_are_those_of_the_equations(factors, fields, rank):
    attention, scoring = factors
    check_against_the_equations(attention=attention, scoring=scoring, triaffine_rank=rank, **fields)


@pytest.mark.parametrize("fields", OTHER_CHOICES, ids=str)
def test_every_other_choice_is_derived(fields):
    """A new one that changes a score needs its equation in [`Numpy`]; those of what is around the head change none."""
    check_against_the_equations(**fields)


@pytest.mark.parametrize("rank", [None, 3], ids=["full", "rank3"])
@pytest.mark.parametrize(("attention", "scoring"), FACTORS)
def test_values_and_gradients_are_those_of_the_definition(attention, scoring, rank):
    head, hidden, lengths = make_head(**fields_of(attention, scoring), triaffine_rank=rank)
    labels = random_labels(lengths, 4, 5)

    def run(reference):
        head.reference = reference
        output = head(hidden.requires_grad_(), lengths, labels)
        parameters = dict(head.named_parameters())
        gradients = torch.autograd.grad(output.loss, [hidden, *parameters.values()])
        values = {name: output[name] for name in ("span_logits", "logits", "loss")}
        return values | dict(zip(("hidden", *parameters), gradients, strict=True))

    torch.testing.assert_close(run(False), run(True), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("reduction", "smoothing", "distance", "width"),
    [("sentence", 0, 1, None), ("batch", 0, 1, None), ("sentence", 0.2, 1, 2), ("batch", 0.2, 2, None)],
)
def test_losses(reduction, smoothing, distance, width):
    options = {"boundary_smoothing": smoothing, "boundary_smoothing_distance": distance, "max_span_width": width}
    head, hidden, lengths = make_head(loss_reduction=reduction, aux_loss_weight=0.5, **options)
    labels = random_labels(lengths, 4, 5)
    output = head(hidden, lengths, labels)
    labels = labels.masked_fill(~span_mask(lengths, 5, width), -100)  # wider spans take no part
    targets = smooth_boundaries(labels, 4, smoothing, distance).to(hidden.dtype)  # of the labels alone, where it is 0
    spans = -(targets * output.span_logits.log_softmax(-1)).sum(-1)
    candidates = -(gather_spans(targets, output.candidates) * output.logits.log_softmax(-1)).sum(-1)
    aux, main = (
        torch.cat(rows).mean() if reduction == "batch" else torch.stack([row.mean() for row in rows]).mean()
        for rows in (
            [row[known] for row, known in zip(spans, labels != -100, strict=True)],
            [row[mask] for row, mask in zip(candidates, output.candidate_mask, strict=True)],
        )
    )
    torch.testing.assert_close(output.loss_aux, aux, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(output.loss_main, main, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(output.loss, 0.5 * output.loss_aux + output.loss_main)


def random_label_sets(lengths, num_labels, num_words):
    """Labels of spans that can have several: [B, N, N, R - 1] of 1, 0 and, for some and beyond the spans, -100."""
    columns = [random_labels(lengths, 3, num_words, seed) for seed in range(num_labels - 1)]
    return torch.stack(columns, dim=-1).where(torch.stack(columns, dim=-1) < 2, -100)


@pytest.mark.parametrize("rank", [None, 3])
def test_losses_of_several_labels_add_up_label_by_label(rank):
    head, hidden, lengths = make_head(multi_label=True, triaffine_rank=rank)
    assert head.label_bias.shape == (3,)
    labels, valid = random_label_sets(lengths, 4, 5), span_mask(lengths, 5)
    output = head(hidden, lengths, labels)
    assert output.span_logits[~valid].sigmoid().eq(0).all()

    def mean(all_logits, all_labels, masks):
        losses = []
        for logits, wanted, mask in zip(all_logits, all_labels, masks, strict=True):
            probability, wanted = logits[mask].sigmoid(), wanted[mask]
            by_label = -torch.where(wanted == 1, probability.log(), (1 - probability).log())
            counted = (wanted != -100).any(-1)
            losses.append(by_label.where(wanted != -100, 0.0).sum(-1)[counted].mean())
        return torch.stack(losses).nanmean()

    torch.testing.assert_close(output.loss_aux, mean(output.span_logits, labels, valid))
    of_candidates = gather_spans(labels, output.candidates)
    torch.testing.assert_close(output.loss_main, mean(output.logits, of_candidates, output.candidate_mask))


def test_no_gradient_through_the_choice_of_candidates_or_to_padding():
    head, hidden, lengths = make_head()
    output = head(hidden.requires_grad_(), lengths, random_labels(lengths, 4, 5))
    assert not output.candidates.requires_grad
    output.loss.backward()
    for row, length in enumerate(lengths.tolist()):
        assert (hidden.grad[row, length:] == 0).all()
        assert (hidden.grad[row, :length] != 0).any()


def test_hooks_and_dropout_of_each_layer_have_their_effect():
    head, hidden, lengths = make_head(mlp_dropout=0.5)
    expected, called = head(hidden, lengths).span_logits, []
    head.scoring.inside[0].register_forward_hook(lambda *_: called.append("hook"))
    torch.testing.assert_close(head(hidden, lengths).span_logits, expected)
    assert called
    head.train().scoring.inside[2].p = 0.0
    for mlp in (head.attention.inside, *head.attention.boundaries.children(), *head.scoring.boundaries.children()):
        mlp[2].p = 0.0
    torch.testing.assert_close(head(hidden, lengths).span_logits, expected)


def test_max_span_width_leaves_wider_spans_out():
    head, hidden, lengths = make_head()
    free = head(hidden, lengths)
    head.config.max_span_width = 2
    narrow = head(hidden, lengths)
    assert (narrow.candidates[..., 1] - narrow.candidates[..., 0]).max() == 1
    kept = span_mask(lengths, 5, 2)
    torch.testing.assert_close(narrow.span_logits[kept], free.span_logits[kept])
    assert (narrow.span_logits[~kept].argmax(-1) == 3).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_keeps_softmax_and_losses_in_float32(dtype):
    head, hidden, lengths = make_head(triaffine_rank=8)
    labels = random_labels(lengths, 4, 5)
    exact = head(hidden.requires_grad_(), lengths, labels)
    (gradient,) = torch.autograd.grad(exact.loss, hidden)
    output = head.to(dtype)(hidden.to(dtype), lengths, labels)
    torch.testing.assert_close(
        torch.autograd.grad(output.loss, hidden)[0], gradient, rtol=0, atol=0.1 * gradient.amax().item()
    )
    assert output.loss_aux.dtype == output.loss_main.dtype == output.span_attentions.dtype == torch.float32
    torch.testing.assert_close(output.loss.double(), exact.loss, rtol=0.1, atol=0.1)


@pytest.mark.nightly
@pytest.mark.parametrize("rank", [None, 3], ids=["full", "rank3"])
def test_compiled_head_is_the_same(rank):
    """Traced with its breaks, forward and backward; the compiler's own code is not made here."""
    head, hidden, lengths = make_head(triaffine_rank=rank)
    labels = random_labels(lengths, 4, 5)
    expected = head(hidden, lengths, labels)
    expected_gradients = torch.autograd.grad(expected.loss, list(head.parameters()))
    compiled = torch.compile(head, backend="aot_eager")(hidden, lengths, labels)
    torch.testing.assert_close(compiled.loss, expected.loss)
    torch.testing.assert_close(torch.autograd.grad(compiled.loss, list(head.parameters())), expected_gradients)
