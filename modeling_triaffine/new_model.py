"""New models: on a pretrained encoder, with low-rank tensors of the right size, and with vocabularies of its data.

What only an untrained model needs does not travel with a trained one. `extend_model` makes it methods of the model and
its processor.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoTokenizer

from .installed_models import find_and_name
from .model.configuration_triaffine import TriaffineConfig
from .model.factors_triaffine import SMALLEST_SQUARED_NORM, TriaffineTensor
from .model.model_triaffine import TriaffineForNestedNER, evaluating
from .model.processing_triaffine import PADDING, UNKNOWN, TriaffineProcessor, check_parts
from .model.repository_triaffine import ORIGIN_OPTIONS, refuse_broken
from .model.text_triaffine import composed


def extend_model() -> None:
    """Makes `from_encoder` and `build_vocabularies` methods, and `from_pretrained` scale factors that it draws anew."""
    TriaffineForNestedNER.from_encoder = classmethod(model_on_encoder)  # type: ignore[assignment]
    TriaffineForNestedNER.start_weights = match_low_rank_start
    TriaffineForNestedNER.find_model = staticmethod(find_and_name)
    TriaffineProcessor.from_encoder = classmethod(processor_of_encoder)  # type: ignore[assignment]
    TriaffineProcessor.build_vocabularies = build_vocabularies


def model_on_encoder(
    cls: type[TriaffineForNestedNER],
    /,
    name_or_path: str,
    config: TriaffineConfig | None = None,
    *,
    attn_implementation: str | None = None,
    **options: Any,
) -> TriaffineForNestedNER:
    """`TriaffineForNestedNER.from_encoder`: an untrained model on a pretrained encoder, in float32.

    The defaults are the paper's. With `triaffine_rank=64` the model is smaller and faster, and reached a higher F1 on
    GENIA; with `cross_span_residual=True` on GUM. `start_from_recipe` sets these and the options of training.

    Args:
        name_or_path: folder or Hub name of any `AutoModel` encoder.
        config: its `encoder_config`, if any, is replaced by the pretrained encoder's.
        attn_implementation: of the encoder, as in transformers.
        options: without `config`, fields of [`TriaffineConfig`], at least the labels; and where the encoder is:
            `revision`, `subfolder`, `cache_dir`, `local_files_only`, `token`.

    Raises:
        ValueError: unknown or conflicting fields, or an encoder with missing or broken weights.
        FileNotFoundError, ConnectionError: there is no such encoder, or the Hub cannot be reached.
    """
    origin = {name: options.pop(name) for name in ORIGIN_OPTIONS if name in options}
    config_class: Any = cls.config_class  # a subclass may have its own
    known = {"num_labels", *(field.name for field in fields(config_class))} - {"dtype"}  # use model.to(dtype)
    if unknown := sorted({*options} - known):
        raise ValueError(f"from_encoder: TriaffineConfig has no field {', '.join(map(repr, unknown))}.")
    encoder_config = AutoConfig.from_pretrained(name_or_path, trust_remote_code=False, **origin)
    if config is not None:
        if options:
            raise ValueError("from_encoder: give either `config` or its fields as keywords, not both.")
        options = config.to_dict()
        del options["hidden_size"], options["encoder_config"]
    model = cls(config_class(encoder_config=encoder_config, **options))
    if attn_implementation is not None:
        model.set_attn_implementation(attn_implementation)
    loading = {"dtype": torch.float32, "output_loading_info": True, **origin}
    pretrained, report = AutoModel.from_pretrained(name_or_path, **loading)
    if missing := sorted(set(report["missing_keys"]) & set(model.encoder.state_dict())):
        raise ValueError(f"from_encoder: {name_or_path} has no weights for {', '.join(missing)}; is it an encoder?")
    model.encoder.load_state_dict(pretrained.state_dict(), strict=False)  # it may have a pooler
    refuse_broken(f"The weights in {name_or_path}", model.encoder)
    match_low_rank_start(model)
    return model


def match_low_rank_start(model: TriaffineForNestedNER, drawn: Collection[str] | None = None) -> None:
    """Scales the low-rank factors of an untrained model to the size of its encoder's vectors.

    They are drawn for words near 0, the output of a BiLSTM, and would make scores many times too large on vectors that
    come directly from an encoder. Measured by the mean square on random sub-words, after which scores have about unit
    variance either way. `drawn` names the weights that are newly drawn, if not all are.
    """
    tensors = [
        tensor
        for name, tensor in model.head.named_modules(prefix="head")
        if isinstance(tensor, TriaffineTensor)
        and tensor.rank is not None
        and (drawn is None or all(f"{name}.{factor}" in drawn for factor, _ in tensor.named_parameters()))
    ]
    if not tensors:
        return
    with evaluating(model):
        moment = words_of_random_subwords(model).square().mean().item()
    # The factors read the output of a new two-layer MLP. torch initializes weights and biases of a layer with n inputs
    # with variance 1/(3n): outputs of the first layer have variance (mean square + 1/H) / 3, ReLU halves their mean
    # square, and the d outputs of the second layer have a third of that.
    config = model.config
    squared_norm = config.triaffine_dim * (moment + 1 / config.hidden_size) / 18 + SMALLEST_SQUARED_NORM
    for tensor in tensors:
        tensor.match_inputs(squared_norm)


def words_of_random_subwords(model: TriaffineForNestedNER) -> Tensor:
    """Word representations [4, N, H] of random sub-words, one per word, the same in every process."""
    shape = (4, min(32, model.config.max_subwords))
    vocabulary = model.encoder.config.vocab_size
    input_ids = torch.randint(vocabulary, shape, generator=torch.Generator().manual_seed(0)).to(model.device)
    unknown = torch.zeros_like(input_ids)
    words, _ = model.represent_words(
        input_ids,
        attention_mask=torch.ones_like(input_ids),
        word_index=torch.arange(shape[1], device=model.device).expand(shape),
        num_words=torch.full((shape[0],), shape[1], device=model.device),
        word_ids=unknown,
        pos_ids=unknown,
        char_ids=unknown.unsqueeze(-1),
    )
    return words


def processor_of_encoder(cls: type[TriaffineProcessor], /, name_or_path: str, **options: Any) -> TriaffineProcessor:
    """`TriaffineProcessor.from_encoder`: the processor for a pretrained encoder.

    `options` are the arguments of the class, and `revision`, `subfolder`, `cache_dir`, `local_files_only`, `token`.
    """
    origin = {name: options.pop(name) for name in ORIGIN_OPTIONS if name in options}
    tokenizer = AutoTokenizer.from_pretrained(name_or_path, add_prefix_space=True, trust_remote_code=False, **origin)
    if len(tokenizer) == len(tokenizer.all_special_ids):  # transformers makes one where the files are missing
        raise ValueError(f"{name_or_path} has no tokenizer, or an empty one; save the encoder's in the same place.")
    return cls(tokenizer, **options)


def build_vocabularies(processor: TriaffineProcessor, records: Iterable[dict[str, Any]], parts: Sequence[str]) -> None:
    """`TriaffineProcessor.build_vocabularies`: the vocabularies of the model's `parts` from the training records.

    Ids: 0 padding, 1 unknown, then by decreasing frequency, ties in alphabetical order.
    """
    check_parts("parts", parts)
    counts: dict[str, Counter[str]] = {part: Counter() for part in parts}
    for record in records:
        words = list(map(composed, record["tokens"]))
        names = {"words": words, "chars": "".join(words), "pos": record.get("pos") or ()}
        for part, count in counts.items():
            count.update(names[part])
    if "pos" in counts and not counts["pos"]:
        remedy = "Train on the words of a tagged corpus (--words corpus), or give --pos_embedding_size 0."
        raise ValueError(f"No training sentence has parts of speech (`pos`). {remedy}")
    for part, count in counts.items():
        processor.vocabularies[part] = number_names(sorted(sorted(count), key=count.__getitem__, reverse=True))
    processor.vocabulary_parts = list(parts)


def number_names(names: Iterable[str]) -> dict[str, int]:
    """A vocabulary of distinct names, in order after padding (0) and the unknown name (1)."""
    return {name: number for number, name in enumerate(dict.fromkeys([PADDING, UNKNOWN, *names]))}
