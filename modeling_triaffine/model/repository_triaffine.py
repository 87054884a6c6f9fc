"""The files of a saved model in a folder or a Hub repository, remote code included: finding, saving, pushing them.

Weights are safetensors, and checked after they are loaded.
"""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, HTTPError, RepositoryNotFoundError
from huggingface_hub.utils import validate_repo_id
from torch import nn
from transformers.dynamic_module_utils import get_class_from_dynamic_module
from transformers.utils import AUDIO_TOKENIZER_NAME, SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, logging
from transformers.utils.hub import cached_file

from .checks_triaffine import LOWEST_VERSIONS, listed, reading

logger = logging.get_logger(__name__)

# Saved with every checkpoint, in one folder: transformers loads these files as remote code. In the order to read them,
# each before those that it imports; a model card has it, with the first line of each file.
REMOTE_CODE_FILES = (
    "pipeline_triaffine.py",
    "decoding_triaffine.py",
    "processing_triaffine.py",
    "batches_triaffine.py",
    "text_triaffine.py",
    "model_triaffine.py",
    "words_triaffine.py",
    "span_head_triaffine.py",
    "factors_triaffine.py",
    "triaffine_ops.py",
    "triaffine_weights.py",
    "triaffine_blocks.py",
    "configuration_triaffine.py",
    "options_triaffine.py",
    "kinds_triaffine.py",
    "repository_triaffine.py",
    "checks_triaffine.py",
)
# Saved with them for Inference Endpoints, which require these names.
HANDLER_FILE = "handler.py"
REQUIREMENTS_FILE = "requirements.txt"
REQUIREMENTS = "".join(f"{package}>={lowest}\n" for package, lowest in LOWEST_VERSIONS.items())

AUTO_MAP = {
    "AutoConfig": "configuration_triaffine.TriaffineConfig",
    "AutoModel": "model_triaffine.TriaffineForNestedNER",
    "AutoModelForTokenClassification": "model_triaffine.TriaffineForNestedNER",
    "AutoProcessor": "processing_triaffine.TriaffineProcessor",
}
CUSTOM_PIPELINES: dict[str, dict[str, Any]] = {
    "token-classification": {
        "impl": "pipeline_triaffine.NestedNERPipeline",
        "pt": ["AutoModelForTokenClassification"],
        "type": "text",
    }
}

# Options of `from_pretrained` that say where a model's files are, and that its processor is loaded with.
REACHING_OPTIONS = ("cache_dir", "local_files_only", "token")
ORIGIN_OPTIONS = ("revision", "subfolder", *REACHING_OPTIONS)
# Options of `save_pretrained(push_to_hub=True)` for the push.
PUSH_OPTIONS = (
    *("repo_id", "processor", "private", "token", "tags"),
    *("revision", "create_pr", "commit_message", "commit_description"),
)
# Its options for what is saved, and so pushed.
SAVING_OPTIONS = ("state_dict", "max_shard_size")
# Seconds to wait for the Hub's answer about a model that is not on this machine, unless HF_HUB_ETAG_TIMEOUT is set.
HUB_PATIENCE = 4.0
# Folders that were loaded from, as they were named → absolute: the working directory can change.
_FOLDERS: dict[str, str] = {}
# Hub repositories that were loaded from → how to reach their other files.
_HUB_OPTIONS: dict[str, dict[str, Any]] = {}
NEITHER = "neither a folder, nor a name that the Hub or its cache on this machine has a model for"


