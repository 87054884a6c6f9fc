"""Naive against decomposed triaffine scoring, operator by operator: the table of the paper's appendix B.

    python benchmarks/decomposition.py --output benchmarks/results/decomposition.jsonl

Naive: a span's representation h_ijr = Σ_k α_ijkr h_k is built, then scored. Decomposed: every inside word is scored,
then the scores are summed. Both are exact and written as plain einsums here; beside them stands what this package
computes with. Likewise for the cross-span stage. Times are those of ten forward passes.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measuring import Rows, time_interleaved
from opt_einsum import contract
from torch import Tensor

from modeling_triaffine.model.triaffine_ops import (
    TriaffineFactor,
    cross_span_scores,
    inside_attention_reference,
    span_mask,
    span_scores,
    span_scores_reference,
    triaffine_pairs,
    triaffine_pairs_reference,
)

ITERATIONS = 10
TOLERANCE = 1e-4


def main() -> None:
    arguments = parse_arguments()
    torch.manual_seed(0)
    rows = Rows("naive against decomposed scoring, milliseconds of ten forward passes")
    with torch.no_grad():
        for operator, forms in operators(arguments).items():
            check_agreement(operator, forms)
            seconds = time_interleaved(forms, arguments.repeats, arguments.device)
            milliseconds = {name: round(1000 * ITERATIONS * value, 1) for name, value in seconds.items()}
            ratio = round(seconds["decomposed"] / seconds["naive"], 3)
            sizes = {name: getattr(arguments, name) for name in ("batch", "words", "dim", "labels", "candidates")}
            rows.add(operator=operator, **sizes, milliseconds=milliseconds, decomposed_over_naive=ratio)
    rows.write(arguments.output)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--words", type=int, default=30)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--labels", type=int, default=8)
    parser.add_argument("--candidates", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def operators(arguments: argparse.Namespace) -> dict[str, dict[str, Callable[[], Tensor]]]:
    """Operator → its three forms, each giving the same scores."""
    batch, words, dim, labels = arguments.batch, arguments.words, arguments.dim, arguments.labels

    def draw(*shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(*shape, device=arguments.device)

    weights = [draw(labels, dim, dim + 1, dim + 1, scale=dim**-1.5) for _ in range(2)]
    attention, scoring = (
        TriaffineFactor(draw(batch, words, dim + 1), draw(batch, words, dim), draw(batch, words, dim + 1), weight)
        for weight in weights
    )
    spans = [draw(batch, labels, arguments.candidates, dim) for _ in range(2)]
    # Candidate l has the head and the tail of word l.
    words_of = torch.arange(arguments.candidates, device=arguments.device).view(1, -1, 1).expand(batch, -1, 2)
    query, related = (
        (draw(2, batch, arguments.candidates, dim + 1), span, weight, words_of)
        for span, weight in zip(spans, weights, strict=True)
    )
    lengths = torch.full((batch,), words, device=arguments.device)
    candidate_mask = torch.ones(batch, arguments.candidates, dtype=torch.bool, device=arguments.device)
    real = span_mask(lengths, words).unsqueeze(1)
    alpha = inside_attention_reference(attention.whole_cube())
    return {
        "attention and scoring": {
            "naive": lambda: naive_scores(inside_attention_reference(attention.whole_cube()), scoring) * real,
            "decomposed": lambda: span_scores_reference(attention, scoring, lengths).scores * real,
            "this package": lambda: span_scores(attention, scoring, lengths).scores * real,
        },
        "scoring alone": {
            "naive": lambda: naive_scores(alpha, scoring) * real,
            "decomposed": lambda: (alpha * scoring.whole_cube()).sum(-1) * real,
        },
        "cross-span stage": {
            "naive": lambda: naive_cross_span_scores(query, related),
            "decomposed": lambda: cross_span_scores(
                triaffine_pairs_reference(*query), triaffine_pairs_reference(*related), candidate_mask, "key"
            )[0],
            "this package": lambda: cross_span_scores(
                triaffine_pairs(*query), triaffine_pairs(*related), candidate_mask, "key"
            )[0],
        },
    }


def naive_scores(alpha: Tensor, scoring: TriaffineFactor) -> Tensor:
    """p_ijr = TriAff(h_i, h_j, h_ijr, V_r) from α [B, R, i, j, k]: [B, R, N, N]."""
    spans = contract("brijk,bkc->brijc", alpha, scoring.insides)
    return score_spans(scoring.heads, scoring.tails, spans, scoring.weight)


def score_spans(heads: Tensor, tails: Tensor, spans: Tensor, weight: Any) -> Tensor:
    """TriAff of all (i, j) with a representation of each [B, R, N, N, d]."""
    halfway = contract("bia,rcae->brice", heads, weight)
    return contract("brice,bje,brijc->brij", halfway, tails, spans)


def naive_cross_span_scores(query: tuple[Tensor, ...], related: tuple[Tensor, ...]) -> Tensor:
    """pᶜ_lr = TriAff(h_i, h_j, Σ_g β_lgr h_gr, V_r): [B, m, R]."""
    beta = triaffine_pairs_reference(*query).softmax(-1)
    (heads, tails), spans, weight, _ = related
    seen = contract("brlg,brgc->brlc", beta, spans)
    halfway = contract("bla,rcae->brlce", heads, weight)
    return contract("brlce,ble,brlc->blr", halfway, tails, seen)


def check_agreement(operator: str, forms: dict[str, Callable[[], Tensor]]) -> None:
    expected = forms["naive"]()
    for name, form in forms.items():
        difference = ((form() - expected).abs().max() / expected.abs().max()).item()
        if not difference <= TOLERANCE:
            raise SystemExit(f"{operator}: {name} and naive disagree by {difference:.1e} of the largest score.")


if __name__ == "__main__":
    main()
