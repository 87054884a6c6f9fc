"""Paired bootstrap: does the choice of test sentences explain the difference in F1 of two models?"""

from typing import Any

import numpy as np
import numpy.typing as npt

from .scoring import Sentences, paired_sentences

Numbers = npt.NDArray[np.float64]

CONFIDENCE = 0.95


def paired_bootstrap(
    predictions: Sentences,
    other_predictions: Sentences,
    references: Sentences,
    samples: int = 10_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Compares the micro-averaged F1 of two models on the same sentences.

    A sample draws as many sentences as the corpus has, with replacement, with both models' predictions for them; δ is
    the difference in F1 on the corpus, δ* that on a sample. Sentences of one document count as independent, and samples
    of few sentences hardly differ, so that p and the interval are then too small.

    Sampling, `wins` and the interval are those of Koehn (EMNLP 2004). The p-value is that of Berg-Kirkpatrick, Burkett
    and Klein (EMNLP 2012), which takes δ* − δ as the distribution of the difference of equally good models; here it is
    two-sided, and the corpus itself counts as a sample, so that p is never 0.

    Returns:
        `difference` (δ), `interval` (2.5 % and 97.5 % quantiles of δ*), `p_value`, `wins` (the share of samples with
        δ* > 0), `confidence` (of the interval, 0.95), `samples`, `seed`.
    """
    pairs = (paired_sentences(side, references) for side in (predictions, other_predictions))
    # Correct predictions, and predictions plus gold entities: [sentences, 2, models].
    rows = [[(len(found & gold), len(found) + len(gold)) for found, gold in of_model] for of_model in pairs]
    counts = np.array(rows, dtype=float).transpose(1, 2, 0)
    whole = _difference(counts.sum(axis=0))
    generator, share = np.random.default_rng(seed), np.full(len(counts), 1 / len(counts))
    times = (generator.multinomial(len(counts), share) for _ in range(samples))
    drawn = _difference(np.stack([np.tensordot(of_sample, counts, axes=1) for of_sample in times]))
    # Differences that are equal up to rounding count as equal.
    as_extreme = np.abs(drawn - whole) >= abs(whole) - 1e-12
    tail = (1 - CONFIDENCE) / 2
    return {
        "difference": float(whole),
        "interval": [float(value) for value in np.quantile(drawn, [tail, 1 - tail])],
        "p_value": (1 + int(as_extreme.sum())) / (1 + samples),
        "wins": float((drawn > 0).mean()),
        "confidence": CONFIDENCE,
        "samples": samples,
        "seed": seed,
    }


def _difference(totals: Numbers) -> Numbers:
    """F1 of the first model minus that of the second: totals [..., 2, models] → [...]."""
    correct, entities = totals[..., 0, :], totals[..., 1, :]
    f1 = np.divide(2 * correct, entities, out=np.zeros(correct.shape), where=entities > 0)
    return f1[..., 0] - f1[..., 1]