class HubMixin:
    """Loading from and pushing to the Hub, for configuration, processor and model."""

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **options: Any) -> Any:
        """As in transformers, but raises within seconds if the model cannot be reached."""
        check_available(pretrained_model_name_or_path, options)
        if os.path.isdir(name := str(pretrained_model_name_or_path)):
            _FOLDERS[name] = os.path.abspath(name)
        else:
            _HUB_OPTIONS[name] = {option: options[option] for option in REACHING_OPTIONS if option in options}
        return super().from_pretrained(pretrained_model_name_or_path, *args, **options)  # type: ignore[misc]

    def push_to_hub(self, repo_id: str, *, private: bool | None = True, processor: Any = None, **options: Any) -> Any:
        """Uploads what `save_pretrained` writes, and `processor` after it; private unless `private` is False."""
        pushed = super().push_to_hub(repo_id, private=private, **options)  # type: ignore[misc]
        return pushed if processor is None else processor.push_to_hub(repo_id, private=private, **options)

    def save_pretrained(self, save_directory: Any, push_to_hub: bool = False, **options: Any) -> Any:
        """As in transformers; a push, with the options in `PUSH_OPTIONS`, is of the whole repository."""
        push_options = {name: options.pop(name) for name in PUSH_OPTIONS if name in options}
        saved = super().save_pretrained(save_directory, **options)  # type: ignore[misc]
        if push_to_hub and options.get("is_main_process", True):
            # As a whole: transformers would upload only what the base class has written.
            repo_id = push_options.pop("repo_id", None) or Path(save_directory).absolute().name  # of ".", too
            push_options |= {name: options[name] for name in SAVING_OPTIONS if options.get(name) is not None}
            self.push_to_hub(repo_id, **push_options)
        return saved


def complete_import(module: str) -> None:
    """Sets a module as an attribute of its package, as Python's `import` does and transformers' remote code does not.

    dill, by which `datasets` tells whether a function has changed, else takes the values of the module's variables,
    which differ from process to process: `Dataset.map` would not find its cache again.
    """
    package, _, name = module.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], name, sys.modules[module])


def register_task(is_ours: Callable[[Any], bool], find_class: Callable[[Any], Any], replace: bool = True) -> None:
    """Takes the place of the class that transformers' `pipeline("token-classification", …)` makes.

    For the name of a model, transformers reads the class from the model's configuration; for an object it goes by the
    task alone, and asks for a tokenizer before it looks at the model.

    Args:
        is_ours: whether a model is one of ours; all others get transformers' own pipeline.
        find_class: the class of pipeline for a model of ours.
        replace: whether to take the place of another class than transformers', such as that of the package.
    """
    from transformers import AutoTokenizer, TokenClassificationPipeline
    from transformers.pipelines import PIPELINE_REGISTRY

    tasks: dict[str, Any] = PIPELINE_REGISTRY.supported_tasks
    present = tasks["token-classification"]["impl"]  # a class, or its module and name
    if not replace and getattr(present, "__name__", present).split(".")[-1] != TokenClassificationPipeline.__name__:
        return

    class TokenTaskPipeline(TokenClassificationPipeline):
        """Makes our own pipeline of our models, and transformers' of all others."""

        _load_tokenizer = None  # type: ignore[assignment]  # optional: transformers goes on without one

        def __new__(cls, model: Any, **kwargs: Any) -> Any:
            if is_ours(model):
                return find_class(model)(model=model, **kwargs)
            if kwargs.get("tokenizer") is None:  # says why transformers could not load it
                kwargs["tokenizer"] = AutoTokenizer.from_pretrained(model.config.name_or_path)
            return TokenClassificationPipeline(model=model, **kwargs)

    tasks["token-classification"] = {**tasks["token-classification"], "impl": TokenTaskPipeline}


def find_pipeline_class(model: Any) -> Any:
    """The class of pipeline in the code that a model object was loaded with, which its user has chosen to trust."""
    reference = CUSTOM_PIPELINES["token-classification"]["impl"]
    options = {name: model.origin[name] for name in ("revision", *REACHING_OPTIONS) if name in model.origin}
    if not model.config.name_or_path:
        raise ValueError(
            "The model was not loaded from a folder or a Hub repository, where its pipeline is. Save it with its "
            'processor, and give the place: pipeline("token-classification", model="FOLDER", trust_remote_code=True).'
        )
    return get_class_from_dynamic_module(reference, model.config.name_or_path, **options)


def origin_of(name_or_path: str) -> str:
    """A `name_or_path` that was loaded from: the absolute path of a folder, even if it is gone, or a Hub name."""
    return _FOLDERS.get(name_or_path, name_or_path)


