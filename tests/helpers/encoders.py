"""Tiny random encoders of the usual architectures, each with a tokenizer of the class its checkpoints come with."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AlbertTokenizer,
    AutoConfig,
    AutoModel,
    BertTokenizer,
    DebertaV2Tokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}

# What an architecture needs beside `SIZES` to be itself: factorized embeddings, relative positions, local attention.
FIELDS: dict[str, dict[str, Any]] = {
    "bert": {},
    "albert": {"embedding_size": 8},
    "roberta": {},
    "deberta-v2": {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 8,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "position_biased_input": False,
        "type_vocab_size": 0,
    },
    "xlm-roberta": {},
    "distilbert": {},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2},
    "longformer": {"attention_window": 8},
}

LETTERS = "".join(map(chr, range(33, 127)))  # all of ASCII that is seen
WORDS = ("gene", "the", "protein", "binds")


def save_encoder(architecture: str, folder: str | Path, **fields: Any) -> str:
    """A random two-layer encoder with its tokenizer, saved in `folder` as a pretrained one would be."""
    torch.manual_seed(0)
    tokenizer = make_tokenizer(architecture)
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    specials = {"pad_token_id": tokenizer.pad_token_id, "bos_token_id": start, "eos_token_id": end}
    if architecture == "modernbert":
        specials |= {"cls_token_id": start, "sep_token_id": end}
    sizes = {**SIZES, "vocab_size": len(tokenizer), "max_position_embeddings": 512, **specials}
    config = AutoConfig.for_model(architecture, **sizes | FIELDS[architecture] | fields)
    AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def enable_checkpointing(model: PreTrainedModel) -> None:
    """Under its present name, or that before transformers 5.23."""
    (getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable)()


def make_tokenizer(architecture: str) -> PreTrainedTokenizerBase:
    """A tokenizer that knows `WORDS` after a space as one sub-word each, and every letter."""
    if architecture in ("bert", "distilbert"):
        return BertTokenizer(_word_pieces("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), do_lower_case=False)
    if architecture in ("roberta", "longformer"):
        return RobertaTokenizer(*_byte_pairs("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    if architecture == "modernbert":
        return _neox_tokenizer()
    if architecture == "albert":
        return AlbertTokenizer(_unigrams("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"), do_lower_case=False)
    if architecture == "deberta-v2":
        return DebertaV2Tokenizer(_unigrams("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"))
    return XLMRobertaTokenizer(_unigrams("<s>", "<pad>", "</s>", "<unk>", "<mask>"))


def _word_pieces(*specials: str) -> dict[str, int]:
    return _number([*specials, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS])


def _unigrams(*specials: str) -> list[tuple[str, float]]:
    """SentencePiece's vocabulary: pieces with their log-probabilities, ▁ for a space."""
    pieces = [("▁", -4.0), *((letter, -6.0) for letter in LETTERS), *((f"▁{word}", -2.0) for word in WORDS)]
    return [*((special, 0.0) for special in specials), *pieces]


def _byte_pairs(*specials: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges of byte pairs, Ġ for a space."""
    merges = list(dict.fromkeys((f"Ġ{word[:n]}", word[n]) for word in WORDS for n in range(len(word))))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return _number([*specials, *alphabet, *(left + right for left, right in merges)]), merges


def _neox_tokenizer() -> PreTrainedTokenizerFast:
    """ModernBERT has no tokenizer class: its byte pairs are GPT-NeoX's, which add no space before the first word."""
    specials = {name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "mask_token")}
    specials |= {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    vocabulary, merges = _byte_pairs(*specials.values())
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **specials)


def _number(pieces: list[str]) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(pieces)}
