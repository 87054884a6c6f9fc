"""The modules of the span stage: attention, scoring, and their triaffine tensors.

They project words, and return the projections as factors for `triaffine_ops.py`; `span_head_triaffine.py` combines
them. What a kind of attention or scoring is and has is declared in `kinds_triaffine.py`.
"""

import torch
from torch import Tensor, nn
from transformers import initialization as init

from .configuration_triaffine import TriaffineConfig
from .triaffine_ops import AdditiveFactor, Factor, TriaffineFactor, TriaffineWeight, append_one
from .triaffine_weights import ACCELERATION

HeadsAndTails = tuple[Tensor, Tensor]  # each [B, N, d]

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
    matrix product, without a copy in its own type.

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
        if self.rank is None:
            return
        for factor, extra in ((self.head, 1.0), (self.inside, 0.0), (self.tail, 1.0)):
            factor.mul_(((self.squared_norm + extra) / (squared_norm + extra)) ** 0.5)
        self.squared_norm = squared_norm

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={tuple(value.shape)}" for name, value in self.named_parameters())


class Boundaries(nn.Module):
    """The MLPs of the head and the tail of a span: [B, N, H] → 2 × [B, N, d]."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.head = MLP(config.hidden_size, config.triaffine_dim, 2, config.mlp_dropout)
        self.tail = MLP(config.hidden_size, config.triaffine_dim, 2, config.mlp_dropout)

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return self.head(hidden), self.tail(hidden)


def attention_tensor(config: TriaffineConfig) -> TriaffineTensor:
    """W: a slice per label, or one that all labels share."""
    labels = config.num_scores if config.attention_kind.by_label else 1
    return TriaffineTensor(labels, config.triaffine_dim, config.triaffine_rank, config.triaffine_init_std)


def scoring_tensor(config: TriaffineConfig) -> TriaffineTensor:
    """V: a slice per label."""
    return TriaffineTensor(config.num_scores, config.triaffine_dim, config.triaffine_rank, config.triaffine_init_std)


class SpanAttention(nn.Module):
    """Attention scores s_ijkr of a span's inside words. Base of the kinds, which make the factor."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.inside = MLP(config.hidden_size, config.triaffine_dim, 2, config.mlp_dropout)
        self.boundaries = Boundaries(config) if config.attention_kind.has_boundaries else None

    def forward(self, hidden: Tensor) -> tuple[Factor, HeadsAndTails | None]:
        """hidden [B, N, H] → s as a factor, and the boundary vectors for a scoring that shares them."""
        boundaries = None if self.boundaries is None else self.boundaries(hidden)
        return self.factor(self.inside(hidden), boundaries), boundaries

    def factor(self, insides: Tensor, boundaries: HeadsAndTails | None) -> Factor:
        """insides [B, N, d] and heads, tails [B, N, d], if the kind has boundaries → s."""
        raise NotImplementedError


class TriaffineAttention(SpanAttention):
    """s = TriAff(h_i, h_j, h_k, W_r), or with one W for all labels (c)."""

    def __init__(self, config: TriaffineConfig):
        super().__init__(config)
        self.triaffine = attention_tensor(config)

    def factor(self, insides: Tensor, boundaries: HeadsAndTails | None) -> Factor:
        return _triaffine_factor(insides, boundaries, self.triaffine)