def save_remote_code(folder: str | os.PathLike[str], origin: str = "") -> None:
    """Writes the remote code, and the files for Inference Endpoints, to `folder`.

    A model that was itself loaded as remote code has only the files beside it that have been imported; the others come
    from `origin`, the folder or Hub repository from which it was loaded, and from the commit that transformers names
    the folder of imported files after. The files for endpoints have common names: existing ones are not overwritten.
    """
    here = Path(__file__).parent
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    if not (target / REQUIREMENTS_FILE).exists():
        (target / REQUIREMENTS_FILE).write_text(REQUIREMENTS, encoding="utf-8")
    for name in REMOTE_CODE_FILES if (target / HANDLER_FILE).exists() else (*REMOTE_CODE_FILES, HANDLER_FILE):
        source: Path | str | None = here / name
        if not (here / name).exists():
            lenient = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
            source = None
            with contextlib.suppress(OSError):  # its folder is gone
                where = {"revision": here.name, **_HUB_OPTIONS.get(origin, {})}
                source = cached_file(origin_of(origin), name, **where, **lenient) if origin else None
        if source is None:
            logger.warning(f"{name}, a part of the remote code, was not found and is missing in {target}.")
        else:
            with contextlib.suppress(shutil.SameFileError):
                shutil.copyfile(source, target / name)


def check_available(name_or_path: str | os.PathLike[str] | None, options: dict[str, Any]) -> None:
    """Asks the Hub once for a model that is not on this machine; `options` are those of `from_pretrained`.

    transformers asks six times for each file, which takes 23 seconds if the Hub refuses the connection, and minutes if
    it does not answer.

    Raises:
        ConnectionError: the Hub fails, or does not answer within `HUB_PATIENCE`.
        FileNotFoundError: it has no model of this name, or can have none.
    """
    name, revision = str(name_or_path), options.get("revision")
    if name_or_path is None or os.path.exists(name):
        return
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise FileNotFoundError(f"There is no model {name}: {NEITHER}. Check the spelling.") from error
    if constants.HF_HUB_OFFLINE or options.get("local_files_only"):
        return
    file = "/".join(filter(None, (options.get("subfolder"), "config.json")))
    if isinstance(try_to_load_from_cache(name, file, options.get("cache_dir"), revision), str):
        return
    is_default = constants.HF_HUB_ETAG_TIMEOUT == constants.DEFAULT_ETAG_TIMEOUT
    patience = HUB_PATIENCE if is_default else constants.HF_HUB_ETAG_TIMEOUT
    try:
        get_hf_file_metadata(hf_hub_url(name, file, revision=revision), options.get("token"), patience)
    except GatedRepoError:  # transformers reports it at once
        return
    except RepositoryNotFoundError as error:
        raise FileNotFoundError(
            f"There is no model {name}: neither a folder, nor a model on the Hub that you may read. Check the "
            "spelling; for a private model, log in with `hf auth login` or set HF_TOKEN."
        ) from error
    except HTTPError as error:
        if isinstance(error, HfHubHTTPError) and error.response.status_code < 500:
            return  # of this file; others may be there
        reason = " ".join(str(error).split())
        raise ConnectionError(
            f"{name} is neither a folder nor in the cache of this machine, and the Hub ({constants.ENDPOINT}) does not "
            f"answer ({reason}). Check the spelling and the connection; HF_HUB_ETAG_TIMEOUT sets how many seconds to "
            "wait."
        ) from error


def find_file(name_or_path: str | os.PathLike[str], name: str, options: dict[str, Any]) -> str | None:
    """Path of a file in a model's folder or Hub repository; None if it is not there.

    `options` are those of `from_pretrained`. Raises OSError if the Hub cannot be reached, or refuses.
    """
    if os.path.isfile(name_or_path):  # such as a model's weights: no folder, though a repository could have its name
        return None
    check_available(name_or_path, options)
    hub_options = (*ORIGIN_OPTIONS, "force_download", "proxies")
    given = {option: options[option] for option in hub_options if option in options}
    try:
        return cached_file(name_or_path, name, _raise_exceptions_for_missing_entries=False, **given)
    except OSError as error:
        if isinstance(error.__cause__, ValueError):  # neither a folder nor a name that a repository could have
            return None
        raise


