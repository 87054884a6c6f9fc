"""The modules of the span stage: attention, scoring, and their triaffine tensors.

They project words, and return the projections as factors for `triaffine_ops.py`; `span_head_triaffine.py` combines
them. What a kind of attention or scoring is and has is declared in `kinds_triaffine.py`.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import initialization as init

from .configuration_triaffine import TriaffineConfig
from .kinds_triaffine import Kind
from .triaffine_blocks import ACCELERATION, is_plain
from .triaffine_ops import Factor, TriaffineWeight, additive_factor, append_one, triaffine_factor

WordVectors = dict[nn.Module, Tensor]  # by the module that made them: [B, N, d], of boundaries [2, B, N, d]

# Squared norm of the output of a new two-layer MLP for words near 0, as a new BiLSTM returns: torch initializes the d
# numbers of the last bias with variance 1/(3d).
SMALLEST_SQUARED_NORM = 1 / 3


class MLP(nn.Sequential):
    """Linear layers with ReLU and dropout between them, none after the last."""

    def __init__(self, input_size: int, size: int, layers: int, dropout: float):
        modules: list[nn.Module] = [nn.Linear(input_size, size)]
        for _ in range(layers - 1):
            modules += [nn.ReLU(), nn.Dropout(dropout), nn.Linear(size, size)]
        super().__init__(*modules)


class TriaffineTensor(nn.Module):
    """The weights W (or V): one (d+1) × d × (d+1) slice per label, or its rank-ρ factors.

    Stored as [R, d, d+1, d+1], axes label, inside, head, tail, so that contracting it with the inside words is one
    matrix product, which needs a copy of the tensor only in another dtype.

    At rank ρ: W_r[a, c, e] = Σ_ρ head_r[a, ρ] · inside_r[c, ρ] · tail_r[e, ρ].
    """

    def __init__(self, labels: int, dim: int, rank: int | None, std: float):
        super().__init__()
        self.std = std
        self.rank = rank
        self.squared_norm = SMALLEST_SQUARED_NORM  # of inside vectors, for which low-rank factors are drawn
        if rank is None:
            self.weight = nn.Parameter(torch.empty(labels, dim, dim + 1, dim + 1))
        else:
            self.head = nn.Parameter(torch.empty(labels, dim + 1, rank))
            self.inside = nn.Parameter(torch.empty(labels, dim, rank))
            self.tail = nn.Parameter(torch.empty(labels, dim + 1, rank))
        self.reset_parameters()

    def forward(self) -> TriaffineWeight:
        """The weights for one forward pass, shared by all contractions of that pass."""
        if self.rank is None:
            return ACCELERATION.full_weight(self.weight)
        return self.head, self.inside, self.tail

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draws W ~ N(0, σ²) if full, low-rank factors so that a score has unit variance at any rank and width.

        Projected vectors then have variance ρ^(-1/3) per component, their products 1/ρ, the sum over ρ 1. Factors that
        match the variance of a full tensor hardly learn: the gradient of each is a product with the other two.
        """
        if self.rank is None:
            init.normal_(self.weight, std=self.std)
            return
        projected_std = self.rank ** (-1 / 6)
        for factor, extra in ((self.head, 1.0), (self.inside, 0.0), (self.tail, 1.0)):
            init.normal_(factor, std=projected_std / (self.squared_norm + extra) ** 0.5)

    @torch.no_grad()
    def match_inputs(self, squared_norm: float) -> None:
        """Scales newly drawn low-rank factors for inside vectors of this squared norm; boundaries have a 1 appended."""
        for factor, extra in ((self.head, 1.0), (self.inside, 0.0), (self.tail, 1.0)):
            factor.mul_(((self.squared_norm + extra) / (squared_norm + extra)) ** 0.5)
        self.squared_norm = squared_norm


