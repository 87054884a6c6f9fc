"""What a new model learns of the training words before training: a tokenizer, and static word vectors from a file.

The vocabularies of words, parts of speech and characters themselves are the processor's (`build_vocabularies`).
"""

from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from ..data.reading import open_corpus

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


def read_word_vectors(path: str | Path, words: Collection[str], size: int) -> dict[str, np.ndarray]:
    """The vectors of `words` in a text file of vectors (word2vec's and fastText's `.vec`, GloVe; also gzipped).

    Each line is a word and its numbers, divided by spaces; a first line with the number of words and their size may
    stand above them. Vectors of other words are not kept.

    Args:
        path: the file.
        words: the words looked for.
        size: numbers in a vector, as the model's `word_embedding_size` says.

    Raises:
        ValueError: a line has not `size` numbers.
    """
    wanted = {word.encode() for word in words}
    found: dict[str, np.ndarray] = {}
    with open_corpus(Path(path)) as lines:
        for number, line in enumerate(lines, start=1):
            word, *numbers = line.rstrip().rsplit(b" ", size)
            if number == 1 and len(numbers) == 1:
                continue
            if len(numbers) != size:
                raise ValueError(
                    f"{path}, line {number}: there are {len(numbers)} numbers after the word, but word_embedding_size "
                    f"is {size}. Set --word_embedding_size to the vectors' size, or see whether the file is whole."
                )
            if word in wanted:
                found[word.decode()] = np.array(numbers, dtype=np.float32)
    return found
