"""Names of the published implementation's tensors → parameters of `TriaffineForNestedNER`, with permuted axes."""

import re
from collections.abc import Callable

from torch import Tensor

Turn = Callable[[Tensor], Tensor]


def _same(value: Tensor) -> Tensor:
    return value


def _transposed(value: Tensor) -> Tensor:
    return value.transpose(0, 1)


def _label_first(value: Tensor) -> Tensor:
    """[head, inside, tail, label] → [label, inside, head, tail]."""
    return value.permute(3, 1, 0, 2)


MLPS = {
    "parser_list.0.linear_h": "head.attention.boundaries.head",
    "parser_list.0.linear_t": "head.attention.boundaries.tail",
    "parser_list.0.linear_m": "head.attention.inside",
    "parser_list.0.linear_h1": "head.scoring.boundaries.head",
    "parser_list.0.linear_t1": "head.scoring.boundaries.tail",
    "parser_list.0.linear_m1": "head.scoring.inside",
    "linear_h2": "head.cross_span.attention_boundaries.head",
    "linear_t2": "head.cross_span.attention_boundaries.tail",
    "linear_s2": "head.cross_span.attention_span",
    "linear_h3": "head.cross_span.scoring_boundaries.head",
    "linear_t3": "head.cross_span.scoring_boundaries.tail",
    "linear_s3": "head.cross_span.scoring_span",
}
# Their layers 0 and 1 are items 0 and 3 of our sequences, with ReLU and dropout between them.
LINEARS = {f"{mlp}.layers.{layer}": f"{ours}.{3 * layer}" for mlp, ours in MLPS.items() for layer in (0, 1)} | {
    "encoder.reduce_dim": "words.projection",
    "parser_list.0.score0_h": "head.attention.linear_head",
    "parser_list.0.score0_t": "head.attention.linear_tail",
    "parser_list.0.score0_m": "head.attention.linear_inside",
    "parser_list.0.scorer_h": "head.scoring.linear_head",
    "parser_list.0.scorer_t": "head.scoring.linear_tail",
    "parser_list.0.scorer1": "head.scoring.linear_inside",
    "parser_list.0.linear.0": "head.biaffine.projection.0",
    "parser_list.0.linear.2": "head.biaffine.projection.2",
}
TENSORS: dict[str, tuple[str, Turn]] = {
    "encoder.word_embedding.weight": ("words.word_embedding.weight", _same),
    "encoder.pos_embedding.weight": ("words.pos_embedding.weight", _same),
    "encoder.char_embedding.weight": ("words.char_embedding.weight", _same),
    "parser_list.0.parser0.weight": ("head.attention.triaffine.weight", _label_first),
    "parser_list.0.parser1.weight": ("head.scoring.triaffine.weight", _label_first),
    "parser_list.0.query0": ("head.attention.query", _same),
    "parser_list.0.uni": ("head.label_bias", _same),
    "parser_list.0.biaffine.parse_proj": ("head.biaffine.weight", _same),
    "parser_list.0.biaffine.offset_proj": ("head.biaffine.linear", _transposed),
    "parser_list.0.biaffine.offset": ("head.label_bias", _same),
    "span_triaffine.weight": ("head.cross_span.attention_triaffine.weight", _label_first),
    "final_parser.weight": ("head.cross_span.scoring_triaffine.weight", _label_first),
    "final_uni": ("head.cross_span.label_bias", _same),
}
PRETRAINED = "encoder.bert_list.0."
LSTM = re.compile(r"encoder\.(lstm|char_lstm)\.((?:weight|bias)_[ih]h)_l(\d+)(_reverse)?")
# Not used in prediction: the encoder's pooler, constants, and the heads of auxiliary losses.
WITHOUT_USE = re.compile(
    r"encoder\.bert_list\.0\.(?:pooler\..*|embeddings\.(?:position_ids|token_type_ids))|(?:linear_token|trans_bi)\..*"
)


def our_name(name: str) -> tuple[str, Turn] | None:
    """The parameter for a published tensor and the permutation of its axes; None if there is none."""
    if name in TENSORS:
        return TENSORS[name]
    if name.startswith(PRETRAINED):
        return f"encoder.{name.removeprefix(PRETRAINED)}", _same
    module, _, kind = name.rpartition(".")
    if module in LINEARS and kind in ("weight", "bias"):
        return f"{LINEARS[module]}.{kind}", _same
    if part := LSTM.fullmatch(name):
        lstm, tensor, layer, backward = part.groups()
        direction = "backward_layers" if backward else "forward_layers"
        return f"words.{lstm}.{direction}.{layer}.{tensor}_l0", _same
    return None