class LabelAttention(SpanAttention):
    """s = q_r · h_k, without boundaries (d)."""

    def __init__(self, config: TriaffineConfig):
        super().__init__(config)
        self.query = nn.Parameter(torch.empty(config.num_scores, config.triaffine_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.query)

    def factor(self, insides: Tensor, boundaries: HeadsAndTails | None) -> Factor:
        return AdditiveFactor(insides @ self.query.transpose(0, 1))


class LinearAttention(SpanAttention):
    """s = W_r (h_i ‖ h_j ‖ h_k) + c_r (e).

    As printed in the paper, although equal to (d): terms in i and j alone cancel in a softmax over k.
    """

    def __init__(self, config: TriaffineConfig):
        super().__init__(config)
        dim, labels = config.triaffine_dim, config.num_scores
        self.linear_head, self.linear_tail = nn.Linear(dim, labels), nn.Linear(dim, labels)
        self.linear_inside = nn.Linear(dim, labels)

    def factor(self, insides: Tensor, boundaries: HeadsAndTails | None) -> Factor:
        assert boundaries is not None
        heads, tails = boundaries
        return AdditiveFactor(self.linear_inside(insides), self.linear_head(heads), self.linear_tail(tails))


class SpanScoring(nn.Module):
    """Scores o_ijkr of a span's inside words, of which p_ijr = Σ_k α_ijkr o_ijkr. Base of the kinds."""

    triaffine: TriaffineTensor  # V, if the kind has it

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.inside = MLP(config.hidden_size, config.triaffine_dim, 2, config.mlp_dropout)
        self.boundaries = Boundaries(config) if config.scoring_kind.has_boundaries else None

    def forward(self, hidden: Tensor, shared: HeadsAndTails | None) -> tuple[Factor, Tensor]:
        """hidden [B, N, H], the attention's boundaries → o as a factor, and the values [B, N, d] averaged in h_ijr."""
        values = self.inside(hidden)
        return self.factor(values, shared if self.boundaries is None else self.boundaries(hidden)), values

    def factor(self, values: Tensor, boundaries: HeadsAndTails | None) -> Factor:
        """values [B, N, d] and heads, tails [B, N, d]: its own, or else those of the attention → o."""
        raise NotImplementedError


class TriaffineScoring(SpanScoring):
    """o = TriAff(h_i, h_j, h_k, V_r)."""

    def __init__(self, config: TriaffineConfig):
        super().__init__(config)
        self.triaffine = scoring_tensor(config)

    def factor(self, values: Tensor, boundaries: HeadsAndTails | None) -> Factor:
        return _triaffine_factor(values, boundaries, self.triaffine)


class LinearScoring(SpanScoring):
    """o = V_r h_k + c_r (b), or with boundaries V_r (h_i ‖ h_j ‖ h_k) + c_r (f)."""

    def __init__(self, config: TriaffineConfig):
        super().__init__(config)
        dim, labels = config.triaffine_dim, config.num_scores
        self.linear_inside = nn.Linear(dim, labels)
        self.reads_boundaries = config.scoring_kind.has_boundaries or config.scoring_kind.shares_boundaries
        if self.reads_boundaries:
            self.linear_head, self.linear_tail = nn.Linear(dim, labels), nn.Linear(dim, labels)

    def factor(self, values: Tensor, boundaries: HeadsAndTails | None) -> Factor:
        insides = self.linear_inside(values)
        if not self.reads_boundaries:
            return AdditiveFactor(insides)
        assert boundaries is not None
        heads, tails = boundaries
        return AdditiveFactor(insides, self.linear_head(heads), self.linear_tail(tails))


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
        heads, tails = self.boundaries(hidden)
        return _biaffine(append_one(heads), append_one(tails), self.weight)


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


def _triaffine_factor(insides: Tensor, boundaries: HeadsAndTails | None, tensor: TriaffineTensor) -> Factor:
    assert boundaries is not None
    heads, tails = boundaries
    return TriaffineFactor(append_one(heads), insides, append_one(tails), tensor())


def _biaffine(heads: Tensor, tails: Tensor, weight: Tensor) -> Tensor:
    """heads, tails [B, N, a] and weight [R, a, a] → [B, R, N, N]."""
    return heads.unsqueeze(1) @ weight @ tails.unsqueeze(1).transpose(-1, -2)


# The modules of the kinds in `kinds_triaffine.py`; scorings that read no inside words are apart, they return p itself.
ATTENTION_MODULES: dict[str, type[SpanAttention]] = {
    "triaffine": TriaffineAttention,
    "triaffine_no_label": TriaffineAttention,
    "label": LabelAttention,
    "linear": LinearAttention,
}
SCORING_MODULES: dict[str, type[SpanScoring]] = {
    "triaffine": TriaffineScoring,
    "linear": LinearScoring,
    "linear_boundary": LinearScoring,
    "linear_boundary_shared": LinearScoring,
}
BIAFFINE_MODULES: dict[str, type[BiaffineScoring] | type[SharedBiaffineScoring]] = {
    "biaffine": BiaffineScoring,
    "biaffine_shared": SharedBiaffineScoring,
}
