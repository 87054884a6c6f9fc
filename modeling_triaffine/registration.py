"""Makes the model known to transformers, as soon as the parts of transformers that must know it are imported.

torch and transformers take seconds to import, which `triaffine-ner --help` does not need to wait for. So
`import modeling_triaffine` imports neither, and instead watches for the import of the Auto classes and of `pipeline`.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def register_with_transformers() -> None:
    """Registers where a part of transformers is imported already, and else right after its import."""
    watcher = _Watcher({"transformers.models.auto": _register_model, "transformers.pipelines": _register_task})
    watcher.register_imported()
    sys.meta_path.insert(0, watcher)


class _Watcher(MetaPathFinder):
    """Finds modules as everybody else does, and calls the function of each named one that has been imported.

    It does so once the outermost import of transformers' modules and of those in `model/` has ended: they import each
    other, and until then, what a function imports may be half imported.
    """

    def __init__(self, calls: dict[str, Callable[[], None]]):
        self.calls = calls
        self.executing = 0  # modules, each imported by the one before it

    def register_imported(self) -> None:
        while imported := self.calls.keys() & sys.modules.keys():  # the calls import, too, and so come back here
            self.calls.pop(imported.pop())()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_watched = fullname.partition(".")[0] == "transformers" or fullname.startswith(f"{__package__}.model.")
        if not self.calls or not is_watched:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                self.executing += 1
                try:
                    execute(module)
                finally:
                    self.executing -= 1
                if not self.executing:
                    self.register_imported()

            loader.exec_module = execute_and_register
        return spec


def _register_model() -> None:
    from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification, AutoProcessor

    from .acceleration import accelerate
    from .model.acceleration_triaffine import ACCELERATION
    from .model.configuration_triaffine import PipelineTasks, TriaffineConfig
    from .model.modeling_triaffine import TriaffineForNestedNER
    from .model.processing_triaffine import TriaffineProcessor

    AutoConfig.register(TriaffineConfig.model_type, TriaffineConfig, exist_ok=True)
    AutoModel.register(TriaffineConfig, TriaffineForNestedNER, exist_ok=True)
    AutoModelForTokenClassification.register(TriaffineConfig, TriaffineForNestedNER, exist_ok=True)
    AutoProcessor.register(TriaffineConfig, TriaffineProcessor, exist_ok=True)
    PipelineTasks.is_installed = True  # by `_register_task`, as soon as there are tasks
    TriaffineForNestedNER.push_repository = _push_model
    accelerate(ACCELERATION)


def _register_task() -> None:
    """Takes the place of the class that transformers' `pipeline("token-classification", …)` makes.

    For the name of a model, transformers reads the class from the model's configuration; for an object it goes by the
    task alone, and asks for a tokenizer before it looks at the model.
    """
    from transformers import AutoTokenizer, TokenClassificationPipeline
    from transformers.pipelines import PIPELINE_REGISTRY

    class TokenTaskPipeline(TokenClassificationPipeline):
        """Makes a [`NestedNERPipeline`] of our models, and transformers' own pipeline of all others."""

        _load_tokenizer = None  # type: ignore[assignment]  # optional: transformers goes on without one

        def __new__(cls, model: Any, **kwargs: Any) -> Any:
            from .model.configuration_triaffine import TriaffineConfig
            from .model.pipeline_triaffine import NestedNERPipeline

            if model.config.model_type == TriaffineConfig.model_type:
                return NestedNERPipeline(model=model, **kwargs)
            if kwargs.get("tokenizer") is None:  # says why transformers could not load it
                kwargs["tokenizer"] = AutoTokenizer.from_pretrained(model.config.name_or_path)
            return TokenClassificationPipeline(model=model, **kwargs)

    tasks: dict[str, Any] = PIPELINE_REGISTRY.supported_tasks
    tasks["token-classification"] = {**tasks["token-classification"], "impl": TokenTaskPipeline}


def _push_model(model: Any, *arguments: Any, **options: Any) -> Any:
    """`push_to_hub` of a model, whose own code travels without the package and so does not know how to publish it."""
    from .publishing import push_model

    return push_model(model, *arguments, **options)
