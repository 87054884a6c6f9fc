"""The model: sub-words → words → span scores → loss.

`TriaffineForNestedNER` = encoder + `WordRepresentation` (`words_triaffine.py`) + `TriaffineSpanHead`
(`span_head_triaffine.py`). `decoding_triaffine.py` converts the scores to entities.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedModel
from transformers.utils import can_return_tuple, logging

from .checks_triaffine import listed, reading
from .configuration_triaffine import PipelineTasks, TriaffineConfig
from .repository_triaffine import (
    ORIGIN_OPTIONS,
    HubMixin,
    check_index,
    complete_import,
    find_pipeline_class,
    refuse_broken,
    refuse_redirections,
    register_task,
)
from .span_head_triaffine import NestedNEROutput, TriaffineSpanHead
from .triaffine_blocks import ACCELERATION
from .words_triaffine import WordRepresentation, pool_subwords

logger = logging.get_logger(__name__)

# OpenMP's threads do not live on in a fork, and torch would wait for them for ever. Where one thread computes, there is
# none to wait for; PyTorch's own workers, those of its DataLoader, do the same.
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


class TriaffineForNestedNER(HubMixin, PreTrainedModel):
    """Nested named entity recognition by span classification with triaffine attention and scoring.

    Examples:
        >>> import torch
        >>> from modeling_triaffine import TriaffineForNestedNER, TriaffineProcessor
        >>> model = TriaffineForNestedNER.from_pretrained("outputs/demo/model").eval()
        >>> processor = TriaffineProcessor.from_pretrained("outputs/demo/model")
        >>> batch = processor(words=["The", "mayor", "of", "Orsk"])
        >>> with torch.no_grad():
        ...     output = model(**batch)
        >>> output.span_logits.shape == (1, 4, 4, model.config.num_labels)
        True
    """

    config: TriaffineConfig
    base_model_prefix = "encoder"
    main_input_name = "input_ids"
    # transformers adds the encoder's. The stages of the head share tensors, and cannot run on two devices.
    _no_split_modules = ["TriaffineSpanHead", "WordRepresentation"]  # noqa: RUF012
    # Also in a model loaded in float16, whose range products of three vectors exceed.
    _keep_in_fp32_modules = ["head"]  # noqa: RUF012
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    # Otherwise the Trainer assumes that a subclass with `forward(**kwargs)` scales its loss for gradient accumulation.
    accepts_loss_kwargs = False

    # Set by the package: what builds, starts and publishes models is not remote code.
    from_encoder: ClassVar[Callable[..., Any]]
    start_weights: Callable[..., None] | None = None
    push_repository: Callable[..., Any] | None = None
    find_model: ClassVar[Callable[[Any], Any]] = staticmethod(lambda name: name)  # folder or Hub name of a named model
    # `ORIGIN_OPTIONS` that the model was loaded with.
    origin: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, config: TriaffineConfig):
        super().__init__(config)
        if config.encoder_config is None:
            raise ValueError("TriaffineForNestedNER: the configuration has no `encoder_config`; use from_encoder().")
        with reading("TriaffineForNestedNER: transformers cannot build the encoder", "`encoder_config`"):
            self.encoder = AutoModel.from_config(config.encoder_config, trust_remote_code=False)
        if getattr(self.encoder, "pooler", None) is not None:
            # Unused, and data-parallel training rejects unused weights; some encoders call it in any case.
            self.encoder.pooler = nn.Identity()
        _check_positions(self.encoder, config.max_subwords)
        self.supports_gradient_checkpointing = self.encoder.supports_gradient_checkpointing
        self.words = WordRepresentation(config)
        self.head = TriaffineSpanHead(config)
        self.post_init()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        """As in transformers, but from safetensors only, and with all weights or an error."""
        wants_report = kwargs.pop("output_loading_info", False)
        kwargs |= {"use_safetensors": True, "output_loading_info": True}  # pickles could run code
        where = f"The weights in {pretrained_model_name_or_path}"
        if pretrained_model_name_or_path is not None:
            check_index(pretrained_model_name_or_path, kwargs)
            refuse_redirections(pretrained_model_name_or_path, "config.json", kwargs)
            if os.path.isdir(pretrained_model_name_or_path):  # the working directory can change
                pretrained_model_name_or_path = os.path.abspath(pretrained_model_name_or_path)
        try:
            loaded: Any = super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)
        except SafetensorError as error:
            raise ValueError(f"{where} are damaged or cut off ({error}); copy or download the file again.") from None
        model, report = loaded
        model.origin = {name: kwargs[name] for name in ORIGIN_OPTIONS if name in kwargs}
        refuse_broken(where, model)
        if hasattr(model, "hf_device_map") and any(weight.is_meta for weight in model.head.parameters()):
            raise ValueError(f"{where}: `device_map` offloads the head, which cannot be; place 'head' on a device.")
        if new := sorted(name for name, *_ in report["mismatched_keys"]):
            logger.warning(f"{listed(new)} have other shapes in the file, and are new: train the model before its use.")
            if model.start_weights is not None:
                model.start_weights(new)
        return (model, report) if wants_report else model

    @staticmethod
    def _finalize_model_loading(model: Any, load_config: Any, loading_info: Any) -> Any:
        """Refuses weights that do not fit, before transformers fills memory with what is missing in the file."""
        where = f"The weights in {model.config.name_or_path}"
        if loading_info.mismatched_keys and not load_config.ignore_mismatched_sizes:
            shapes = [f"{name} {[*theirs]}, not {[*ours]}" for name, theirs, ours in loading_info.mismatched_keys]
            raise ValueError(
                f"{where} do not match the shapes in config.json ({listed(sorted(shapes), 3)}); restore the "
                "config.json that was saved with them. If you gave other labels, add ignore_mismatched_sizes=True: the "
                "weights that depend on them are then new."
            )
        lacking = {*loading_info.missing_keys} - {*model.all_tied_weights_keys}
        if missing := sorted(lacking & _own_weights(model)):
            remedy = "save the model again, or build one on an encoder with from_encoder()"
            if any(name.startswith("encoder.base_model.") for name in loading_info.unexpected_keys):
                merge = "model.encoder = model.encoder.merge_and_unload()"
                remedy = f"the encoder was saved with PEFT adapters; merge them, {merge}, and save the model again"
            raise ValueError(f"{where} lack {listed(missing)}, which would be random; {remedy}.")
        return PreTrainedModel._finalize_model_loading(model, load_config, loading_info)

    @property
    def is_quantized(self) -> bool:
        """For the Trainer, which refuses to train quantized weights: False if PEFT adapters are trained beside them."""
        return self.__dict__.get("_is_quantized", False) and not hasattr(self.encoder, "peft_config")

    @is_quantized.setter
    def is_quantized(self, value: bool) -> None:
        self.__dict__["_is_quantized"] = value

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickle and hashes: without the token that loaded the model, and without local functions.

        Those are the hooks by which transformers captures the layers, and which it registers again in the next call.
        """
        for module in self.encoder.modules():
            for number, hook in list(module._forward_hooks.items()):
                if getattr(hook, "__module__", None) == "transformers.utils.output_capturing":
                    del module._forward_hooks[number]
            module.__dict__.pop("_output_capturing_hooks_installed", None)
        return {
            **super().__getstate__(),
            "origin": {name: value for name, value in self.origin.items() if name != "token"},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # transformers notes which layers an encoder can return when one is built; in this process none may have been.
        with torch.device("meta"):
            AutoModel.from_config(self.config.encoder_config, trust_remote_code=False)

    def save_pretrained(self, save_directory: Any, *arguments: Any, **options: Any) -> None:
        """As in transformers, but `push_to_hub=True` uploads the whole repository, by the main process."""
        names = ("is_main_process", "state_dict", "push_to_hub", "max_shard_size", "variant", "token")
        options |= zip(names, arguments, strict=False)  # in the order of transformers
        weights = self.state_dict() if options.get("state_dict") is None else options["state_dict"]
        if any("_orig_mod." in name for name in weights):  # of `model.encoder = torch.compile(model.encoder)`
            options["state_dict"] = {name.replace("_orig_mod.", ""): weight for name, weight in weights.items()}
        try:
            super().save_pretrained(save_directory, **options)
        except SafetensorError as error:
            raise OSError(f"The weights cannot be written to {save_directory}: {error}") from error

    def push_to_hub(self, repo_id: str, *, private: bool | None = True, **options: Any) -> Any:  # type: ignore[override]
        """Uploads the whole repository: weights, code, processor, card and what an endpoint needs, in one commit.

        A new repository is private unless `private` is False. The processor is `processor=`, or the one saved where the
        model was loaded from; without either, `processor.push_to_hub(repo_id)` completes the repository. For the other
        options see [`publishing.push_model`]. Without this package, a model uploads what `save_pretrained` writes.
        """
        push = super().push_to_hub if self.push_repository is None else self.push_repository
        return push(repo_id, private=private, **options)

    def resize_token_embeddings(self, *args: Any, **options: Any) -> nn.Module:  # type: ignore[override]
        """Resizes the encoder's embeddings, and so updates its `vocab_size`, which is saved in our configuration."""
        return self.encoder.resize_token_embeddings(*args, **options)

    def _init_weights(self, module: nn.Module) -> None:
        """Draws weights by `reset_parameters`, torch's or the paper's; of modules without it as transformers does."""
        reset = getattr(module, "reset_parameters", None)
        if reset is None:
            super()._init_weights(module)
        else:
            reset()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        word_index: Tensor | None = None,
        num_words: Tensor | None = None,
        *,
        token_type_ids: Tensor | None = None,
        word_ids: Tensor | None = None,
        pos_ids: Tensor | None = None,
        char_ids: Tensor | None = None,
        packed_words: Tensor | None = None,
        labels: Tensor | None = None,
        targets: Tensor | None = None,
        max_words: int | None = None,
        inputs_embeds: None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> NestedNEROutput:
        """Scores all spans of each sentence. B sentences, S sub-words, N words, C characters.

        Args:
            input_ids, attention_mask [B, S]: sub-words with their context. If S exceeds `max_subwords`, windows of
                `max_subwords` one after the other, as the processor lays out a long sentence.
            word_index [B, S]: the word of each sub-word; -1 for special tokens, context and padding.
            num_words [B]: words of each sentence.
            token_type_ids [B, S]: 1 for context (ignored by encoders without segments).
            word_ids, pos_ids [B, N], char_ids [B, N, C]: ids of the optional word parts.
            packed_words [n]: those of `pack_words`; a GPU then computes without padding. N must be the longest length.
            labels [B, N, N]: label of each span (i, j), -100 for other pairs; with `multi_label` [B, N, N, R - 1].
            targets [B, N, N, R], or R - 1 with `multi_label`: soft targets; `labels` is then used only for its -100
                positions.
            max_words: N, the words of the longest sentence. If not given, the host waits for the device to learn it.
            inputs_embeds: must be None, as PEFT passes it for models of a `task_type`.
            output_attentions, output_hidden_states: whether to return these; by default as in the configuration.

        Returns:
            With R labels and m candidates: `span_logits` [B, N, N, R], `candidates` [B, m, 2] (first and last word),
            `candidate_mask` [B, m] and the final `logits` [B, m, R]; with labels also `loss`.

        Raises:
            ValueError: the inputs are not those of processor and collator.
            NotImplementedError: torch traces the model to export it; `triaffine-ner export` exports it.
        """
        if torch.jit.is_tracing() or torch.compiler.is_exporting():  # type: ignore[attr-defined]
            raise NotImplementedError("torch cannot export sizes that depend on a batch; `triaffine-ner export` can.")
        if word_index is None or num_words is None or inputs_embeds is not None:
            raise ValueError(
                "TriaffineForNestedNER needs `word_index` and `num_words`, which a tokenizer does not return, and no "
                "`inputs_embeds`: make its inputs with TriaffineProcessor, or use NestedNERPipeline."
            )
        if labels is not None and (labels.dim() != 3 + self.config.multi_label or labels.shape[1] != labels.shape[2]):
            raise ValueError(f"`labels` is {[*labels.shape]}; give those of spans, as of DataCollatorForNestedNER.")
        output_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        longest = max_words if labels is None else labels.shape[1]
        inputs = input_ids, attention_mask, word_index, num_words, token_type_ids, word_ids, pos_ids, char_ids
        hidden, layers = self.represent_words(*inputs, longest, output_hidden_states)
        output = dict(self.head(hidden, num_words, labels, packed_words, targets))
        if not output_attentions:
            output = {name: value for name, value in output.items() if not name.endswith("_attentions")}
        if output_hidden_states:
            output["hidden_states"] = layers
        return NestedNEROutput(**output)

    def represent_words(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        word_index: Tensor,
        num_words: Tensor,
        token_type_ids: Tensor | None = None,
        word_ids: Tensor | None = None,
        pos_ids: Tensor | None = None,
        char_ids: Tensor | None = None,
        max_words: int | None = None,
        output_hidden_states: bool | None = False,
    ) -> tuple[Tensor, tuple[Tensor, ...] | None]:
        """Returns the words h_1 … h_N of each sentence, [B, N, H], and the encoder's layers if they are wanted.

        Arguments are those of `forward`. The encoder reads rows of at most `max_subwords`: each window of a long
        sentence. Words are pooled from its last layer, or from the mix of all.
        """
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None and (getattr(self.encoder.config, "type_vocab_size", 0) or 0) >= 2:
            inputs["token_type_ids"] = token_type_ids
        width = self.config.max_subwords
        if input_ids.shape[1] > width:
            inputs = {name: values.reshape(-1, width) for name, values in inputs.items()}
            # A row of padding only, beside a longer sentence, would have nothing to attend to.
            first = torch.zeros(1, dtype=torch.long, device=input_ids.device)
            inputs["attention_mask"] = inputs["attention_mask"].index_fill(1, first, 1)
        mixes = self.config.mix_layers
        with ACCELERATION.linear_layers(self.encoder):
            encoded = self.encoder(**inputs, output_hidden_states=output_hidden_states or mixes, return_dict=True)
        states = self.words.layer_mix(encoded.hidden_states[1:]) if mixes else encoded.last_hidden_state
        longest = max(1, int(num_words.max())) if max_words is None else max_words
        size = len(num_words), longest
        words = pool_subwords(states.reshape(*word_index.shape, -1), word_index, size, self.config.subword_pooling)
        hidden = self.words(words, num_words, word_ids, pos_ids, char_ids).to(self.head.label_bias.dtype)
        return hidden, getattr(encoded, "hidden_states", None)


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Disables dropout and gradients inside the block, and restores the mode of every part of the model after it."""
    in_training = [part for part in model.modules() if part.training]
    for part in in_training:
        part.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for part in in_training:
            part.training = True


def _own_weights(model: PreTrainedModel) -> set[str]:
    """Names of the model's weights, without those of layers that a subclass adds, which may start untrained."""
    names = {*model.state_dict()}
    if type(model) is not TriaffineForNestedNER:
        with torch.device("meta"):
            names &= {*TriaffineForNestedNER(model.config).state_dict()}
    return names


def _check_positions(encoder: nn.Module, max_subwords: int) -> None:
    """Raises ValueError if the encoder has fewer positions; in RoBERTa's family they begin after the padding index."""
    table = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    if isinstance(table, nn.Embedding):
        positions = table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
        if max_subwords > positions:
            raise ValueError(f"`max_subwords` is {max_subwords}; the encoder has positions for at most {positions}.")


complete_import(__name__)
if not PipelineTasks.is_installed:  # loaded as remote code; the package, if it is imported, keeps its place
    register_task(find_pipeline_class, replace=False)
