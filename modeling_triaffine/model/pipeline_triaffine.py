"""NestedNERPipeline: raw text in, nested entities with character offsets out."""

import copy
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from functools import partial
from importlib import import_module
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AutoTokenizer
from transformers.pipelines.base import ChunkPipeline
from transformers.utils import logging

from .batches_triaffine import BATCHES_AT_ONCE, BatchReader, Feature
from .checks_triaffine import check_threshold
from .configuration_triaffine import TriaffineConfig
from .decoding_triaffine import CopiedScores, FoundInText, Threshold, find_entities
from .kinds_triaffine import TextEntity, WordEntity, overlap_policy
from .model_triaffine import TriaffineForNestedNER, evaluating
from .options_triaffine import PREDICTION_OPTIONS, PredictionOptions
from .processing_triaffine import PosTagger, TriaffineProcessor
from .repository_triaffine import ORIGIN_OPTIONS, complete_import
from .text_triaffine import Piece, TextSplitter
from .triaffine_blocks import ACCELERATION, multiplies_bfloat16

logger = logging.get_logger(__name__)

CALL_PARAMETERS = ("threshold", "overlap", "labels", "ignore_labels")
# Of transformers' pipeline for tokens: how the labels of a word's tokens become one. A span has one label anyway.
AGGREGATIONS = (None, "simple", "first", "average", "max")
# Keywords of the constructor that are not passed on to `from_pretrained`.
OWN_KEYWORDS = (*CALL_PARAMETERS, "aggregation_strategy", "device", "num_workers", "task")


class _Sentence(NamedTuple):
    """A sentence of a text, or a window of a long one, and whether it is the text's last."""

    text: str
    piece: Piece
    is_last: bool


