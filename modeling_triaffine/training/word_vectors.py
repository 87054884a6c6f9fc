"""Static word vectors from a file: fastText (`.vec` and `.bin`), word2vec (text and binary) and GloVe.

The form is recognized by the file's content. Of text and word2vec files, only the vectors of the requested words are
kept in memory. A fastText `.bin` is read by gensim (`pip install -e '.[embeddings]'`), which needs up to 1.7 times the
file's size in memory, and composes the vectors of other words from their sub-words.
"""

import mmap
import re
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ..data.reading import HEAD_SIZE, open_corpus
from ..errors import importing_extra
from ..model.processing_triaffine import PADDING, UNKNOWN
from ..parsing import GZIP_MAGIC

Vectors = dict[str, np.ndarray]
# First line of word2vec files and fastText's `.vec`: number of words, size of the vectors.
HEADER = re.compile(rb"(\d+) ([1-9]\d*)\s*")
FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")
# Fields after the magic number: size of the vectors, buckets of sub-words, words.
FASTTEXT_HEADER = struct.Struct("<8x i 28x i 24x i")
FLOAT = np.dtype("<f4")
MAX_EXAMPLES = 5


@dataclass(frozen=True)
class WordVectors:
    """Vectors of words, and how they were found.

    Attributes:
        form: name of the file's form.
        size: size of the vectors.
        vectors: word → vector [size] in float32. A word found in lower case only is lower-cased here, as the processor
            looks it up.
        exact, lower_cased, composed: number of requested words that are in the file as written, that are there in lower
            case only, and whose vectors are composed of sub-words.
        unknown: the requested words without a vector, sorted.
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
        """The embeddings [V, size] of a vocabulary of these words: 0 for padding, their mean for the unknown word."""
        table = np.zeros((len(vocabulary), self.size), dtype=np.float32)
        words = {word: vector for word, vector in self.vectors.items() if word not in (PADDING, UNKNOWN)}
        for word, vector in words.items():
            table[vocabulary[word]] = vector
        table[vocabulary[UNKNOWN]] = table.sum(axis=0, dtype=np.float64) / max(1, len(words))
        return table

    def report(self) -> str:
        """One line: how many distinct words have vectors, and how these were found."""
        asked = self.exact + self.lower_cased + self.composed + len(self.unknown)
        examples = ", ".join(map(repr, self.unknown[:MAX_EXAMPLES]))
        more = ", …" if len(self.unknown) > MAX_EXAMPLES else ""
        return (
            f"{self.path} ({self.form}, {self.size} numbers per vector): {asked} distinct words, {self.exact} found as "
            f"written, {self.lower_cased} in lower case, {self.composed} made of sub-words, {len(self.unknown)} unknown"
            f"{f' ({examples}{more})' if examples else ''}."
        )


@dataclass(frozen=True)
class _VectorFile:
    """An opened file: its form, and how to read or compose vectors."""

    form: str
    size: int
    read: Callable[[Collection[str] | None], Iterator[tuple[str, np.ndarray]]]
    compose: Callable[[str], np.ndarray | None] = lambda word: None  # only a fastText .bin has sub-words


def read_word_vectors(path: str | Path, words: Collection[str], keep_all: bool = False) -> WordVectors:
    """The vectors of `words`: as written, else in lower case, else (fastText `.bin`) composed of their sub-words.

    Text may be gzipped. If a word comes twice, its first vector counts. `keep_all` keeps the vectors of all words of
    the file, too.

    Raises:
        ValueError: the form of the file is unknown, or it is damaged; the message says where.
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
    for word, vector in vectors.items():
        if not np.isfinite(vector).all():
            raise ValueError(
                f"{path}: the vector of {word!r} has numbers that are not finite. Download the file again."
            )
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
    """Recognizes the form of the file by its first bytes.

    Raises:
        ValueError: it is packed, or of no known form.
    """
    with path.open("rb") as plain:
        is_gzipped = plain.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    with open_corpus(path) as file:
        head = file.read(HEAD_SIZE)
    if head.startswith(FASTTEXT_MAGIC):
        _refuse_packed(path, is_gzipped)
        return _fasttext_file(path, head[: FASTTEXT_HEADER.size])
    first, _, rest = head.partition(b"\n")
    header = HEADER.fullmatch(first)
    if header is None:
        size = first.rstrip().count(b" ")
        if not size or not all(map(_is_number, first.split()[-size:])):
            raise ValueError(
                f"{path} has no word vectors of a known form: it is not a fastText .bin, and its first line is neither "
                "the number of words and the size of the vectors nor a word followed by numbers. Give a .vec or .bin "
                "of fastText, a text or binary file of word2vec, or GloVe's text."
            )
        return _VectorFile("text", size, partial(_read_text, path, size))
    count, size = int(header[1]), int(header[2])
    line = rest.partition(b"\n")[0].rstrip()
    if not line or (b"\0" not in line and _is_number(line.rsplit(b" ", 1)[-1])):
        return _VectorFile("text", size, partial(_read_text, path, size))
    _refuse_packed(path, is_gzipped)
    return _VectorFile("word2vec binary", size, partial(_read_word2vec, path, count, size))


