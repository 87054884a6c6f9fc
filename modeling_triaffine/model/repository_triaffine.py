"""The files of a saved model in a folder or a Hub repository, remote code included: finding, saving, checking them."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers.utils import ADAPTER_CONFIG_NAME, AUDIO_TOKENIZER_NAME, SAFE_WEIGHTS_INDEX_NAME, is_peft_available
from transformers.utils.hub import cached_file

from .checks_triaffine import LOWEST_VERSIONS, listed, reading

# Saved with every checkpoint, in one folder: transformers loads these files as remote code. A model card lists them in
# this order, in which to read them: each before those that it imports.
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
ENTRIES = {entry.split(".")[0] for entry in (*AUTO_MAP.values(), CUSTOM_PIPELINES["token-classification"]["impl"])}
# At the end of each file that transformers asks for by name. It copies what such a file imports, but looks for imports
# of these only if it is the first process to copy them, and was not interrupted: so they are all named here.
ALL_FILES = "\n\nif False:  # names every file, for transformers, which copies what it finds named\n" + "".join(
    f"    from .{name.removesuffix('.py')} import _\n" for name in REMOTE_CODE_FILES
)

# Options of `from_pretrained` that say where a model's files are, and that its processor is loaded with.
ORIGIN_OPTIONS = ("revision", "subfolder", "cache_dir", "local_files_only", "token")
# Options of `save_pretrained(push_to_hub=True)` for the push.
PUSH_OPTIONS = (
    *("repo_id", "processor", "private", "token", "tags"),
    *("revision", "create_pr", "commit_message", "commit_description"),
)


class HubMixin:
    """Saving, and pushing to the Hub, for configuration, processor and model."""

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = None) -> None:
        """Does nothing: transformers would add references of its own to those of `save_pretrained`."""

    def push_to_hub(self, repo_id: str, *, private: bool | None = True, processor: Any = None, **options: Any) -> Any:
        """Uploads what `save_pretrained` writes, and `processor` after it; private unless `private` is False."""
        pushed = super().push_to_hub(repo_id, private=private, **options)  # type: ignore[misc]
        return pushed if processor is None else processor.push_to_hub(repo_id, private=private, **options)

    def save_pretrained(self, save_directory: Any, push_to_hub: bool = False, **options: Any) -> Any:
        """As in transformers, but `push_to_hub=True`, with `PUSH_OPTIONS`, uploads the whole repository."""
        push_options = {name: options.pop(name) for name in PUSH_OPTIONS if name in options}
        saved = super().save_pretrained(save_directory, **options)  # type: ignore[misc]
        if push_to_hub and options.get("is_main_process", True):
            # As a whole: transformers would upload only what the base class has written.
            repo_id = push_options.pop("repo_id", None) or Path(save_directory).absolute().name  # of ".", too
            of_weights = ("state_dict", "max_shard_size")
            push_options |= {name: options[name] for name in of_weights if options.get(name) is not None}
            self.push_to_hub(repo_id, **push_options)
        return saved


def complete_import(module: str) -> None:
    """Sets a module as an attribute of its package, as Python's `import` does and transformers' remote code does not.

    dill, by which `datasets` hashes functions, else takes the values of all of the module's variables: it is slow, and
    `Dataset.map` does not find its cache again.
    """
    package, _, name = module.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], name, sys.modules[module])


def register_task(find_class: Callable[[Any], Any], replace: bool = True) -> None:
    """Makes transformers' `pipeline("token-classification", …)` use the pipeline of this package for its models.

    For the name of a model, transformers reads the class from the model's configuration; for an object it goes by the
    task alone, and asks for a tokenizer before it looks at the model. `find_class` returns the class of pipeline for a
    model of ours; unless `replace`, the package's stays.
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
            if class_of_ours(model) is not None:
                return find_class(model)(model=model, **kwargs)
            if kwargs.get("tokenizer") is None:  # says why transformers could not load it
                kwargs["tokenizer"] = AutoTokenizer.from_pretrained(model.config.name_or_path)
            return TokenClassificationPipeline(model=model, **kwargs)

    tasks["token-classification"] = {**tasks["token-classification"], "impl": TokenTaskPipeline}


def class_of_ours(model: Any) -> type | None:
    """Returns the class `TriaffineForNestedNER` of a model, of whatever copy of the code; None for other models."""
    # torch.compile and PEFT wrap models.
    wrapped = getattr(model, "_orig_mod", None), getattr(getattr(model, "base_model", None), "model", None)
    classes = (each for part in (model, *wrapped) for each in type(part).__mro__)
    return next((each for each in classes if each.__name__ == "TriaffineForNestedNER"), None)


