"""NestedNERPipeline: raw text in, nested entities with character offsets out."""

import copy
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from functools import partial
from importlib import import_module
from itertools import accumulate
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AutoTokenizer
from transformers.pipelines.base import ChunkPipeline
from transformers.utils import logging

from .batches_triaffine import BATCHES_AT_ONCE, SENTENCES, SENTENCES_ON_GPU, BatchReader, Feature
from .checks_triaffine import check_threshold, shortened
from .decoding_triaffine import CopiedScores, FoundInText, Threshold, find_entities
from .kinds_triaffine import Keep, TextEntity, WordEntity, overlap_policy
from .model_triaffine import TriaffineForNestedNER, evaluating
from .options_triaffine import PREDICTION_OPTIONS, PredictionOptions
from .processing_triaffine import PosTagger, TextSentence, TriaffineProcessor
from .repository_triaffine import ORIGIN_OPTIONS, complete_import, find_file
from .text_triaffine import TextSplitter
from .triaffine_weights import ACCELERATION, multiplies_bfloat16

logger = logging.get_logger(__name__)

CALL_PARAMETERS = ("threshold", "overlap", "labels", "ignore_labels")
# Of transformers' pipeline for tokens: how the labels of a word's tokens become one. A span has one label anyway.
AGGREGATIONS = ("simple", "first", "average", "max")
# Keywords of `from_pretrained` for the model alone; `ORIGIN_OPTIONS` are for the processor, too.
LOADING_KEYWORDS = ("device_map", "attn_implementation", "force_download", "proxies", "use_safetensors", "variant")
# Keywords of transformers' pipelines that its base class would take and ignore.
WITHOUT_EFFECT = ("config", "feature_extractor", "image_processor", "video_processor")