class NestedNERPipeline(ChunkPipeline):
    """Finds nested entities in raw text: one string, or a list, generator or data set of strings.

    Args:
        model: [`TriaffineForNestedNER`], or the folder or Hub name of one; with the package also the name of a model in
            it, by default `names-en`.
        processor: the [`TriaffineProcessor`] saved with it; by default loaded from where the model was.
        threshold: a probability t keeps every span whose best entity label has at least t; {label: t} sets one for
            each label. Labels without one, or all with None, use the model's own: those that `calibrate` found, or
            else the likeliest label of each span is kept.
        overlap: "all" entities, "nested" (none cross), "flat" (no two spans share a word), or a function
            from the entities of a text, by words, to those that are kept.
        batch_size: sentences of average length that run through the model together; fewer if they are long. By default
            32, or as many as fit on a GPU.
        pos_tagger, text_splitter: attributes of [`TriaffineProcessor`], for this pipeline alone.
        labels: labels whose entities are kept, before `overlap` chooses among them; by default all.
        ignore_labels: labels whose entities are left out; their spans get no other label. Unknown labels are ignored.
        aggregation_strategy: "simple", "first", "average" or "max", all the same: entities are spans of whole words.
        dtype: as in `from_pretrained`, if `model` is a name. A CPU on which float32 is faster than bfloat16 computes in
            float32 instead, and converts a `model` object.
        kwargs: `device`; if `model` is a name, also the keywords of `from_pretrained`, directly or as `model_kwargs`.
            `trust_remote_code` has no effect: no code is read from a repository.

    A call returns a list of {"entity_group", "score", "word", "start", "end"} for each text. Offsets count characters,
    the end is exclusive. Entities are sorted by start, then longest first. A list, tuple, array, series or column of
    texts gives a list; a generator, or a data set of torch such as `KeyDataset`, gives a generator.

    Raises:
        ValueError, TypeError: a keyword is unknown or has an invalid value, or a text is not a string.

    On a GPU, `attn_implementation="flash_attention_2", dtype=torch.bfloat16` computes attention without the padding.

    Examples:
        >>> from modeling_triaffine import NestedNERPipeline
        >>> find_entities = NestedNERPipeline("outputs/demo/model", threshold=0.5, overlap="nested")
        >>> text = "The mayor of Port Velmar resigned."
        >>> all(text[entity["start"] : entity["end"]] == entity["word"] for entity in find_entities(text))
        True
    """

    _load_processor: Any = True
    _load_image_processor: Any = False
    _load_feature_extractor: Any = False
    _load_tokenizer: Any = False
    model: TriaffineForNestedNER
    processor: TriaffineProcessor

    def __init__(
        self,
        model: Any = None,
        processor: Any = None,
        tokenizer: Any = None,
        batch_size: int | None = None,
        pos_tagger: PosTagger | None = None,
        text_splitter: TextSplitter | None = None,
        dtype: Any = None,
        model_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ):
        own = {name: kwargs.pop(name) for name in OWN_KEYWORDS if name in kwargs}
        _check_device(own.get("device"))
        kwargs.pop("trust_remote_code", None)
        dtype = kwargs.pop("torch_dtype", dtype)  # its old name, which transformers' `pipeline` passes, too
        options = {**kwargs, **(model_kwargs or {})}
        if dtype is not None:
            options["dtype"] = dtype
        if model is None or (isinstance(model, str | os.PathLike) and "subfolder" not in options):
            model = TriaffineForNestedNER.find_model(model)
        if isinstance(model, str | os.PathLike):
            origin = {name: options[name] for name in ORIGIN_OPTIONS if name in options}
            model_class = _class_of(model, origin)
            processor = processor or TriaffineProcessor.from_pretrained(model, **origin)
            model = model_class.from_pretrained(model, **options)
        else:  # transformers' `pipeline` repeats some of the keywords that it has loaded the model with
            origin = getattr(model, "origin", {})
            if dtype in ("auto", model.dtype, str(model.dtype).removeprefix("torch.")):
                del options["dtype"]
            unknown = {name for name, value in options.items() if name not in origin or origin[name] != value}
            _refuse_unknown(unknown, " for a loaded model")
        processor = _find_processor(model, processor, tokenizer)
        processor.check_fits(model.config)
        for name, function in {"pos_tagger": pos_tagger, "text_splitter": text_splitter}.items():
            if function is not None:
                processor = copy.copy(processor)  # other pipelines may have it, too
                setattr(processor, name, function)
        super().__init__(model=model, processor=processor, batch_size=batch_size, **own)
        if self.device.type == "cpu" and self.model.dtype == torch.bfloat16 and not multiplies_bfloat16():
            logger.warning("This processor multiplies float32 faster than bfloat16; the model computes in float32.")
            self.model.float()

    def __call__(  # type: ignore[override]
        self,
        inputs: Any,
        *,
        is_split_into_words: bool = False,
        batch_size: int | None = None,
        num_workers: Any = None,
        **parameters: Any,
    ) -> Any:
        """Returns the entities of the text or texts; with `is_split_into_words`, a text is a list of its words.

        `parameters` replace those of the constructor; `num_workers` has no effect.
        """
        options = {**self._postprocess_params, **self._sanitize_parameters(**parameters)[2]}
        batch_size = self._batch_size if batch_size is None else batch_size
        PREDICTION_OPTIONS["batch_size"].check(batch_size, "NestedNERPipeline: ")
        texts: Any = inputs
        is_stream = not isinstance(inputs, Sized)
        if not isinstance(inputs, Iterable) and hasattr(inputs, "__getitem__"):  # a data set of torch
            # It ends by its length, not by an IndexError.
            texts, is_stream = map(inputs.__getitem__, range(len(inputs))), True
        elif isinstance(inputs, str | bytes | Mapping) or not isinstance(inputs, Iterable):
            return next(self._read([inputs], batch_size, False, options))
        elif getattr(inputs, "ndim", 1) != 1:  # an array of arrays, or a data frame, which iterates over its columns
            raise TypeError(f"NestedNERPipeline reads a collection of texts, such as a column, not {type(inputs)}.")
        elif is_split_into_words and not is_stream and all(isinstance(word, str) for word in texts[:1]):
            return next(self._read([inputs], batch_size, False, options, True))
        found = self._read(texts, batch_size, is_stream, options, is_split_into_words)
        return found if is_stream else list(found)

    def _sanitize_parameters(self, aggregation_strategy: Any = None, in_words: bool = False, **parameters: Any) -> Any:
        """Checks the parameters of a call; all of them are parameters of `postprocess`."""
        if aggregation_strategy not in AGGREGATIONS:
            problem = "but the model scores spans, not tokens; leave it out."
            raise ValueError(f"`aggregation_strategy` is {aggregation_strategy!r:.80}, {problem}")
        _refuse_unknown(set(parameters) - set(CALL_PARAMETERS))
        known = self.model.config.entity_labels
        check_threshold(parameters.get("threshold"), known)
        overlap_policy(parameters.get("overlap", PredictionOptions.overlap))
        for name in ("labels", "ignore_labels"):
            named = parameters.get(name) or ()
            if isinstance(named, str) or not isinstance(named, Collection):
                raise ValueError(f"`{name}` is {named!r:.80}; give a list of labels.")
        if unknown := [label for label in parameters.get("labels") or () if label not in known]:
            raise ValueError(f"`labels` names {unknown!r:.80}; the model has {known}.")
        return {}, {}, {"in_words": in_words, **parameters}

    def draw(self, text: str, **options: Any) -> Any:
        """Draws the entities of a text: in characters where it is printed, in HTML where a notebook shows it.

        `options` are those of a call. Needs the package `modeling_triaffine`.
        """
        drawing = import_module("modeling_triaffine.drawing")
        return drawing.Drawing(text, self(text, **options), self.model.config.entity_labels)

    def save_pretrained(self, save_directory: str | os.PathLike[str], **kwargs: Any) -> None:
        """Saves model and processor, with all that loading them needs."""
        self.model.save_pretrained(save_directory, **{"processor": self.processor, **kwargs})  # for a push
        self.processor.save_pretrained(save_directory)

    def push_to_hub(self, repo_id: str, **options: Any) -> Any:
        """Uploads model and processor as one complete repository; see `TriaffineForNestedNER.push_to_hub`."""
        return self.model.push_to_hub(repo_id, processor=self.processor, **options)

    def _read(
        self,
        texts: Iterable[Any],
        batch_size: int | None,
        is_stream: bool,
        options: dict[str, Any],
        of_words: bool = False,
    ) -> Iterator[Any]:
        """Yields entities text by text."""
        finish = partial(self.decode, threshold=options.get("threshold"))
        # A stream has results after its first batch; with batches of 1 it never waits.
        batches = 1 if is_stream else BATCHES_AT_ONCE
        found = FoundInText()  # in the text so far
        for sentence, entities in self.read_sentences(texts, finish, batch_size, batches, of_words):
            found.add(sentence.piece, entities)
            if sentence.is_last:
                yield self.postprocess((sentence.text, found), **options)
                found = FoundInText()

    def read_sentences(
        self,
        texts: Iterable[Any],
        finish: Callable[[CopiedScores], Iterable[Any]],
        batch_size: int | None,
        batches: int = BATCHES_AT_ONCE,
        of_words: bool = False,
    ) -> Iterator[tuple[_Sentence, Any]]:
        """Yields each sentence with its result of `finish`. Those of several texts run together, by their length."""
        options = self.device, batch_size, batches
        inside = partial(evaluating, self.model)
        reader = BatchReader(self.processor.pad, self._forward, finish, *options, inside=inside)
        sentences = chain.from_iterable(self.preprocess(text, number, of_words) for number, text in enumerate(texts))

        def encode(pool: list[_Sentence]) -> list[Feature]:
            return self.processor.encode_pieces([sentence.piece for sentence in pool])

        return reader.read(sentences, encode)

    def preprocess(self, text: Any, number: int = 0, of_words: bool = False) -> Iterator[_Sentence]:  # type: ignore[override]
        """Yields the sentences of text `number` of a call, or the one sentence of a list of words, or their windows."""
        text = text.as_py() if hasattr(text, "as_py") else text  # of an Arrow column
        if of_words and isinstance(text, Iterable) and not isinstance(text, str):
            words = list(text)
            if wrong := [word for word in words if not isinstance(word, str) or not word]:
                raise TypeError(f"NestedNERPipeline: text {number} (from 0) has {wrong[0]!r} in place of a word.")
            ends = accumulate(map(len, words), lambda end, length: end + 1 + length)
            offsets = [(end - len(word), end) for word, end in zip(words, ends, strict=True)]
            text = " ".join(words)
            pieces: Iterator[Any] = self.processor.windows(words, offsets=offsets)
        elif isinstance(text, str) and not of_words:
            pieces = self.processor.read_text(text)
        else:
            raise TypeError(
                f"NestedNERPipeline reads strings, but text {number} (from 0) is of type {type(text).__name__}. Give "
                'each text as one string, bytes decoded, "" for a missing one, and of a data set its column: '
                '(row["text"] for row in data). With `is_split_into_words`, give a list of words.'
            )
        for piece, following in pairwise(chain(pieces, [None])):
            yield _Sentence(text, piece, following is None)

    def _forward(self, inputs: dict[str, Tensor]) -> CopiedScores:  # type: ignore[override]
        return CopiedScores(ACCELERATION.run(self.model, {**inputs, "return_dict": True}))

    def decode(self, scores: CopiedScores, threshold: Threshold | None) -> list[list[WordEntity]]:
        """Decodes the entities of the sentences of a batch."""
        found = find_entities(scores, self.model.config, threshold)
        if scores.wait()[0].isnan().any():
            logger.warning_once(
                "The model's scores of a sentence are not numbers, so nothing is found there, perhaps because "
                f"{self.model.dtype} is too narrow. Load the model with dtype='bfloat16' or 'float32'."
            )
        most = self.model.config.max_candidates
        if self.model.config.cross_span and any(
            len(of) >= most and len({(e["start"], e["end"]) for e in of}) >= most for of in found
        ):
            logger.warning_once(
                f"A sentence has entities at {most} places, the most that the model finds in one sentence, so some may "
                "be missed. Raise `max_candidates` in the model's configuration, or lower `max_sentence_words` of the "
                "processor: more sentences are then scored in windows, each with as many places."
            )
        return found

    def postprocess(  # type: ignore[override]
        self,
        found: tuple[str, FoundInText],
        overlap: Any = PredictionOptions.overlap,
        labels: Collection[str] | None = None,
        ignore_labels: Collection[str] | None = None,
        in_words: bool = False,
        threshold: Any = None,
    ) -> list[TextEntity] | FoundInText:
        """Returns the entities of a text; `in_words`: before the policy for overlaps, for a caller that has its own."""
        text, in_text = found
        if in_words:
            return in_text
        if ignore_labels:
            labels = self.model.config.entity_labels if labels is None else labels
            labels = [label for label in labels if label not in ignore_labels]
        # Over the whole text: entities from two windows of a long sentence may cross.
        return in_text.in_characters(text, overlap, labels)