def find_pipeline_class(model: Any) -> Any:
    """Returns the class of pipeline in the code that a model object was loaded with, which its user has read."""
    own: Any = class_of_ours(model)
    package = own.__module__.rpartition(".")[0]
    module, name = CUSTOM_PIPELINES["token-classification"]["impl"].split(".")
    return getattr(import_module(f"{package}.{module}"), name)


def save_remote_code(folder: str | os.PathLike[str]) -> None:
    """Writes the remote code, and the files for Inference Endpoints, to `folder`.

    The files for endpoints have common names: existing ones are not overwritten. Code that transformers has loaded from
    the Hub has no handler beside it.
    """
    here, target = Path(__file__).parent, Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    if not (target / REQUIREMENTS_FILE).exists():
        (target / REQUIREMENTS_FILE).write_text(REQUIREMENTS, encoding="utf-8")
    if (here / HANDLER_FILE).exists() and not (target / HANDLER_FILE).exists():
        shutil.copyfile(here / HANDLER_FILE, target / HANDLER_FILE)
    for name in REMOTE_CODE_FILES:
        code = (here / name).read_text(encoding="utf-8")
        if name.removesuffix(".py") in ENTRIES and not code.endswith(ALL_FILES):
            code += ALL_FILES
        if (target / name).absolute() != here / name:
            (target / name).write_text(code, encoding="utf-8", newline="")


def find_file(name_or_path: str | os.PathLike[str], name: str, options: dict[str, Any]) -> str | None:
    """Finds a file in a model's folder or Hub repository; None if it is not there.

    `options` are those of `from_pretrained`. Raises OSError if the Hub cannot be reached, or refuses.
    """
    if os.path.isfile(name_or_path):  # such as a model's weights: a stranger's repository could have its name
        return None
    given = {option: options[option] for option in (*ORIGIN_OPTIONS, "force_download", "proxies") if option in options}
    return cached_file(name_or_path, name, _raise_exceptions_for_missing_entries=False, **given)


def refuse_redirections(name_or_path: str | os.PathLike[str], config: str, options: dict[str, Any]) -> None:
    """Raises ValueError if files of a model name others whose weights or code transformers would load in addition.

    Those are an audio tokenizer in the `config` of a processor or beside it, which transformers would ask on stdin to
    run, and the base model of an adapter, which it would load in place of this one. Arguments as of [`find_file`].
    """
    if adapter := (options.get("adapter_kwargs") or {}).get("_adapter_model_path"):
        raise ValueError(f"{adapter} is an adapter: load {name_or_path}, then model.load_adapter({adapter!r}).")
    path = find_file(name_or_path, config, options)
    refused = "audio_tokenizer" in (json.loads(Path(path).read_bytes()) if path else {})
    names = [AUDIO_TOKENIZER_NAME, *([ADAPTER_CONFIG_NAME] if is_peft_available() else [])]
    if refused or any(find_file(name_or_path, name, options) for name in names):
        raise ValueError(
            f"the files of {name_or_path} name an audio tokenizer or an adapter, with which custom code or other "
            "weights would be loaded; delete adapter_config.json, or load an adapter by its model's `load_adapter`."
        )


def check_index(name_or_path: str | os.PathLike[str], options: dict[str, Any]) -> None:
    """Raises ValueError for an index that is damaged, or names pickles or weights outside of the model's folder."""
    variant = f".{options['variant']}" if options.get("variant") else ""
    path = find_file(name_or_path, SAFE_WEIGHTS_INDEX_NAME.replace(".json", f"{variant}.json"), options)
    if path is not None:
        with reading(f"{path} is not a valid index of weights (save the model again)"):
            index = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(index["metadata"], dict):  # which transformers reads
                raise ValueError("its metadata are no object.")
            names = {*index["weight_map"].values()}
            if outside := [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]:
                raise ValueError(f"it names {listed(outside)}, no safetensors file in its folder; do not use it.")


@torch.no_grad()
def broken_weights(model: nn.Module) -> list[str]:
    """Names the weights with NaN or infinity; weights that are quantized or on the meta device are skipped."""
    return [
        name
        for name, weight in model.named_parameters()
        if type(weight) is nn.Parameter and not weight.is_meta  # quantized ones have classes of their own
        if weight.is_floating_point() and weight.element_size() > 1  # no float8
        if not weight.sum(dtype=torch.float32).isfinite()  # one pass and no copy, unlike isfinite().all()
    ]


def refuse_broken(where: str, model: nn.Module) -> None:
    """Raises ValueError if weights have NaN or infinity."""
    if broken := broken_weights(model):
        remedy = "Use an earlier checkpoint, or copy or download the file again"
        raise ValueError(f"{where} hold numbers that are not finite, in {listed(broken)}. {remedy}.")