def check_for_audio_tokenizer(name_or_path: str | os.PathLike[str], config: str, options: dict[str, Any]) -> None:
    """Raises ValueError if `config`, of a processor, or a file beside it names an audio tokenizer.

    transformers would load any model that is named there, and ask on stdin whether to run its code, whatever
    `trust_remote_code` is. Arguments as of [`find_file`].
    """
    path = find_file(name_or_path, config, options)
    fields = json.loads(Path(path).read_bytes()) if path else {}
    if "audio_tokenizer" in fields or find_file(name_or_path, AUDIO_TOKENIZER_NAME, options):
        raise ValueError("its files name an audio tokenizer, custom code that this model cannot need; do not use it.")


def describe_missing(name_or_path: str | os.PathLike[str], name: str, options: dict[str, Any]) -> str:
    """Why a file of a model is missing, and what to do about it; arguments as of [`find_file`]."""
    config_file = find_file(name_or_path, "config.json", options)
    if config_file is None:
        reason = f"it has neither {name} nor config.json" if os.path.isdir(name_or_path) else NEITHER
        return f"There is no model {name_or_path}: {reason}. Check the spelling."
    with contextlib.suppress(ValueError):  # a damaged config.json is reported where it is read
        config = json.loads(Path(config_file).read_bytes())
        if isinstance(config, dict) and "encoder_config" not in config:
            return f"{name_or_path} is {describe_other(config.get('model_type'))}"
    return (
        f"{name_or_path} has no {name}: the model was saved there without its processor. Save the processor that it "
        "was trained with in the same place: processor.save_pretrained(...)."
    )


def describe_other(model_type: str | None) -> str:
    """What a model of another type is, and what to give in its place."""
    return (
        f"a model of type {model_type!r}, not one that was trained to find entities. Give a trained model, or start a "
        "new one from it with `triaffine-ner train --model_name_or_path` or TriaffineForNestedNER.from_encoder()."
    )


def check_index(name_or_path: str | os.PathLike[str], options: dict[str, Any]) -> None:
    """Raises ValueError for an index that is damaged, or refers to weights outside of the model's folder.

    As in transformers, an index beside weights in a single file is ignored. Arguments as of [`find_file`].
    """
    variant = f".{options['variant']}" if options.get("variant") else ""
    options = {**options, "force_download": False}
    try:
        if find_file(name_or_path, SAFE_WEIGHTS_NAME.replace(".safetensors", f"{variant}.safetensors"), options):
            return
        path = find_file(name_or_path, SAFE_WEIGHTS_INDEX_NAME.replace(".json", f"{variant}.json"), options)
    except (ConnectionError, FileNotFoundError):  # there is no model, see `check_available`
        raise
    except OSError:  # transformers looks for the same files, and reports it
        return
    if path is None:
        if any(Path(name_or_path).glob("*.onnx")):
            raise FileNotFoundError(
                f"{name_or_path} has a graph of `triaffine-ner export` but no weights. Load it with OnnxNestedNER, or "
                "give the model that it was exported from."
            )
        return
    with reading(f"{path} is not a valid index of weights (save the model again)"):
        index = json.loads(Path(path).read_text(encoding="utf-8"))
        names = {*index["weight_map"].values()}
        outside = [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]
        if outside or not names or not isinstance(index["metadata"], dict):
            raise ValueError(
                f"it names {listed(outside) or 'no tensor'}, which is not a safetensors file in its folder; do not use "
                "this model"
            )


@torch.no_grad()
def broken_weights(model: nn.Module) -> list[str]:
    """Names of the weights with NaN or infinity; weights that are quantized or on the meta device are skipped."""
    return [
        name
        for name, weight in model.named_parameters()
        if not weight.is_meta and weight.is_floating_point() and weight.element_size() > 1  # no float8
        if not weight.sum(dtype=torch.float32).isfinite()  # one pass and no copy, unlike isfinite().all()
    ]


def refuse_broken(where: str, model: nn.Module) -> None:
    """Raises ValueError if weights have NaN or infinity."""
    if broken := broken_weights(model):
        raise ValueError(
            f"{where} hold numbers that are not finite (NaN or infinity), in {listed(broken)}, so no score would "
            "be valid. Use an earlier checkpoint, or copy or download the file again."
        )
