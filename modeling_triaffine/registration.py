"""Makes the model known to transformers, as soon as the parts of transformers that must know it are imported.

torch and transformers take seconds to import, which `triaffine-ner --help` does not need to wait for. So
`import modeling_triaffine` imports neither, and instead watches for the import of the Auto classes and of `pipeline`.
"""

import functools
import os
import sys
import threading
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
    """Finds modules by the other finders, and calls the function in `calls` of each module that has been imported.

    It calls when the outermost import of transformers' modules and of this package's has ended: they import each
    other, and until then, what a function imports may be half imported.
    """

    def __init__(self, calls: dict[str, Callable[[], None]]):
        self.calls = calls
        self.of_thread = threading.local()  # `executing`: number of modules, each imported by the one before it

    def register_imported(self) -> None:
        # The calls import, too, and so come back here; another thread may be first.
        while imported := self.calls.keys() & sys.modules.keys():
            self.calls.pop(imported.pop(), lambda: None)()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not self.calls or fullname.partition(".")[0] not in ("transformers", __package__):
            return None
        others = sys.meta_path[sys.meta_path.index(self) + 1 :]  # those before have been asked
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                outer = getattr(self.of_thread, "executing", 0)
                self.of_thread.executing = outer + 1
                try:
                    execute(module)
                finally:
                    self.of_thread.executing = outer
                if not outer:
                    self.register_imported()

            loader.exec_module = execute_and_register
        return spec


def _register_model() -> None:
    from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification, AutoProcessor, dynamic_module_utils

    from .acceleration import accelerate
    from .model.configuration_triaffine import PipelineTasks, TriaffineConfig
    from .model.triaffine_blocks import ACCELERATION

    PipelineTasks.is_installed = True  # before the next import: the model else registers the task itself
    from .model.model_triaffine import TriaffineForNestedNER
    from .model.processing_triaffine import TriaffineProcessor
    from .new_model import extend_model

    AutoConfig.register(TriaffineConfig.model_type, TriaffineConfig, exist_ok=True)
    AutoModel.register(TriaffineConfig, TriaffineForNestedNER, exist_ok=True)
    AutoModelForTokenClassification.register(TriaffineConfig, TriaffineForNestedNER, exist_ok=True)
    AutoProcessor.register(TriaffineConfig, TriaffineProcessor, exist_ok=True)
    TriaffineForNestedNER.push_repository = _push_model
    extend_model()
    accelerate(ACCELERATION)
    # No question whether to run the code that a part of a model names: a line of standard input would be the answer.
    dynamic_module_utils.TIME_OUT_REMOTE_CODE = 0


def _register_task() -> None:
    """Our models get our pipeline; transformers' `pipeline` finds the models of the package by name, too."""
    import transformers
    from transformers import pipelines

    from .installed_models import installed_models
    from .model.pipeline_triaffine import NestedNERPipeline
    from .model.repository_triaffine import register_task

    make_pipeline = pipelines.pipeline

    @functools.wraps(make_pipeline)
    def pipeline(task: Any = None, model: Any = None, *arguments: Any, **options: Any) -> Any:
        if isinstance(model, str) and not os.path.isdir(model):
            model = str(installed_models().get(model, model))
        try:
            return make_pipeline(task, model, *arguments, **options)
        except OSError as error:
            if isinstance(model, str) and "/" not in model:
                error.add_note(f"Models of modeling_triaffine: {', '.join(installed_models())}.")
            raise

    register_task(lambda _model: NestedNERPipeline)
    vars(pipelines)["pipeline"] = pipeline
    vars(transformers).pop("pipeline", None)  # who has imported it before has transformers' own


def _push_model(model: Any, *arguments: Any, **options: Any) -> Any:
    """`push_to_hub` of a model, whose own code travels without the package and so does not know how to publish it."""
    from .publishing import push_model

    return push_model(model, *arguments, **options)
