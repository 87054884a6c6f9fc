"""Static word vectors from a file: fastText (`.vec`), word2vec (text and binary) and GloVe, text also gzipped.

The form is recognized by the file's first bytes. Only the vectors of the requested words are kept in memory. Nothing
is unpickled.
"""

import logging
import mmap
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch

from ..data.reading import open_corpus
from ..model.processing_triaffine import PADDING, UNKNOWN

logger = logging.getLogger(__name__)

# First line of word2vec files and fastText's `.vec`: number of words, size of the vectors.
HEADER = re.compile(rb"(\d+) ([1-9]\d*)\s*")
FLOAT = np.dtype("<f4")


def read_word_vectors(path: str | Path, words: Collection[str], size: int | None = None) -> dict[str, np.ndarray]:
    """Returns form → vector [size]: for each word that has one, the word as written, or else in lower case.

    ValueError if the vectors have another `size` than the given one, or none is of these words.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"No file {path}. To train without: --word_vectors= --word_embedding_size 0.")
    with open_corpus(path) as file:
        head = file.read(4096)
    first, _, rest = head.partition(b"\n")
    wanted = {form.encode("utf-8", "surrogatepass") for word in words for form in (word, word.lower())}
    stored: dict[str, np.ndarray] = {}
    is_binary = HEADER.fullmatch(first) and b"\0" in rest
    for word, vector in (_read_word2vec if is_binary else _read_text)(path, wanted):
        stored.setdefault(word, vector)  # of a word that comes twice, the first counts
    found = {word if word in stored else word.lower() for word in words}
    vectors = {word: vector for word, vector in stored.items() if word in found}
    if not vectors or not all(np.isfinite(vector).all() for vector in vectors.values()):
        raise ValueError(f"{path} has no vectors of these words, or some that are not finite. Give another file.")
    found_size = len(next(iter(vectors.values())))
    if size not in (None, found_size):
        raise ValueError(f"word_embedding_size is {size}, but the vectors have {found_size} numbers; leave it out.")
    unknown = sum(vectors.keys().isdisjoint((word, word.lower())) for word in words)
    logger.info("Word vectors of %d numbers; %d of %d words have none.", found_size, unknown, len(words))
    return vectors


def vectors_of(vocabulary: Mapping[str, int], vectors: Mapping[str, np.ndarray]) -> torch.Tensor:
    """Returns the embeddings [V, size] of a vocabulary: 0 for padding, and the mean for the unknown word."""
    table = np.zeros((len(vocabulary), len(next(iter(vectors.values())))), dtype=np.float32)
    words = vectors.keys() - {PADDING, UNKNOWN}
    for word in words:
        table[vocabulary[word]] = vectors[word]
    table[vocabulary[UNKNOWN]] = table.sum(axis=0, dtype=np.float64) / max(1, len(words))
    return torch.from_numpy(table)


def _read_text(path: Path, wanted: Collection[bytes]) -> Iterator[tuple[str, np.ndarray]]:
    """Vectors of a text file, whose lines have a word, which may have spaces, and its numbers, separated by spaces."""
    size = 0
    with open_corpus(path) as lines:
        for number, line in enumerate(lines, start=1):
            if number == 1 and (header := HEADER.fullmatch(line)):
                size = int(header[2])
                continue
            line = line.rstrip()
            size = size or line.count(b" ")
            # Splitting a line into numbers is slow. Only wanted words, and words with spaces, need it.
            if number > 2 and line.count(b" ") == size and line.split(b" ", 1)[0] not in wanted:
                continue
            word, *numbers = line.rsplit(b" ", size)
            try:
                vector = np.array(numbers, dtype=np.float32)
            except ValueError:
                vector = np.empty(0, dtype=np.float32)
            if not size or len(vector) != size:
                problem = f"{path}, line {number}: there is no word with {size} numbers"
                raise ValueError(f"{problem}. Is it a file of vectors (of fastText the `.vec`)?")
            if word in wanted:
                yield word.decode("utf-8", "replace"), vector


def _read_word2vec(path: Path, wanted: Collection[bytes]) -> Iterator[tuple[str, np.ndarray]]:
    """Vectors of word2vec's binary form: a word, a space, little-endian float32. Mapped: BioWordVec has 13 GB."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        header = HEADER.fullmatch(data.readline())
        if header is None:
            raise ValueError(f"{path} cannot be read as vectors. Unpack it if it is packed.")
        position = data.tell()
        for number in range(int(header[1])):
            start = data.find(b" ", position) + 1
            end = start + int(header[2]) * FLOAT.itemsize
            if start == 0 or end > len(data):
                raise ValueError(f"{path} is cut off: it has {number} of {int(header[1])} words. Download it again.")
            word = data[position : start - 1].lstrip(b"\n")  # some writers end vectors with a newline
            if word in wanted:
                yield word.decode("utf-8", "replace"), np.frombuffer(data[start:end], FLOAT).astype(np.float32)
            position = end
