"""Time and memory of the triaffine head: this package's forms and plain einsums, full tensors and low rank.

    OMP_NUM_THREADS=1 python benchmarks/triaffine.py --clock processor --output benchmarks/results/triaffine.jsonl

Forms: `published`, plain einsums in the layout of the published implementation (`published.py`), to compare with;
`reference`, the package's own definition (`head.reference = True`), to check values; `full` and `low_rank`, what it
computes with. For each batch size and sentence length: forward, and a step (forward and backward), all forms in turn.
A row is only written if scores and gradients agree. With rounded products, the scores of the span stage must: forms
that differ in the last bits choose other candidates. The floor of a step is three times the forward multiplications of
every contraction with W and V, both stages, at the rate that this machine reaches for products of that shape.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measuring import CLOCKS, Rows, available_bytes, peak_extra_bytes, product_rate, time_interleaved
from published import PublishedHead
from torch import Tensor

from modeling_triaffine import TriaffineConfig
from modeling_triaffine.model.span_head_triaffine import NestedNEROutput, TriaffineSpanHead

PLAIN_FORMS = ["published", "reference"]
FORMS = [*PLAIN_FORMS, "full", "low_rank"]
PASSES = ["forward", "step"]
RATIOS = [("full", "published"), ("published", "reference"), ("low_rank", "full")]
SIZES = [(1, 30), (8, 30), (1, 60), (8, 60), (1, 120), (1, 192), (1, 512)]
HIDDEN_SIZE = 384
# Largest difference of logits and gradients, relative to the largest of each.
TOLERANCE = {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 0.1}
# Part of the available memory that a plain form may need to be run.
PLAIN_SHARE = 0.6

Head = TriaffineSpanHead | PublishedHead


def main() -> None:
    arguments = parse_arguments()
    torch.manual_seed(0)
    if arguments.dtype == "tf32":
        torch.set_float32_matmul_precision("high")
    rows = Rows("the triaffine head, seconds and extra memory")
    for dim in arguments.dims:
        heads = build_heads(dim, arguments)
        for batch, words in arguments.sizes:
            for row in measure(heads, batch, words, dim, arguments):
                rows.add(**row)
    rows.write(arguments.output)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=parse_size, default=SIZES, help="BATCHxWORDS …")
    parser.add_argument("--dims", nargs="+", type=int, default=[96, 256], help="Widths d of the triaffine.")
    parser.add_argument("--passes", nargs="+", choices=PASSES, default=PASSES)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS, help="Forms of the head.")
    parser.add_argument("--labels", type=int, default=8)
    parser.add_argument("--rank", type=int, default=64, help="Rank of the low-rank head.")
    parser.add_argument("--candidates", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default="wall", help="`processor`: processor time, for a CPU with other load."
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--dtype", choices=list(TOLERANCE), default="float32", help="tf32: float32 in tensor cores; bfloat16: autocast."
    )
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def parse_size(text: str) -> tuple[int, int]:
    batch, words = text.split("x")
    return int(batch), int(words)


def build_heads(dim: int, arguments: argparse.Namespace) -> dict[str, Head]:
    """The head that computes each form; forms with full tensors have equal weights."""

    def build(rank: int | None) -> TriaffineSpanHead:
        config = TriaffineConfig(
            num_labels=arguments.labels,
            hidden_size=HIDDEN_SIZE,
            triaffine_dim=dim,
            triaffine_rank=rank,
            max_candidates=arguments.candidates,
            triaffine_init_std=0.05,  # scores as large as those of a trained model
        )
        return TriaffineSpanHead(config).eval().to(arguments.device)

    heads: dict[str, Head] = {}
    if set(arguments.forms) - {"low_rank"}:
        heads |= dict.fromkeys(("reference", "full"), build(None))
    if "published" in arguments.forms:
        heads["published"] = PublishedHead(heads["full"])
    if "low_rank" in arguments.forms:
        heads["low_rank"] = build(arguments.rank)
    return heads


def measure(
    heads: dict[str, Head], batch: int, words: int, dim: int, arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """A row for each of the passes; without the plain forms where these do not fit into memory."""
    hidden = torch.randn(batch, words, HIDDEN_SIZE, device=arguments.device)
    lengths = torch.full((batch,), words, device=arguments.device)
    labels = torch.randint(arguments.labels, (batch, words, words), device=arguments.device)
    clock = CLOCKS[arguments.clock]
    rows = []
    for what in arguments.passes:
        fits = plain_forms_fit(batch, words, dim, what, arguments)
        forms = [form for form in arguments.forms if fits or form not in PLAIN_FORMS]
        calls = {form: make_call(heads[form], form, what, hidden, lengths, labels, arguments) for form in forms}
        difference = largest_difference(calls, TOLERANCE[arguments.dtype])
        megabytes = {form: extra_megabytes(heads[form], call, arguments.device) for form, call in calls.items()}
        # Every call has run at least once by now.
        seconds = time_interleaved(calls, arguments.repeats, arguments.device, clock=clock, warm_up=False)
        row: dict[str, Any] = {"what": what, "batch": batch, "words": words, "dim": dim, "labels": arguments.labels}
        row |= {"rank": arguments.rank, "dtype": arguments.dtype, "threads": torch.get_num_threads()}
        row |= {"clock": arguments.clock, "repeats": arguments.repeats}
        row |= {"seconds": rounded(seconds), "extra_megabytes": megabytes, "difference": difference}
        if "full" in forms:
            floor = floor_seconds(batch, words, dim, what, arguments)
            row |= {"floor_seconds": round(floor, 4), "full_over_floor": round(seconds["full"] / floor, 2)}
        for form, other in RATIOS:
            if form in forms and other in forms:
                row[f"{form}_over_{other}"] = round(seconds[form] / seconds[other], 3)
        if len(forms) < len(arguments.forms):
            row["plain_forms"] = "do not fit into memory"
        rows.append(row)
    return rows


def make_call(
    head: Head,
    form: str,
    what: str,
    hidden: Tensor,
    lengths: Tensor,
    labels: Tensor,
    arguments: argparse.Namespace,
) -> Callable[[], dict[str, Tensor]]:
    half, exact = arguments.dtype == "bfloat16", arguments.dtype == "float32"

    def call() -> dict[str, Tensor]:
        if isinstance(head, TriaffineSpanHead):
            head.reference = form == "reference"
        head.zero_grad()
        with torch.autocast(arguments.device.split(":")[0], torch.bfloat16, enabled=half):
            if what == "forward":
                with torch.no_grad():
                    return scores(head(hidden, lengths))
            output = head(hidden, lengths, labels)
        output.loss.backward()
        return scores(output) | (triaffine_gradients(head) if exact else {})

    def scores(output: NestedNEROutput) -> dict[str, Tensor]:
        # Pairs i > j are no spans, and may have any score.
        of_spans = {"span_logits": output.span_logits.detach().permute(0, 3, 1, 2).triu()}
        return of_spans | ({"logits": output.logits.detach()} if exact else {})

    return call


def triaffine_gradients(head: Head) -> dict[str, Tensor]:
    if isinstance(head, PublishedHead):
        return head.triaffine_gradients()
    return {name: value.grad for name, value in head.named_parameters() if "triaffine" in name}


def largest_difference(calls: dict[str, Callable[[], dict[str, Tensor]]], tolerance: float) -> float:
    """Largest relative difference between forms with the same weights; SystemExit if it exceeds `tolerance`."""
    compared = [form for form in calls if form != "low_rank"]
    if not compared:
        return 0.0
    expected = {name: value.clone() for name, value in calls[compared[0]]().items()}
    largest = 0.0
    for form in compared[1:]:
        for name, value in calls[form]().items():
            difference = ((value - expected[name]).abs().max() / expected[name].abs().max()).item()
            if not difference <= tolerance:
                raise SystemExit(f"{form} and {compared[0]} disagree: {name} by {difference:.1e} of its largest value.")
            largest = max(largest, difference)
    return float(f"{largest:.1e}")


def extra_megabytes(head: Head, call: Callable[[], Any], device: str) -> float | None:
    """Peak memory beyond weights and gradients."""
    head.zero_grad()
    extra = peak_extra_bytes(call, device)
    gradients = sum(value.grad.nbytes for value in head.parameters() if value.grad is not None)
    return None if extra is None else round((extra - gradients) / 1e6, 1)


def plain_forms_fit(batch: int, words: int, dim: int, what: str, arguments: argparse.Namespace) -> bool:
    """True if what plain einsums compute, and in a step keep, needs clearly less than the available memory."""
    size = arguments.labels * 4
    contracted, cube = batch * words * (dim + 1) ** 2 * size, batch * words**3 * size
    halfway = batch * words**2 * (dim + 1) * size
    weights = dim * (dim + 1) ** 2 * size
    needed = (6 if what == "step" else 1.5) * (contracted + halfway + cube + weights)
    return needed < PLAIN_SHARE * available_bytes(arguments.device)


def floor_seconds(batch: int, words: int, dim: int, what: str, arguments: argparse.Namespace) -> float:
    """Time of the contractions with W and V alone: of each word, and of each candidate, with both tensors."""
    dtype = torch.bfloat16 if arguments.dtype == "bfloat16" else torch.float32
    contracted = batch * (words + min(arguments.candidates, words * (words + 1) // 2))
    operations = 2 * contracted * dim * (dim + 1) ** 2 * arguments.labels * 2
    clock = CLOCKS[arguments.clock]
    rate = product_rate(batch * words, dim, (dim + 1) ** 2, dtype, arguments.device, clock)
    return (3 if what == "step" else 1) * operations / rate


def rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in seconds.items()}


if __name__ == "__main__":
    main()
