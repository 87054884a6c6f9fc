"""What a new model learns of the training words before training: a tokenizer.

The vocabularies of words, parts of speech and characters themselves are the processor's (`build_vocabularies`), static
word vectors are read in `word_vectors.py`.
"""

from collections.abc import Iterable

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def learn_tokenizer(sentences: Iterable[list[str]], vocab_size: int) -> PreTrainedTokenizerFast:
    """A tokenizer of byte pairs for an encoder that is trained from scratch; the same for the same sentences.

    (That WordPiece is not: its trainer numbers "##" pieces in an order that differs from call to call.)

    Args:
        sentences: the words of each.
        vocab_size: most sub-words; special tokens and the 256 bytes are always among them, so that no word is unknown.
    """
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL_TOKENS)
