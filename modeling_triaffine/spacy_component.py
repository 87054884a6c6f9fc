"""The spaCy component "triaffine_ner": a trained model's nested entities in `doc.spans`, optionally in `doc.ents`.

Needs the extra `spacy`. spaCy finds the component by its entry point, without an import of this package:

```python
nlp = spacy.blank("en")
nlp.add_pipe("triaffine_ner", config={"model": "folder-of-a-trained-model"})
doc = nlp("IL-2 gene expression and NF-kappa B activation through CD28")
for span, score in zip(doc.spans["sc"], doc.spans["sc"].attrs["scores"]):
    print(span.start_char, span.end_char, span.label_, score)
```

The model reads `doc.text` and splits it into sentences and words as in training; spaCy's sentences are ignored, and its
tokens only define the spans of the result. The entities are those of [`NestedNERPipeline`].
"""

import warnings
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from transformers.utils import CONFIG_NAME

from .errors import importing_extra
from .installed_models import find_model
from .model.options_triaffine import PredictionOptions
from .model.pipeline_triaffine import NestedNERPipeline
from .model.repository_triaffine import find_file

with importing_extra("spacy", 'The component "triaffine_ner" needs spaCy'):
    from spacy import util
    from spacy.language import Language
    from spacy.pipeline import Pipe
    from spacy.pipeline.spancat import spancat_score
    from spacy.tokens import Doc, SpanGroup


@Language.factory("triaffine_ner", assigns=["doc.spans"])
class TriaffineNER(Pipe):
    """Sets the nested entities of a document; created by `nlp.add_pipe("triaffine_ner", config={...})`.

    Replaces `doc.spans[spans_key]` by n spans in the order of the pipeline (by start, then longest first) with two
    arrays: `attrs["scores"]` [n], and `attrs["char_offsets"]` [n, 2], the start and exclusive end of each entity in
    `doc.text` as found by the model. If these are not boundaries of spaCy's tokens, the span covers all tokens that
    overlap the entity, with a warning, and two entities in one token give equal spans.

    Args:
        model: as in [`NestedNERPipeline`]. It is loaded at the first use: a saved spaCy pipeline has its own copy and
            does not need the original.
        device, batch_size (sentences), threshold, overlap: see [`NestedNERPipeline`].
        spans_key: key in `doc.spans`.
        set_ents: also replace `doc.ents`, which cannot overlap: longest first (in tokens), then by start.
    """

    def __init__(
        self,
        nlp: Language,
        name: str = "triaffine_ner",
        model: str | None = None,
        device: str | None = None,
        batch_size: int | None = PredictionOptions.batch_size,
        threshold: float | dict[str, float] | None = None,
        overlap: str = PredictionOptions.overlap,
        spans_key: str = "sc",
        set_ents: bool = False,
    ):
        # A wrong name is an error here, not at the first text; but a saved spaCy pipeline has its model beside it.
        if not nlp._meta.get("pipeline") and find_file(find_model(model), CONFIG_NAME, {}) is None:
            raise FileNotFoundError(f'"{name}": there is no model in {model}, which has no {CONFIG_NAME}.')
        self.name, self._source = name, model
        self._spans_key, self._set_ents = spans_key, set_ents
        self.scorer = partial(spancat_score, spans_key=spans_key)  # of `nlp.evaluate`
        self._options = dict[str, Any](device=device, batch_size=batch_size, threshold=threshold, overlap=overlap)

    @cached_property
    def pipeline(self) -> NestedNERPipeline:
        """The model's own pipeline, loaded at the first access."""
        return NestedNERPipeline(self._source, **self._options)

    @property
    def labels(self) -> tuple[str, ...]:
        """Entity labels of the model; empty before it is loaded."""
        return tuple(self.pipeline.model.config.entity_labels) if "pipeline" in vars(self) else ()

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """The documents with their entities, in order, processed in groups of `batch_size`."""
        for docs in util.minibatch(stream, size=batch_size):
            try:
                self._annotate(docs)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Saves model and processor in a folder; the settings are part of the spaCy pipeline's configuration."""
        self.pipeline.save_pretrained(path)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "TriaffineNER":
        """Loads the model saved by `to_disk`; the settings do not change."""
        # An absolute path, so that a missing folder is never taken for a Hub name.
        self.pipeline = NestedNERPipeline(find_model(str(Path(path).resolve())), **self._options)
        return self

    def _annotate(self, docs: list[Doc]) -> None:
        for doc, entities in zip(docs, self.pipeline([doc.text for doc in docs]), strict=True):
            offsets = [(entity["start"], entity["end"]) for entity in entities]
            spans: list[Any] = [  # never None inside the text
                doc.char_span(*place, label=entity["entity_group"], alignment_mode="expand")
                for place, entity in zip(offsets, entities, strict=True)
            ]
            attributes = {
                "scores": np.array([entity["score"] for entity in entities], dtype=np.float64),
                "char_offsets": np.array(offsets, dtype=np.int64).reshape(-1, 2),
            }
            doc.spans[self._spans_key] = SpanGroup(doc, name=self._spans_key, attrs=attributes, spans=spans)
            if self._set_ents:
                doc.ents = util.filter_spans(spans)
            if [(span.start_char, span.end_char) for span in spans] != offsets:
                # Always the same message, so that Python's default filter shows it once.
                warnings.warn(
                    f'"{self.name}": some entities do not begin and end at token boundaries of spaCy; their spans '
                    f'cover all overlapping tokens. doc.spans["{self._spans_key}"].attrs["char_offsets"] has the '
                    "exact offsets.",
                    stacklevel=2,
                )
