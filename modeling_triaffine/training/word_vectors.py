"""Static word vectors from a file: fastText (`.vec` and `.bin`), word2vec (text and binary) and GloVe.

The form is recognized by the file's first bytes. Of text and word2vec files, only the vectors of the requested words
are kept in memory. A fastText `.bin` is read by gensim (`pip install -e '.[embeddings]'`), which needs up to 1.7 times
the file's size in memory, and composes the vectors of other words from their sub-words. Nothing is unpickled.
"""

import mmap
import re
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.reading import open_corpus
from ..errors import importing_extra
from ..model.processing_triaffine import PADDING, UNKNOWN

# First line of word2vec files and fastText's `.vec`: number of words, size of the vectors.
HEADER = re.compile(rb"(\d+) ([1-9]\d*)\s*")
FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")
# After the magic number: the size of the vectors, buckets of sub-words, words.
FASTTEXT_HEADER = struct.Struct("<8x i 28x i 24x i")
FLOAT = np.dtype("<f4")


@dataclass(frozen=True)
class WordVectors:
    """Vectors [size] of words, and the words without one; a word found in lower case only is lower-cased here."""

    vectors: dict[str, np.ndarray]
    unknown: list[str]

    @property
    def size(self) -> int:
        return len(next(iter(self.vectors.values())))

    def table(self, vocabulary: Mapping[str, int]) -> np.ndarray:
        """The embeddings [V, size] of a vocabulary of these words: 0 for padding, their mean for the unknown word."""
        table = np.zeros((len(vocabulary), self.size), dtype=np.float32)
        words = self.vectors.keys() - {PADDING, UNKNOWN}
        for word in words:
            table[vocabulary[word]] = self.vectors[word]
        table[vocabulary[UNKNOWN]] = table.sum(axis=0, dtype=np.float64) / max(1, len(words))
        return table


def read_word_vectors(path: str | Path, words: Collection[str], keep_all: bool = False) -> WordVectors:
    """The vectors of `words`: as written, else in lower case, else (fastText `.bin`) composed of their sub-words.

    Text may be gzipped. `keep_all` keeps the vectors of all words of the file, too.
    """
    path, asked = Path(path), {*words}
    wanted = None if keep_all else asked | {word.lower() for word in asked}
    with open_corpus(path) as file:
        head = file.read(4096)
    first, _, rest = head.partition(b"\n")
    stored: dict[str, np.ndarray] = {}
    composed: dict[str, np.ndarray] = {}
    if head.startswith(FASTTEXT_MAGIC):
        stored, composed = _read_fasttext(path, head, asked, wanted)
    else:
        is_binary = HEADER.fullmatch(first) and b"\0" in rest
        for word, vector in (_read_word2vec if is_binary else _read_text)(path, wanted):
            stored.setdefault(word, vector)  # of a word that comes twice, the first counts
    found = {word if word in stored else word.lower() for word in asked}
    vectors = {word: vector for word, vector in stored.items() if keep_all or word in found} | composed
    if not vectors or not all(np.isfinite(vector).all() for vector in vectors.values()):
        raise ValueError(f"{path} has no vectors of these words, or some that are not finite. Give another file.")
    return WordVectors(vectors, sorted(word for word in asked if not {word, word.lower()} & vectors.keys()))


def _read_text(path: Path, wanted: Collection[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    """Vectors of a text file, whose lines have a word, which may have spaces, and its numbers, separated by spaces."""
    names = None if wanted is None else {word.encode("utf-8", "surrogatepass") for word in wanted}
    size = 0
    with open_corpus(path) as lines:
        for number, line in enumerate(lines, start=1):
            if number == 1 and (header := HEADER.fullmatch(line)):
                size = int(header[2])
                continue
            line = line.rstrip()
            size = size or line.count(b" ")
            # Splitting off all numbers is slow, and needed for kept words and words with spaces only.
            if number > 2 and line.count(b" ") == size and names is not None and line.split(b" ", 1)[0] not in names:
                continue
            word, *numbers = line.rsplit(b" ", size)
            try:
                vector = np.array(numbers, dtype=np.float32)
            except ValueError:
                vector = np.empty(0, dtype=np.float32)
            if not size or len(vector) != size:
                raise ValueError(
                    f"{path}, line {number}: there is no word with {size} numbers. Is it a file of vectors?"
                )
            if names is None or word in names:
                yield word.decode("utf-8", "replace"), vector


def _read_word2vec(path: Path, wanted: Collection[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    """Vectors of word2vec's binary form: a word, a space, and little-endian float32 numbers.

    gensim would load the whole file, 13 GB for BioWordVec; here it is memory-mapped.
    """
    names = None if wanted is None else {word.encode("utf-8", "surrogatepass") for word in wanted}
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
            if names is None or word in names:
                yield word.decode("utf-8", "replace"), np.frombuffer(data[start:end], FLOAT).astype(np.float32)
            position = end


def _read_fasttext(
    path: Path, head: bytes, asked: Collection[str], wanted: Collection[str] | None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The vectors in a model of fastText's own binary form, and those composed of sub-words."""
    with importing_extra("embeddings", f"{path} is a fastText .bin (unlike .vec), and needs gensim"):
        from gensim.models.fasttext import load_facebook_vectors
    try:
        size, buckets, words = FASTTEXT_HEADER.unpack_from(head)
        if path.stat().st_size < (words + buckets) * size * FLOAT.itemsize:  # where gensim would search forever
            raise ValueError("it is cut off")
        model = load_facebook_vectors(str(path))
    except Exception as error:  # gensim checks by `assert`, `struct` and NumPy, each with an exception of its own
        raise ValueError(f"{path} cannot be read as fastText word vectors: {error!r}. Download it again.") from error
    known = model.key_to_index.keys()
    stored = {word: model[word].copy() for word in sorted(known if wanted is None else known & {*wanted})}
    others = [word for word in sorted(asked) if not {word, word.lower()} & known] if model.bucket else []
    # A word too short for any sub-word has zeros.
    return stored, {word: model[word].copy() for word in others if model[word].any()}