def _refuse_packed(path: Path, is_gzipped: bool) -> None:
    """Raises ValueError for a binary file that is gzipped, which its readers cannot open."""
    if is_gzipped:
        raise ValueError(f"{path} is a gzipped binary file; unpack it: gunzip {path}.")


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_text(path: Path, size: int, wanted: Collection[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    """Vectors of a text file, whose lines have a word and its numbers, separated by spaces."""
    names = None if wanted is None else {word.encode("utf-8", "surrogatepass") for word in wanted}
    with open_corpus(path) as lines:
        for number, line in enumerate(lines, start=1):
            if number == 1 and HEADER.fullmatch(line):
                continue
            line = line.rstrip()
            spaces = line.count(b" ")
            # Splitting off all numbers is slow, and needed for kept words and words with spaces only.
            word = line.split(b" ", 1)[0] if spaces <= size else line.rsplit(b" ", size)[0]
            if spaces >= size and names is not None and word not in names:
                continue
            numbers = line.rsplit(b" ", size)[1:]
            try:
                vector = np.array(numbers, dtype=np.float32)
                problem = "" if len(numbers) == size else f"there are {spaces} numbers after the word instead of {size}"
            except ValueError as error:
                problem = str(error)
            if problem:
                raise ValueError(f"{path}, line {number}: {problem}. The file is damaged; download it again.")
            yield word.decode("utf-8", "replace"), vector


def _read_word2vec(
    path: Path, count: int, size: int, wanted: Collection[str] | None
) -> Iterator[tuple[str, np.ndarray]]:
    """Vectors of word2vec's binary form: a word, a space, and little-endian float32 numbers.

    gensim would load the whole file, 13 GB for BioWordVec; here it is memory-mapped.
    """
    names = None if wanted is None else {word.encode("utf-8", "surrogatepass") for word in wanted}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        position = data.find(b"\n") + 1
        for number in range(count):
            start = data.find(b" ", position) + 1
            end = start + size * FLOAT.itemsize
            if start == 0 or end > len(data):
                raise ValueError(f"{path} is cut off: it has {number} of {count} words. Download it again.")
            word = data[position : start - 1].lstrip(b"\n")  # some writers end vectors with a newline
            if names is None or word in names:
                yield word.decode("utf-8", "replace"), np.frombuffer(data[start:end], FLOAT).astype(np.float32)
            position = end


def _fasttext_file(path: Path, head: bytes) -> _VectorFile:
    """A model in fastText's own binary form, read by gensim."""
    what = f"{path} is a fastText .bin (unlike the .vec file of the same vectors, which has no sub-words)"
    with importing_extra("embeddings", f"{what}, and needs gensim"):
        from gensim.models.fasttext import load_facebook_vectors
    model, problem = None, "it is shorter than its header says"  # gensim would search the end of a word forever
    try:
        size, buckets, words = FASTTEXT_HEADER.unpack(head)
        if path.stat().st_size >= (words + buckets) * size * FLOAT.itemsize:
            model = load_facebook_vectors(str(path))
    except Exception as error:  # gensim checks by `assert`, `struct` and NumPy, each with an exception of its own
        problem = f"{type(error).__name__}: {error}"
    if model is None:
        raise ValueError(
            f"{path} cannot be read as fastText word vectors ({problem}). It is damaged, cut off, or a classifier; "
            "download it again, or give a file of word vectors."
        )

    def read(wanted: Collection[str] | None) -> Iterator[tuple[str, np.ndarray]]:
        for word in model.key_to_index if wanted is None else sorted(wanted & model.key_to_index.keys()):
            yield word, model[word].copy()

    def compose(word: str) -> np.ndarray | None:
        if not model.bucket:
            return None
        vector = model[word].copy()
        return vector if vector.any() else None  # a word too short for any sub-word has zeros

    return _VectorFile("fastText binary", model.vector_size, read, compose)
