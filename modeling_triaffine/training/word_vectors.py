"""Static word vectors from a file: fastText's `.vec` and `.bin`, word2vec's text and binary form, GloVe's text.

The form is told from the file's content. Of text and word2vec files only the vectors of the words asked for come into
memory, whatever the file's size. A fastText `.bin` is read by gensim (`pip install -e '.[embeddings]'`),
which holds it whole while it is read: about 1.7 times the file's size at most. It makes vectors of words that it does
not hold from their sub-words.

What the vocabularies are is the processor's business; what becomes of the vectors in a model is in `preparation.py`.
"""

import mmap
import re
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ..data.reading import GZIP_MAGIC, HEAD_SIZE, open_corpus
from ..errors import missing_extra
from ..model.vocabularies_triaffine import UNKNOWN

Vectors = dict[str, np.ndarray]
# Number of words and of numbers in a vector, above the vectors of word2vec's forms and of fastText's `.vec`.
HEADER = re.compile(rb"(\d+) ([1-9]\d*)\s*")
FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")
# Of what follows the mark: numbers in a vector, buckets of sub-words, words.
FASTTEXT_HEADER = struct.Struct("<8x i 28x i 24x i")
ZIP_MAGIC = b"PK\x03\x04"
FLOAT = np.dtype("<f4")
MAX_EXAMPLES = 5


@dataclass(frozen=True)
class WordVectors:
    """Vectors of words, and how they were found.

    Attributes:
        form: what the file is, in words.
        size: numbers in a vector.
        vectors: word → vector [size] in float32. A word found by its lower-case form only is there in that form, which
            is how the processor looks it up.
        exact, lower_cased, composed: how many of the words asked for are in the file as they are written, are there in
            lower case only, and are made of sub-words.
        unknown: the words asked for that have no vector, in order of spelling.
    """

    path: Path
    form: str
    size: int
    vectors: Vectors
    exact: int = 0
    lower_cased: int = 0
    composed: int = 0
    unknown: list[str] = field(default_factory=list)

    def table(self, vocabulary: Mapping[str, int]) -> np.ndarray:
        """The embeddings [V, size] of a vocabulary of these words: padding is 0, the unknown word the mean of all."""
        table = np.zeros((len(vocabulary), self.size), dtype=np.float32)
        for word, vector in self.vectors.items():
            table[vocabulary[word]] = vector
        table[vocabulary[UNKNOWN]] = table.sum(axis=0, dtype=np.float64) / max(1, len(self.vectors))
        return table

    def report(self) -> str:
        """One line: of how many distinct words there are vectors, and how they were found."""
        asked = self.exact + self.lower_cased + self.composed + len(self.unknown)
        examples = ", ".join(map(repr, self.unknown[:MAX_EXAMPLES]))
        more = ", …" if len(self.unknown) > MAX_EXAMPLES else ""
        return (
            f"{self.path} ({self.form}, {self.size} numbers a vector): {asked} distinct words, {self.exact} found as "
            f"written, {self.lower_cased} in lower case, {self.composed} made of sub-words, {len(self.unknown)} unknown"
            f"{f' ({examples}{more})' if examples else ''}."
        )


@dataclass(frozen=True)
class _VectorFile:
    """An opened file: what it is, and the two ways to a vector."""

    form: str
    size: int
    read: Callable[[Collection[str] | None], Iterator[tuple[str, np.ndarray]]]
    compose: Callable[[str], np.ndarray | None] = lambda word: None  # without sub-words, only what the file holds


def read_word_vectors(path: str | Path, words: Collection[str], keep_all: bool = False) -> WordVectors:
    """The vectors of `words`: as written, else in lower case, else, from a fastText `.bin`, of their sub-words.

    Text may be gzipped. Of a word that the file holds twice the first vector counts. With `keep_all`, the vectors of
    all words of the file are kept, too.

    Raises:
        ValueError: the file is of no known form, or damaged; the message says where.
        OSError: it cannot be opened.
        ImportError: it is a fastText `.bin`, and gensim is not installed.
    """
    file = _open_vectors(Path(path))
    distinct = set(words)
    stored: Vectors = {}
    for word, found in file.read(None if keep_all else distinct | {word.lower() for word in distinct}):
        stored.setdefault(word, found)
    exact = {word for word in distinct if word in stored}
    lower_cased = {word for word in distinct - exact if word.lower() in stored}
    rest = sorted(distinct - exact - lower_cased)
    composed = {word: vector for word in rest if (vector := file.compose(word)) is not None}
    wanted = exact | {word.lower() for word in lower_cased}
    vectors = {word: vector for word, vector in stored.items() if keep_all or word in wanted} | composed
    _check_numbers(path, vectors)
    return WordVectors(
        path=Path(path),
        form=file.form,
        size=file.size,
        vectors=vectors,
        exact=len(exact),
        lower_cased=len(lower_cased),
        composed=len(composed),
        unknown=[word for word in rest if word not in composed],
    )


