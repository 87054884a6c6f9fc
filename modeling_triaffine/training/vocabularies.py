"""What a new model learns of the training words before training: a tokenizer, and static word vectors from a file.

The vocabularies of words, parts of speech and characters themselves are the processor's (`build_vocabularies`).
"""

from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
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
    """A cased WordPiece tokenizer of at most `vocab_size` sub-words, for an encoder that is trained from scratch."""
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL_TOKENS["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIAL_TOKENS.values()), show_progress=False
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
