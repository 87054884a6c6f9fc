"""Names of the published implementation's tensors → parameters of `TriaffineForNestedNER`."""

import re

from torch import Tensor

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
MODULES = {f"{mlp}.layers.{layer}": f"{ours}.{3 * layer}" for mlp, ours in MLPS.items() for layer in (0, 1)} | {
    "encoder.reduce_dim": "words.projection",
    "encoder.word_embedding": "words.word_embedding",
    "encoder.pos_embedding": "words.pos_embedding",
    "encoder.char_embedding": "words.char_embedding",
}
BIASES = {"parser_list.0.uni": "head.label_bias", "final_uni": "head.cross_span.label_bias"}
TRIAFFINES = {
    "parser_list.0.parser0.weight": "head.attention.triaffine.weight",
    "parser_list.0.parser1.weight": "head.scoring.triaffine.weight",
    "span_triaffine.weight": "head.cross_span.attention_triaffine.weight",
    "final_parser.weight": "head.cross_span.scoring_triaffine.weight",
}
PRETRAINED = "encoder.bert_list.0."
LSTM = re.compile(r"encoder\.(lstm|char_lstm)\.((?:weight|bias)_[ih]h)_l(\d+)(_reverse)?")
# Not used in prediction: the encoder's pooler, constants, and the heads of auxiliary losses.
WITHOUT_USE = re.compile(
    r"encoder\.bert_list\.0\.(?:pooler\..*|embeddings\.(?:position_ids|token_type_ids))|(?:linear_token|trans_bi)\..*"
)


def our_parameter(name: str, tensor: Tensor) -> tuple[str, Tensor]:
    """The parameter for a published tensor, and its value; an unknown one keeps its name."""
    if name in TRIAFFINES:
        return TRIAFFINES[name], tensor.permute(3, 1, 0, 2)  # [head, inside, tail, label] → [label, inside, head, tail]
    if name.startswith(PRETRAINED):
        return f"encoder.{name.removeprefix(PRETRAINED)}", tensor
    module, _, kind = name.rpartition(".")
    if module in MODULES:
        return f"{MODULES[module]}.{kind}", tensor
    if part := LSTM.fullmatch(name):
        lstm, of_layer, layer, backward = part.groups()
        direction = "backward_layers" if backward else "forward_layers"
        return f"words.{lstm}.{direction}.{layer}.{of_layer}_l0", tensor
    return BIASES.get(name, name), tensor