def _open_vectors(path: Path) -> _VectorFile:
    """Tells the file's form from its first bytes."""
    with path.open("rb") as plain:
        start = plain.read(len(FASTTEXT_MAGIC))
    if start == ZIP_MAGIC:
        raise ValueError(f"{path} is a ZIP archive; unpack it and give the file inside.")
    with open_corpus(path) as file:
        head = file.read(HEAD_SIZE)
    gzipped = start.startswith(GZIP_MAGIC)
    if head.startswith(FASTTEXT_MAGIC):
        return _fasttext_file(_not_gzipped(path, gzipped))
    first, _, rest = head.partition(b"\n")
    header = HEADER.fullmatch(first)
    if header is None:
        count, size = 0, first.rstrip().count(b" ")
        is_text = True
        if not size or not all(map(_is_number, first.split()[-size:])):
            raise ValueError(
                f"{path} holds no word vectors of a known form: it is no fastText .bin, has no first line with the "
                "numbers of words and of numbers in a vector, and its first line is no word followed by numbers. Give "
                "a .vec or .bin of fastText, a text or binary file of word2vec, or GloVe's text."
            )
    else:
        count, size = int(header[1]), int(header[2])
        line = rest.partition(b"\n")[0].rstrip()
        is_text = not line or (b"\0" not in line and _is_number(line.rsplit(b" ", 1)[-1]))
    if is_text:
        return _VectorFile("text", size, partial(_read_text, path, size))
    return _VectorFile("word2vec binary", size, partial(_read_word2vec, _not_gzipped(path, gzipped), count, size))


def _not_gzipped(path: Path, gzipped: bool) -> Path:
    if gzipped:
        raise ValueError(f"{path} is a gzipped binary file, which cannot be read in place; unpack it: gunzip {path}")
    return path


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_text(path: Path, size: int, wanted: Collection[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    """Vectors of a text file, line by line: a word and its numbers, divided by spaces."""
    names = None if wanted is None else {word.encode("utf-8", "surrogatepass") for word in wanted}
    with open_corpus(path) as lines:
        for number, line in enumerate(lines, start=1):
            if number == 1 and HEADER.fullmatch(line):
                continue
            line = line.rstrip()
            spaces = line.count(b" ")
            if spaces < size:
                raise ValueError(
                    f"{path}, line {number}: there are {spaces} numbers after the word instead of {size}; the file is "
                    "damaged or cut off. Fetch it again."
                )
            # Splitting all numbers off is slow, and needed only for a word with spaces or one that is kept.
            word = line.split(b" ", 1)[0] if spaces == size else line.rsplit(b" ", size)[0]
            if names is None or word in names:
                try:
                    vector = np.array(line.rsplit(b" ", size)[1:], dtype=np.float32)
                except ValueError as error:
                    raise ValueError(f"{path}, line {number}: {error}. Fetch the file again.") from None
                yield word.decode("utf-8", "replace"), vector


def _read_word2vec(
    path: Path, count: int, size: int, wanted: Collection[str] | None
) -> Iterator[tuple[str, np.ndarray]]:
    """Vectors of word2vec's binary form: each word ends with a space, the numbers are float32, little end first.

    gensim would read it too, but whole: 13 GB for BioWordVec's. Of the mapped file only what is kept stays in memory.
    """
    names = None if wanted is None else {word.encode("utf-8", "surrogatepass") for word in wanted}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        position = data.find(b"\n") + 1
        for number in range(count):
            start = data.find(b" ", position) + 1
            end = start + size * FLOAT.itemsize
            if start == 0 or end > len(data):
                raise ValueError(f"{path} is cut off: it holds {number} of {count} words. Fetch it again.")
            word = data[position : start - 1].lstrip(b"\n")  # some writers end a vector with a new line
            if names is None or word in names:
                yield word.decode("utf-8", "replace"), np.frombuffer(data[start:end], FLOAT).astype(np.float32)
            position = end


def _fasttext_file(path: Path) -> _VectorFile:
    """A model in fastText's own binary form, read by gensim."""
    try:
        from gensim.models.fasttext import load_facebook_vectors
    except ImportError:
        raise missing_extra(
            f"{path} is a fastText .bin (the .vec file of the same vectors needs no gensim, and has no sub-words); it "
            "is read by gensim",
            "embeddings",
        ) from None
    try:
        _check_fasttext_size(path)
        model = load_facebook_vectors(str(path))
    except Exception as error:  # gensim checks by `assert`, `struct` and NumPy, each with an exception of its own
        raise ValueError(
            f"{path} cannot be read as fastText word vectors ({type(error).__name__}: {error}); it is damaged, cut "
            "off, or a classifier. Fetch it again, or give a file of word vectors."
        ) from error

    def read(wanted: Collection[str] | None) -> Iterator[tuple[str, np.ndarray]]:
        for word in model.key_to_index if wanted is None else sorted(wanted & model.key_to_index.keys()):
            yield word, model[word].copy()

    def compose(word: str) -> np.ndarray | None:
        if not model.bucket:
            return None
        vector = model[word].copy()
        return vector if vector.any() else None  # a word too short for any sub-word has zeros

    return _VectorFile("fastText binary", model.vector_size, read, compose)


def _check_fasttext_size(path: Path) -> None:
    """Raises ValueError for a file cut off: gensim would look for the end of a word for ever."""
    with path.open("rb") as file:
        size, buckets, words = FASTTEXT_HEADER.unpack(file.read(FASTTEXT_HEADER.size))
    if path.stat().st_size < (words + buckets) * size * FLOAT.itemsize:
        raise ValueError("the file is shorter than its first numbers say")


def _check_numbers(path: str | Path, vectors: Vectors) -> None:
    for word, vector in vectors.items():
        if not np.isfinite(vector).all():
            raise ValueError(f"{path}: the vector of {word!r} holds numbers that are not finite. Fetch the file again.")
