"""Tiny real models for the tests: a BERT of random weights, its tokenizer, and a model and processor on it."""

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from modeling_triaffine.model.model_triaffine import TriaffineForNestedNER
from modeling_triaffine.model.pipeline_triaffine import NestedNERPipeline
from modeling_triaffine.model.processing_triaffine import TriaffineProcessor

LABELS = ["DNA", "protein", "None"]
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """WordPiece over single letters and a few pieces: every ASCII word has sub-words, anything else is unknown."""
    letters = [chr(code) for code in range(33, 127)]
    vocabulary = [*SPECIALS, *letters, *(f"##{letter}" for letter in letters), "gene", "##ne", "protein", "binds"]
    tokenizer = Tokenizer(models.WordPiece({piece: n for n, piece in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **dict(zip(names, SPECIALS, strict=True)))


def save_tiny_encoder(folder: str | Path, seed: int = 0, **fields) -> str:
    """A random two-layer BERT with its tokenizer, saved in `folder` as a pretrained encoder would be."""
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = BertConfig(vocab_size=len(tokenizer), **(sizes | fields))
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def tiny_model(encoder: str, seed: int = 0, **fields) -> TriaffineForNestedNER:
    torch.manual_seed(seed)
    sizes = {"triaffine_dim": 6, "lstm_hidden_size": 5, "max_candidates": 6, "triaffine_init_std": 0.3}
    fields = {"id2label": dict(enumerate(LABELS))} | sizes | fields
    return TriaffineForNestedNER.from_encoder(encoder, **fields).eval()


def tiny_processor(encoder: str, **options) -> TriaffineProcessor:
    return TriaffineProcessor.from_encoder(encoder, **options)


def tiny_pipeline(encoder: str, **fields) -> NestedNERPipeline:
    return NestedNERPipeline(model=tiny_model(encoder, **fields), processor=tiny_processor(encoder), device="cpu")


def save_tiny_model(folder: Path, encoder: str, parts: Sequence[str] = (), **fields) -> Path:
    """A model with its processor, saved; it reads these parts of words ("words", "pos", "chars") beside sub-words."""
    processor = tiny_processor(encoder)
    processor.build_vocabularies([{"tokens": ["gene", "binds"], "pos": ["N", "V"]}], parts)
    for part in parts:
        name = part.removesuffix("s") if part != "pos" else part
        fields |= {f"{name}_vocab_size": len(processor.vocabularies[part]), f"{name}_embedding_size": 4}
    if "chars" in parts:
        fields["char_lstm_hidden_size"] = 2
    tiny_model(encoder, **fields).save_pretrained(folder)
    processor.save_pretrained(folder)
    return Path(folder)
