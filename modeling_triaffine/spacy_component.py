"""The spaCy component "triaffine_ner": a trained model's nested entities in `doc.spans`, and in `doc.ents` when asked.

Needs the extra `spacy`. spaCy finds the component by its entry point, nothing of this package has to be imported:

```python
nlp = spacy.blank("en")
nlp.add_pipe("triaffine_ner", config={"model": "folder-of-a-trained-model"})
doc = nlp("IL-2 gene expression and NF-kappa B activation through CD28")
for span, score in zip(doc.spans["sc"], doc.spans["sc"].attrs["scores"]):
    print(span.start_char, span.end_char, span.label_, score)
```

The model reads `doc.text` and cuts it into sentences and words itself, as it was trained to; spaCy's sentences are not
looked at, and its tokens only say where the spans of the result lie. The entities are those of [`NestedNERPipeline`].
"""

import io
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from .errors import missing_extra
from .model.decoding_triaffine import check_overlap, check_threshold
from .model.modeling_triaffine import TriaffineForNestedNER
from .model.pipeline_triaffine import DEFAULT_BATCH_SIZE, NestedNERPipeline
from .model.processing_triaffine import TriaffineProcessor

try:
    from spacy import util
    from spacy.language import Language
    from spacy.pipeline import Pipe
    from spacy.pipeline.span_ruler import prioritize_existing_ents_filter
    from spacy.tokens import Doc, Span, SpanGroup
except ImportError as error:
    raise missing_extra('The component "triaffine_ner" needs spaCy', "spacy") from error

MODEL_FOLDER = "model"


