"""Nested named entity recognition with the triaffine mechanism, for the Hugging Face stack.

Importing the package loads neither torch nor transformers; a public name is imported when it is first used. It also
registers the model with transformers' Auto classes, which then load its checkpoints without `trust_remote_code`.
"""

from typing import TYPE_CHECKING

from .lazy import on_first_use
from .registration import register_with_transformers
from .version import __version__ as __version__

if TYPE_CHECKING:
    from . import data as data
    from . import evaluation as evaluation
    from . import model as model
    from . import publishing as publishing
    from . import training as training
    from .conversion.onnx import OnnxNestedNER as OnnxNestedNER
    from .data.collator import DataCollatorForNestedNER as DataCollatorForNestedNER
    from .data.loading import load_nested_ner as load_nested_ner
    from .drawing.entities import draw_entities as draw_entities
    from .drawing.entities import draw_entities_html as draw_entities_html
    from .evaluation.metric import NestedNERMetric as NestedNERMetric
    from .model.configuration_triaffine import TriaffineConfig as TriaffineConfig
    from .model.model_triaffine import TriaffineForNestedNER as TriaffineForNestedNER
    from .model.pipeline_triaffine import NestedNERPipeline as NestedNERPipeline
    from .model.processing_triaffine import TriaffineProcessor as TriaffineProcessor
    from .training import NestedNERTrainer as NestedNERTrainer
    from .training import NestedNERTrainingArguments as NestedNERTrainingArguments
    from .training import start_from_recipe as start_from_recipe

__getattr__, __dir__, _NAMES = on_first_use(__name__)
__all__ = [*_NAMES, "__version__"]

register_with_transformers()