class _Sentence(NamedTuple):
    """A sentence of a text, and whether it is the last."""

    text: str
    words: TextSentence
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
        pos_tagger: tags the text for a model that was trained with parts of speech; see the processor's `pos_tagger`.
        text_splitter: splits texts into sentences and words in place of the model's rules; see the processor's
            `text_splitter`.
        labels: labels whose entities are kept, before `overlap` chooses among them; by default all.
        ignore_labels: labels whose entities are left out; their spans get no other label. Unknown labels are ignored.
        aggregation_strategy: "simple", "first", "average" or "max", all the same: entities are spans of whole words.
        dtype: as in `from_pretrained`, if `model` is a name; `torch_dtype` is its old name. A processor that
            multiplies float32 faster than bfloat16 computes in float32 instead, and converts a model object.
        kwargs: `device`; if `model` is a name, the keywords of `from_pretrained` that say where it is (`revision`,
            `token`, `subfolder`, …), `device_map`, `attn_implementation` and `model_kwargs`. `trust_remote_code` has
            no effect: no code is read from a repository.

    Returns for each text a list of {"entity_group", "score", "word", "start", "end"}, offsets in characters with an
    exclusive end, sorted by start, then longest first. A list, tuple, array, series or column of texts returns a list;
    an iterable without a length, such as a generator, or a data set of torch, such as `KeyDataset`, a generator.

    Raises:
        ValueError, TypeError: a keyword is unknown or has an invalid value, or a text is not a string.

    Sentences of similar length run together. On a GPU, a model loaded with
    `attn_implementation="flash_attention_2", dtype=torch.bfloat16` computes attention without the remaining padding.

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
        dtype: Any = "auto",
        **kwargs: Any,
    ):
        _refuse_unknown({*kwargs} & {*WITHOUT_EFFECT})
        _check_device(kwargs.get("device"))
        dtype = kwargs.get("torch_dtype") or dtype
        kwargs.pop("trust_remote_code", None)
        origin = {name: kwargs.pop(name) for name in ORIGIN_OPTIONS if name in kwargs}
        options = {name: kwargs.pop(name) for name in LOADING_KEYWORDS if name in kwargs}
        options |= kwargs.pop("model_kwargs", None) or {}
        if model is None or isinstance(model, str | os.PathLike):
            model = TriaffineForNestedNER.find_model(model)
        is_object = not isinstance(model, str | os.PathLike)
        if is_object and dtype not in (None, "auto", model.dtype, str(model.dtype).removeprefix("torch.")):
            options["dtype"] = dtype
        if isinstance(processor, str | os.PathLike):
            processor = TriaffineProcessor.from_pretrained(processor, **origin)
        if not is_object:
            processor = processor or TriaffineProcessor.from_pretrained(model, **origin)
            options = {"dtype": dtype, **origin, **options}
            model = _class_of(model, origin).from_pretrained(model, **options)
        elif options or origin.items() - getattr(model, "origin", {}).items():  # transformers' `pipeline` repeats some
            raise TypeError(
                f"NestedNERPipeline: {', '.join(origin | options)} would change how a model is loaded, but `model` is "
                "an object; pass them to its `from_pretrained`, or to transformers' `pipeline` as `model_kwargs`."
            )
        processor = _find_processor(model, processor, tokenizer)
        processor.check_fits(model.config)
        if pos_tagger is not None or text_splitter is not None:
            processor = copy.copy(processor)  # other pipelines may have it, too
        if pos_tagger is not None:
            processor.pos_tagger = pos_tagger
        if text_splitter is not None:
            processor.text_splitter = text_splitter
        super().__init__(model=model, processor=processor, batch_size=batch_size, **kwargs)
        if batch_size is None:  # transformers would take 1
            self._batch_size = SENTENCES_ON_GPU if self.device.type == "cuda" else SENTENCES
        if self.device.type == "cpu" and self.model.dtype == torch.bfloat16 and not multiplies_bfloat16():
            logger.warning(
                "This processor multiplies float32 faster than bfloat16; the model computes in float32, with weights "
                "rounded to bfloat16."
            )
            self.model.float()

    def __call__(self, inputs: Any, is_split_into_words: bool = False, **kwargs: Any) -> Any:  # type: ignore[override]
        if is_split_into_words:  # the words of a text, or of each of several
            if not inputs or isinstance(inputs[0], str):
                return super().__call__(_JoinedWords(inputs), **kwargs)
            inputs = [_JoinedWords(words) for words in inputs]
        if isinstance(inputs, str | bytes | Mapping) or not isinstance(inputs, Iterable):
            return super().__call__(inputs, **kwargs)
        if getattr(inputs, "ndim", 1) != 1:  # an array of arrays; a data frame, which iterates over its columns' names
            raise TypeError(
                f"NestedNERPipeline reads a flat collection of texts, such as a column, not {type(inputs)}."
            )
        is_stream = not isinstance(inputs, Sized)
        texts = (text.as_py() if hasattr(text, "as_py") else text for text in inputs)  # of an Arrow column
        found = super().__call__(texts, is_stream=is_stream, **kwargs)
        return found if is_stream else list(found)

    def _sanitize_parameters(
        self, aggregation_strategy: Any = None, is_stream: bool = False, in_words: bool = False, **parameters: Any
    ) -> Any:
        if getattr(aggregation_strategy, "value", aggregation_strategy) not in (None, *AGGREGATIONS):
            raise ValueError(
                f"`aggregation_strategy` is {shortened(aggregation_strategy)}, but the model scores spans, not tokens; "
                "leave it out."
            )
        _refuse_unknown(set(parameters) - set(CALL_PARAMETERS))
        check_threshold(parameters.get("threshold"), self.model.config.entity_labels)
        overlap_policy(parameters.get("overlap", PredictionOptions.overlap))
        known = self.model.config.entity_labels
        for name in ("labels", "ignore_labels"):
            named = parameters.get(name) or ()
            if isinstance(named, str) or not isinstance(named, Collection):
                raise ValueError(f"`{name}` is {shortened(named)}; give a list of labels.")
        if unknown := [label for label in parameters.get("labels") or () if label not in known]:
            raise ValueError(f"`labels` names {shortened(unknown)}; the model has {known}.")
        choosing: dict[str, Any] = {"in_words": in_words}
        choosing |= {name: parameters.pop(name) for name in ("overlap", "labels") if name in parameters}
        return {"is_stream": is_stream}, parameters, choosing

    def draw(self, text: str, **options: Any) -> Any:
        """The text with its entities, drawn in characters where it is printed and in HTML where a notebook shows it.

        `options` are those of a call. Needs the package `modeling_triaffine`.
        """
        try:
            drawing = import_module("modeling_triaffine.drawing.drawing")
        except ImportError as error:
            raise ImportError("`draw` needs the package: pip install modeling_triaffine") from error
        return drawing.Drawing(text, self(text, **options), self.model.config.entity_labels)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state for pickle and the hashes of data sets, which the number of calls must not change."""
        return {**self.__dict__, "call_count": 0}

    def save_pretrained(self, save_directory: str | os.PathLike[str], **kwargs: Any) -> None:
        """Saves model and processor, with all that loading them needs."""
        self.model.save_pretrained(save_directory, **{"processor": self.processor, **kwargs})  # for a push
        self.processor.save_pretrained(save_directory)

    def push_to_hub(self, repo_id: str, **options: Any) -> Any:
        """Uploads model and processor as one complete repository; see `TriaffineForNestedNER.push_to_hub`."""
        return self.model.push_to_hub(repo_id, processor=self.processor, **options)

    def get_iterator(
        self,
        inputs: Any,
        num_workers: int,
        batch_size: int,
        preprocess_params: dict[str, Any],
        forward_params: dict[str, Any],
        postprocess_params: dict[str, Any],
    ) -> Iterator[Any]:
        """Yields entities text by text. Sentences of several texts run together, in the order of their length."""
        if isinstance(batch_size, Integral) and not isinstance(batch_size, bool):
            batch_size = int(batch_size)  # of NumPy, too
        if problem := PREDICTION_OPTIONS["batch_size"].problem(batch_size):
            raise ValueError(f"NestedNERPipeline: `batch_size` is {shortened(batch_size)}; {problem}")
        if not isinstance(inputs, Iterable):  # a data set of torch, which ends by its length, not by an IndexError
            inputs = map(inputs.__getitem__, range(len(inputs)))
        reader = BatchReader(
            self.processor.pad,
            self._start,
            partial(self._finish, **forward_params),
            self.device,
            batch_size,
            # A stream has results after its first batch; with batches of 1 it never waits.
            1 if preprocess_params["is_stream"] else BATCHES_AT_ONCE,
            inside=partial(evaluating, self.model),
        )
        sentences = (sentence for number, text in enumerate(inputs) for sentence in self.preprocess(text, number))

        def encode(some: list[_Sentence]) -> list[Feature]:
            return self.processor.encode_sentences([sentence.words for sentence in some])

        def stream() -> Iterator[Any]:
            found = FoundInText()  # in the text so far
            for sentence, entities in reader.read(sentences, encode):
                found.add(sentence.words.piece, entities)
                if sentence.is_last:
                    yield self.postprocess((sentence.text, found), **postprocess_params)
                    found = FoundInText()

        return stream()

    def preprocess(self, text: Any, number: int = 0) -> Iterator[_Sentence]:  # type: ignore[override]
        """The sentences of a text, and whether each is its last.

        `number` is the place of the text among those of a call, for errors.
        """
        if not isinstance(text, str):
            raise TypeError(
                f"NestedNERPipeline reads strings, but text {number} (from 0) is of type {type(text).__name__}. Give "
                'each text as one string, bytes decoded, "" for a missing one, and of a data set its column: '
                '(row["text"] for row in data).'
            )
        last = None
        processor = self.processor
        if isinstance(text, _JoinedWords):
            processor = copy.copy(processor)
            processor.text_splitter = text.offsets
        for words in processor.read_text(text):
            if last is not None:
                yield _Sentence(text, last, False)
            last = words
        assert last is not None  # a text without words is one empty sentence
        yield _Sentence(text, last, True)

    def _start(self, inputs: dict[str, Tensor]) -> CopiedScores:
        return CopiedScores(ACCELERATION.run(self.model, inputs))

    def _finish(
        self,
        scores: CopiedScores,
        threshold: Threshold | None = None,
        ignore_labels: Collection[str] | None = None,
    ) -> list[list[WordEntity]]:
        """The entities of the sentences of a batch."""
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
        return [[span for span in of if span["type"] not in ignore_labels] for of in found] if ignore_labels else found

    def _forward(self, *inputs: Any, **parameters: Any) -> Any:
        """Not used: [`BatchReader`] runs the model."""
        raise NotImplementedError

    def postprocess(  # type: ignore[override]
        self,
        found: tuple[str, FoundInText],
        overlap: str | Keep = PredictionOptions.overlap,
        labels: Collection[str] | None = None,
        in_words: bool = False,
    ) -> list[TextEntity] | FoundInText:
        """The entities of a text; `in_words`: before the policy for overlaps, for a caller with one of its own."""
        text, of_words = found
        # Over the whole text: entities from two windows of a long sentence may cross.
        return of_words if in_words else of_words.in_characters(text, overlap, labels)


def _find_processor(model: Any, processor: Any, tokenizer: Any) -> Any:
    """The processor, given under either name, or else loaded from where the model was.

    A tokenizer must be the same, as in `pipeline("ner", model=NAME, tokenizer=NAME)`.
    """
    if processor is None and _is_processor(tokenizer):
        processor, tokenizer = tokenizer, None
    if processor is None and model.config.name_or_path:
        processor = TriaffineProcessor.from_pretrained(model.config.name_or_path, **model.origin)
    if not _is_processor(processor):
        raise ValueError(
            f"NestedNERPipeline: `processor` is {shortened(processor)}; give the TriaffineProcessor saved with the "
            "model, `processor=`, which splits text into sentences, words and sub-words."
        )
    if tokenizer is not None and not _is_tokenizer_of(processor, tokenizer):
        raise ValueError(
            f"NestedNERPipeline: `tokenizer` is {shortened(tokenizer)}, not the one that the model was saved with; "
            "leave it out, because the processor has its own (`processor=`)."
        )
    return processor


def _is_tokenizer_of(processor: Any, tokenizer: Any) -> bool:
    """True if a tokenizer, or that of a folder or Hub name, makes the same sub-words as the processor's."""

    def parts(of: Any) -> dict[str, Any]:
        described: dict[str, Any] = json.loads(of.backend_tokenizer.to_str())
        return {name: part for name, part in described.items() if name not in ("padding", "truncation")}

    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False)
    return getattr(tokenizer, "is_fast", False) and parts(tokenizer) == parts(processor.tokenizer)