class Boundaries(nn.Module):
    """The MLPs of the head and the tail of a span, for [`project_words`]."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.head = MLP(config.hidden_size, config.triaffine_dim, 2, config.mlp_dropout)
        self.tail = MLP(config.hidden_size, config.triaffine_dim, 2, config.mlp_dropout)


def project_words(hidden: Tensor, modules: Iterable[MLP | Boundaries]) -> WordVectors:
    """Words [B, N, H] → outputs of two-layer MLPs: [B, N, d] of an [`MLP`], [2, B, N, d] of [`Boundaries`].

    Two products compute all MLPs, because many small ones take longer to launch than to run. If an MLP has layers of
    other classes (such as adapters), hooks or a different dropout, the MLPs are called one by one.
    """
    modules = list(dict.fromkeys(modules))
    mlps: list[Any] = [mlp for module in modules for mlp in _mlps_of(module)]
    kinds = nn.Linear, nn.ReLU, nn.Dropout, nn.Linear
    are_plain = all(is_plain(mlp, MLP) and len(mlp) == 4 and all(map(is_plain, mlp, kinds)) for mlp in mlps)
    if are_plain and len({mlp[2].p for mlp in mlps}) == 1:
        first, _, dropouts, last = zip(*mlps, strict=True)
        values = functional.linear(
            hidden, torch.cat([layer.weight for layer in first]), torch.cat([layer.bias for layer in first])
        )
        values = dropouts[0](values.relu()).flatten(0, 1).unflatten(-1, (len(mlps), -1)).transpose(0, 1)  # [k, B·N, d]
        biases, weights = (torch.stack([getattr(layer, name) for layer in last]) for name in ("bias", "weight"))
        vectors = torch.baddbmm(biases.unsqueeze(1), values, weights.mT).unflatten(1, hidden.shape[:2])
    else:
        vectors = torch.stack([mlp(hidden) for mlp in mlps])
    parts = vectors.split([len(_mlps_of(module)) for module in modules])
    pairs = zip(modules, parts, strict=True)
    return {module: part if isinstance(module, Boundaries) else part.squeeze(0) for module, part in pairs}


def _mlps_of(module: MLP | Boundaries) -> list[MLP]:
    return [module.head, module.tail] if isinstance(module, Boundaries) else [module]


def tensor_of(config: TriaffineConfig, kind: Kind) -> TriaffineTensor:
    """W of an attention or V of a scoring: a slice per label, or one that all labels share."""
    labels = config.num_scores if kind.by_label else 1
    return TriaffineTensor(labels, config.triaffine_dim, config.triaffine_rank, config.triaffine_init_std)


class SpanPart(nn.Module):
    """An attention or a scoring: projects words by its MLPs, and makes of them the factor of its scores.

    The scores are s_ijkr of an attention, or o_ijkr of a scoring, where p_ijr = Σ_k α_ijkr o_ijkr.
    """

    triaffine: TriaffineTensor  # W or V, if the kind has it

    def __init__(self, config: TriaffineConfig, kind: Kind):
        super().__init__()
        self.inside = MLP(config.hidden_size, config.triaffine_dim, 2, config.mlp_dropout)
        self.boundaries = Boundaries(config) if kind.has_boundaries else None

    def word_mlps(self) -> list[MLP | Boundaries]:
        """Its MLPs of words, for [`project_words`]."""
        return [self.inside] if self.boundaries is None else [self.boundaries, self.inside]

    def forward(self, words: WordVectors, shared: Boundaries | None = None) -> Factor:
        """Words as projected by `word_mlps`, and by the boundaries of another part if it shares them → the factor."""
        boundaries = shared if self.boundaries is None else self.boundaries
        return self.factor(words[self.inside], None if boundaries is None else words[boundaries])

    def factor(self, insides: Tensor, ends: Tensor | None) -> Factor:
        """insides [B, N, d] and ends [2, B, N, d], if there are boundaries → the factor."""
        raise NotImplementedError


class TriaffinePart(SpanPart):
    """TriAff(h_i, h_j, h_k, W_r): s, also with one W for all labels (c), or o."""

    def __init__(self, config: TriaffineConfig, kind: Kind):
        super().__init__(config, kind)
        self.triaffine = tensor_of(config, kind)

    def factor(self, insides: Tensor, ends: Tensor | None) -> Factor:
        assert ends is not None
        return triaffine_factor(ends, insides, self.triaffine())


class LabelAttention(SpanPart):
    """s = q_r · h_k, without boundaries (d)."""

    def __init__(self, config: TriaffineConfig, kind: Kind):
        super().__init__(config, kind)
        self.query = nn.Parameter(torch.empty(config.num_scores, config.triaffine_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.query)

    def factor(self, insides: Tensor, ends: Tensor | None) -> Factor:
        return additive_factor(insides @ self.query.transpose(0, 1))


class LinearPart(SpanPart):
    """V_r h_k + c_r: o (b); with boundaries V_r (h_i ‖ h_j ‖ h_k) + c_r: o (f), or s (e).

    (e) is as printed in the paper, although equal to (d): terms in i and j alone cancel in a softmax over k.
    """

    def __init__(self, config: TriaffineConfig, kind: Kind):
        super().__init__(config, kind)
        dim, labels = config.triaffine_dim, config.num_scores
        self.linear_inside = nn.Linear(dim, labels)
        self.reads_boundaries = kind.has_boundaries or kind.shares_boundaries
        if self.reads_boundaries:
            self.linear_head, self.linear_tail = nn.Linear(dim, labels), nn.Linear(dim, labels)

    def factor(self, insides: Tensor, ends: Tensor | None) -> Factor:
        insides = self.linear_inside(insides)
        if not self.reads_boundaries:
            return additive_factor(insides)
        assert ends is not None
        return additive_factor(insides, self.linear_head(ends[0]), self.linear_tail(ends[1]))


class BiaffineScoring(nn.Module):
    """Without inside words (a): p_ijr = [h_i; 1]ᵀ V_r [h_j; 1], V ~ N(0, 1) as published."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        size = config.triaffine_dim + 1
        self.boundaries = Boundaries(config)
        self.weight = nn.Parameter(torch.empty(config.num_scores, size, size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.weight)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden [B, N, H] → p without its bias [B, R, N, N]."""
        heads, tails = append_one(project_words(hidden, [self.boundaries])[self.boundaries])
        return _biaffine(heads, tails, self.weight)


class SharedBiaffineScoring(nn.Module):
    """(a) as published: one projection without activation for both boundaries, and a linear term; all N(0, 1)."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        labels, size, dropout = config.num_scores, config.hidden_size // 2, config.mlp_dropout
        self.projection = nn.Sequential(
            nn.Linear(config.hidden_size, size), nn.Dropout(dropout), nn.Linear(size, size), nn.Dropout(dropout)
        )
        self.linear = nn.Parameter(torch.empty(labels, size))
        self.weight = nn.Parameter(torch.empty(labels, size, size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        init.normal_(self.linear)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden [B, N, H] → p without its bias [B, R, N, N]."""
        projected = self.projection(hidden)
        linear = (projected @ self.linear.transpose(0, 1)).transpose(1, 2)
        return _biaffine(projected, projected, self.weight) + linear.unsqueeze(-1) + linear.unsqueeze(-2)


def _biaffine(heads: Tensor, tails: Tensor, weight: Tensor) -> Tensor:
    """heads, tails [B, N, a] and weight [R, a, a] → [B, R, N, N]."""
    return heads.unsqueeze(1) @ weight @ tails.unsqueeze(1).transpose(-1, -2)


# The modules of the kinds in `kinds_triaffine.py`. Biaffine scorings are apart: without inside words, they return p.
PART_MODULES: dict[str, type[SpanPart]] = {
    "triaffine": TriaffinePart,
    "triaffine_no_label": TriaffinePart,
    "label": LabelAttention,
    "linear": LinearPart,
    "linear_boundary": LinearPart,
    "linear_boundary_shared": LinearPart,
}
BIAFFINE_MODULES: dict[str, type[BiaffineScoring] | type[SharedBiaffineScoring]] = {
    "biaffine": BiaffineScoring,
    "biaffine_shared": SharedBiaffineScoring,
}