def _find_processor(model: Any, processor: Any, tokenizer: Any) -> Any:
    """The processor, given under either name, or else loaded from where the model was; a tokenizer must be its own."""
    if processor is None and hasattr(tokenizer, "check_fits"):  # a processor, in remote code one of another class
        processor, tokenizer = tokenizer, None
    if processor is None:
        processor = model.config.name_or_path or None
    if isinstance(processor, str | os.PathLike):
        processor = TriaffineProcessor.from_pretrained(processor, **model.origin)
    if not hasattr(processor, "check_fits"):
        remedy = "give the TriaffineProcessor that was saved with the model, `processor=`"
        raise ValueError(f"NestedNERPipeline: `processor` is {processor!r:.80}; {remedy}.")
    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False)
    if tokenizer is not None and tokenizer.get_vocab() != processor.tokenizer.get_vocab():
        remedy = "leave it out: `processor=` has the one that the model was saved with"
        raise ValueError(f"NestedNERPipeline: `tokenizer` is {tokenizer!r:.80}; {remedy}.")
    return processor


def _class_of(name_or_path: Any, origin: dict[str, Any]) -> type[TriaffineForNestedNER]:
    """The class of a saved model: the subclass, if there is one, whose configuration has its `model_type`."""
    classes = [TriaffineForNestedNER]
    for each in classes:  # the list grows meanwhile
        classes += each.__subclasses__()
    by_type: dict[Any, Any] = {getattr(each.config_class, "model_type", None): each for each in reversed(classes)}
    fields, _ = TriaffineConfig.get_config_dict(name_or_path, **origin)
    return by_type.get(fields.get("model_type"), TriaffineForNestedNER)


def _check_device(device: Any) -> None:
    """Raises ValueError if there is no such device; warns of a number without a GPU, which is the CPU."""
    if isinstance(device, int):
        if device >= 0 and not torch.accelerator.is_available():
            logger.warning(f"device={device}, but torch finds no GPU: the model runs on the CPU.")
    elif device is not None:
        try:
            torch.zeros(1, device=device).item()  # has no value on the device meta
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"There is no device {str(device)!r}; give cpu, or none to use a GPU if any.") from error


def _refuse_unknown(names: set[str], where: str = "") -> None:
    """Raises TypeError for keywords of a call, or of the constructor, that there are not."""
    if names:
        raise TypeError(
            f"The pipeline has no keyword {', '.join(map(repr, sorted(names)))}{where}; a call "
            "takes `threshold`, `overlap`, `labels`, `ignore_labels`, `batch_size` and `is_split_into_words`."
        )


complete_import(__name__)
