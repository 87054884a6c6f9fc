"""The modules of the span stage: attention, scoring, and their triaffine tensors.

They project words, and return the projections as factors for `triaffine_ops.py`; `span_head_triaffine.py` combines
them.
"""

import torch
from torch import Tensor, nn
from transformers import initialization as init

from .configuration_triaffine import TriaffineConfig
from .triaffine_ops import AdditiveFactor, Factor, TriaffineFactor, TriaffineWeight, append_one
from .triaffine_weights import hold_weight

# Squared norm of the output of a new two-layer MLP for words near 0, as a new BiLSTM returns: torch initializes the d
# numbers of the last bias with variance 1/(3d).
SMALLEST_SQUARED_NORM = 1 / 3


def mlp_squared_norm(second_moment: float, hidden_size: int, dim: int) -> float:
    """Expected squared norm of a new two-layer MLP's output (section 1) for inputs whose components have this moment.

    torch initializes weights and biases of a layer with n inputs with variance 1/(3n): outputs of the first layer have
    variance (second moment + 1/H) / 3, ReLU halves the mean square, and the d outputs of the second layer have a third.
    """
    return dim * (second_moment + 1 / hidden_size) / 18 + SMALLEST_SQUARED_NORM


class MLP(nn.Sequential):
    """Linear layers with ReLU and dropout between them, none after the last (section 1)."""

    def __init__(self, input_size: int, size: int, layers: int, dropout: float):
        modules: list[nn.Module] = [nn.Linear(input_size, size)]
        for _ in range(layers - 1):
            modules += [nn.ReLU(), nn.Dropout(dropout), nn.Linear(size, size)]
        super().__init__(*modules)


class TriaffineTensor(nn.Module):
    """The weights W (or V): one (d+1) × d × (d+1) slice per label, or its rank-ρ factors.

    Stored as [R, d, d+1, d+1], axes label, inside, head, tail, so that contracting it with the inside words is one
    matrix product without a copy. At rank ρ: W_r[a, c, e] = Σ_ρ head_r[a, ρ] · inside_r[c, ρ] · tail_r[e, ρ].
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
            return hold_weight(self.weight)
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


class SpanAttention(nn.Module):
    """Attention scores s_ijkr of a span's inside words (section 3, ablations (c), (d), (e))."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.kind = config.attention
        dim, labels = config.triaffine_dim, config.num_scores
        self.inside = MLP(config.hidden_size, dim, 2, config.mlp_dropout)
        if self.kind == "label":
            self.query = nn.Parameter(torch.empty(labels, dim))
            self.reset_parameters()
            return
        self.boundaries = Boundaries(config)
        if self.kind == "linear":
            # As printed in the paper, although equal to (d): terms in i and j alone cancel in a softmax over k.
            self.linear_head, self.linear_tail = nn.Linear(dim, labels), nn.Linear(dim, labels)
            self.linear_inside = nn.Linear(dim, labels)
        else:
            labels = 1 if self.kind == "triaffine_no_label" else labels
            self.triaffine = TriaffineTensor(labels, dim, config.triaffine_rank, config.triaffine_init_std)

    def reset_parameters(self) -> None:
        if self.kind == "label":
            init.normal_(self.query)

    def forward(self, hidden: Tensor) -> tuple[Factor, tuple[Tensor, Tensor] | None]:
        """hidden [B, N, H] → s as a factor, and boundary vectors for scoring="linear_boundary_shared"."""
        insides = self.inside(hidden)
        if self.kind == "label":
            return AdditiveFactor(insides @ self.query.transpose(0, 1)), None
        heads, tails = self.boundaries(hidden)
        if self.kind == "linear":
            factor: Factor = AdditiveFactor(
                self.linear_inside(insides), self.linear_head(heads), self.linear_tail(tails)
            )
        else:
            factor = TriaffineFactor(append_one(heads), insides, append_one(tails), self.triaffine())
        return factor, (heads, tails)


class SpanScoring(nn.Module):
    """Scores o_ijkr of a span's inside words (section 4, ablations (b), (f)), of which p_ijr = Σ_k α_ijkr o_ijkr."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.kind = config.scoring
        dim, labels = config.triaffine_dim, config.num_scores
        self.inside = MLP(config.hidden_size, dim, 2, config.mlp_dropout)
        if self.kind in ("triaffine", "linear_boundary"):
            self.boundaries = Boundaries(config)
        if self.kind == "triaffine":
            self.triaffine = TriaffineTensor(labels, dim, config.triaffine_rank, config.triaffine_init_std)
        else:
            self.linear_inside = nn.Linear(dim, labels)
        if self.kind in ("linear_boundary", "linear_boundary_shared"):
            self.linear_head, self.linear_tail = nn.Linear(dim, labels), nn.Linear(dim, labels)

    def forward(self, hidden: Tensor, shared: tuple[Tensor, Tensor] | None) -> tuple[Factor, Tensor]:
        """hidden [B, N, H], the attention's boundaries → o as a factor, and the values [B, N, d] averaged in h_ijr."""
        values = self.inside(hidden)
        if self.kind == "linear":
            return AdditiveFactor(self.linear_inside(values)), values
        boundaries = shared if self.kind == "linear_boundary_shared" else self.boundaries(hidden)
        assert boundaries is not None  # by `TriaffineConfig.validate_combination`
        heads, tails = boundaries
        if self.kind == "triaffine":
            return TriaffineFactor(append_one(heads), values, append_one(tails), self.triaffine()), values
        scores = self.linear_inside(values), self.linear_head(heads), self.linear_tail(tails)
        return AdditiveFactor(*scores), values


class BiaffineScoring(nn.Module):
    """Ablation (a), without inside words: p_ijr = [h_i; 1]ᵀ V_r [h_j; 1] with two MLPs, or its published form."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.shared = config.scoring == "biaffine_shared"
        labels = config.num_scores
        if self.shared:
            size = config.hidden_size // 2
            dropout = config.mlp_dropout
            self.projection = nn.Sequential(
                nn.Linear(config.hidden_size, size), nn.Dropout(dropout), nn.Linear(size, size), nn.Dropout(dropout)
            )
            self.linear = nn.Parameter(torch.empty(labels, size))
        else:
            size = config.triaffine_dim + 1
            self.boundaries = Boundaries(config)
        self.weight = nn.Parameter(torch.empty(labels, size, size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """N(0, 1), as published."""
        init.normal_(self.weight)
        if self.shared:
            init.normal_(self.linear)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden [B, N, H] → p without its bias [B, R, N, N]."""
        if self.shared:
            heads = tails = self.projection(hidden)
        else:
            heads, tails = (append_one(boundary) for boundary in self.boundaries(hidden))
        # [B, 1, N, a] × [R, a, e] × [B, 1, e, N]
        scores = heads.unsqueeze(1) @ self.weight @ tails.unsqueeze(1).transpose(-1, -2)
        if self.shared:
            linear = (heads @ self.linear.transpose(0, 1)).transpose(1, 2)
            scores = scores + linear.unsqueeze(-1) + linear.unsqueeze(-2)
        return scores