def _class_of(name_or_path: Any, origin: dict[str, Any]) -> type[TriaffineForNestedNER]:
    """The class of a saved model: the subclass, if there is one, whose configuration has its `model_type`."""
    classes = [TriaffineForNestedNER]
    for each in classes:
        classes += each.__subclasses__()
    path = find_file(name_or_path, "config.json", origin) if len(classes) > 1 else None
    fields = json.loads(Path(path).read_bytes()) if path else {}
    of_type = [each for each in classes if getattr(each.config_class, "model_type", None) == fields.get("model_type")]
    return of_type[-1] if of_type and of_type[0] is not TriaffineForNestedNER else TriaffineForNestedNER


class _JoinedWords(str):
    """A text of given words with blanks between them: one sentence."""

    __slots__ = ("words",)
    words: list[tuple[int, int]]

    def __new__(cls, words: Iterable[str]) -> "_JoinedWords":
        text = super().__new__(cls, " ".join(words := list(words)))
        ends = [*accumulate(map(len, words), lambda end, length: end + 1 + length)]
        text.words = [(end - len(word), end) for word, end in zip(words, ends, strict=True)]
        return text

    def offsets(self, _: str) -> list[list[tuple[int, int]]]:
        """Splits a text as a `text_splitter` of a processor does."""
        return [self.words]


def _is_processor(given: Any) -> bool:
    """True for a TriaffineProcessor, which in remote code is another class of the same name."""
    return hasattr(given, "check_fits")


def _check_device(device: Any) -> None:
    """Raises ValueError if there is no such device; warns of a number without a GPU, which is the CPU."""
    if isinstance(device, int):
        if device >= 0 and not torch.accelerator.is_available():
            logger.warning(f"device={device}, but torch finds no GPU: the model runs on the CPU.")
    elif device is not None:
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise ValueError(
                f"There is no device {str(device)!r} ({reason:.80}); give cpu, or none to use a GPU if there is one."
            ) from None


def _refuse_unknown(names: set[str]) -> None:
    """Raises TypeError for keywords of a call, or of the constructor, that there are not."""
    if names:
        raise TypeError(
            f"The pipeline has no keyword {', '.join(map(repr, sorted(names)))}; a call takes `threshold`, `overlap`, "
            "`labels`, `ignore_labels`, `batch_size` and `is_split_into_words`."
        )


complete_import(__name__)