@Language.factory("triaffine_ner", assigns=["doc.spans"])
class TriaffineNER(Pipe):
    """Sets the nested entities of a document, made by `nlp.add_pipe("triaffine_ner", config={...})`.

    `doc.spans[spans_key]` is set anew, in the pipeline's order (by start, then longest first), with two arrays beside
    the n spans: `attrs["scores"]` [n], and `attrs["char_offsets"]` [n, 2], start and exclusive end of each entity in
    `doc.text` as the model found it. Where these are no borders of spaCy's tokens, the span is the tokens that cover
    the entity: it is counted, and warned of, and two entities inside one token give two equal spans.

    Args:
        model: folder or Hub name of the saved model and processor, read at the first use (or by [`pipeline`]), so that
            a saved spaCy pipeline, which brings its own copy, does not ask for the place it was made from.
        device: such as "cpu" or "cuda:0"; None leaves the choice to transformers.
        batch_size: sentences that run through the model together, see [`NestedNERPipeline`]; that of `nlp.pipe` is the
            number of documents whose sentences are put together.
        threshold: None takes the likeliest label of each span; a probability t keeps every span whose best entity
            label has at least t.
        overlap: "all" entities, "nested" (none cross) or "flat" (none share a word).
        spans_key: where in `doc.spans`.
        set_ents: sets `doc.ents` too, which cannot overlap: the longest in tokens first, of equally long ones the
            first of the text. The others are in `doc.spans` only.
        keep_ents: whether `set_ents` leaves the entities that stand in `doc.ents` already, and adds only what does not
            overlap them; otherwise it replaces them.

    Attributes:
        num_entities: set since the component was made, in this process.
        num_misaligned: those of them that do not begin and end where tokens do.
    """

    def __init__(
        self,
        nlp: Language,
        name: str = "triaffine_ner",
        model: str | None = None,
        device: str | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        threshold: float | None = None,
        overlap: str = "all",
        spans_key: str = "sc",
        set_ents: bool = False,
        keep_ents: bool = False,
    ):
        check_threshold(threshold)
        check_overlap(overlap)
        self.name = name
        self.num_entities = 0
        self.num_misaligned = 0
        self._source = model
        self._pipeline: NestedNERPipeline | None = None
        self._options: dict[str, Any] = {
            "device": device,
            "batch_size": batch_size,
            "threshold": threshold,
            "overlap": overlap,
        }
        self._spans_key = spans_key
        self._set_ents = set_ents
        self._keep_ents = keep_ents

    @property
    def pipeline(self) -> NestedNERPipeline:
        """The model's own pipeline; asking for it reads the model if that has not been read yet."""
        if self._pipeline is None:
            if self._source is None:
                raise ValueError(
                    f'The component "{self.name}" has no model: add it with config={{"model": ...}}, the folder or Hub '
                    "name of a trained model, or load a saved spaCy pipeline, which brings its own."
                )
            self._pipeline = self._read(self._source)
        return self._pipeline

    @property
    def labels(self) -> tuple[str, ...]:
        """Entity labels of the model; none before it was read."""
        if self._pipeline is None:
            return ()
        id2label: Any = self._pipeline.model.config.id2label
        return tuple(id2label[label] for label in sorted(id2label)[:-1])  # the last is "None"

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """The documents with their entities, in order; `batch_size` of them are read together."""
        for docs in util.minibatch(stream, size=batch_size):
            try:
                self._annotate(docs)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Saves model and processor in the folder "model", which any loader of the model can read.

        The settings are the spaCy pipeline's configuration. Exclude "model" to save nothing.
        """
        util.to_disk(path, {MODEL_FOLDER: self._save}, exclude)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "TriaffineNER":
        """Reads what `to_disk` saved, in place of the model given before; the settings stay."""
        util.from_disk(path, {MODEL_FOLDER: self._load}, exclude)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The folder of `to_disk` as a ZIP archive."""
        archive = io.BytesIO()
        with TemporaryDirectory() as folder, zipfile.ZipFile(archive, "w") as files:
            self.to_disk(folder, exclude=exclude)
            for file in sorted(Path(folder).rglob("*")):
                files.write(file, file.relative_to(folder))
        return archive.getvalue()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "TriaffineNER":
        """Reads what `to_bytes` gave, in place of the model given before; the settings stay."""
        with TemporaryDirectory() as folder, zipfile.ZipFile(io.BytesIO(data)) as files:
            files.extractall(folder)
            return self.from_disk(folder, exclude=exclude)

    def _save(self, folder: Path) -> None:
        self.pipeline.save_pretrained(folder)

    def _load(self, folder: Path) -> None:
        # In full: what is not a folder is taken for a Hub name, and this must never become one.
        self._pipeline = self._read(str(folder.resolve()))

    def _read(self, source: str) -> NestedNERPipeline:
        try:
            processor = TriaffineProcessor.from_pretrained(source)
            model = TriaffineForNestedNER.from_pretrained(source, use_safetensors=True)
        except (OSError, ValueError) as error:
            where = source if Path(source).is_dir() else f"{source}, which is no folder here"
            raise ValueError(
                f'The component "{self.name}" cannot read the model of {where}: {error} `model` takes the folder or '
                "Hub name of a trained model with safetensors weights, saved together with its processor."
            ) from error
        try:
            return NestedNERPipeline(model=model, processor=processor, **self._options)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f'The component "{self.name}" cannot use device {self._options["device"]!r}: {error}. Give another '
                f'`device`; for a saved pipeline, spacy.load(..., config={{"components.{self.name}.device": "cpu"}}).'
            ) from error

    def _annotate(self, docs: list[Doc]) -> None:
        misaligned = 0
        for doc, entities in zip(docs, self.pipeline([doc.text for doc in docs]), strict=True):
            group = _span_group(doc, self._spans_key, entities)
            doc.spans[self._spans_key] = group
            if self._set_ents:
                doc.ents = prioritize_existing_ents_filter(doc.ents if self._keep_ents else (), group)
            self.num_entities += len(group)
            misaligned += _num_misaligned(group)
        self.num_misaligned += misaligned
        if misaligned:
            # Always the same words, so that Python's own filter shows them once.
            warnings.warn(
                f'"{self.name}": entities that do not begin and end where spaCy\'s tokens do stand as the tokens that '
                f'cover them; doc.spans["{self._spans_key}"].attrs["char_offsets"] tells where they are, and '
                "`num_misaligned` of the component how many.",
                stacklevel=2,
            )


def _span_group(doc: Doc, name: str, entities: list[dict[str, Any]]) -> SpanGroup:
    spans = [_covering_span(doc, entity) for entity in entities]
    offsets = [(entity["start"], entity["end"]) for entity in entities]
    attributes = {
        "scores": np.array([entity["score"] for entity in entities], dtype=np.float64),
        "char_offsets": np.array(offsets, dtype=np.int64).reshape(-1, 2),
    }
    return SpanGroup(doc, name=name, attrs=attributes, spans=spans)


def _covering_span(doc: Doc, entity: dict[str, Any]) -> Span:
    span = doc.char_span(entity["start"], entity["end"], label=entity["entity_group"], alignment_mode="expand")
    assert span is not None  # the offsets lie within the text
    return span


def _num_misaligned(group: SpanGroup) -> int:
    covered = np.array([(span.start_char, span.end_char) for span in group]).reshape(-1, 2)
    return int((covered != group.attrs["char_offsets"]).any(-1).sum())
