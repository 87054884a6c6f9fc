"""Nested named entity recognition with the triaffine mechanism, for the Hugging Face stack.

Importing the package loads neither torch nor transformers; a public name is imported when it is first used. It also
registers the model with transformers' Auto classes, which then load its checkpoints without `trust_remote_code`.
"""

from typing import TYPE_CHECKING

from .lazy import on_first_use
from .registration import register_with_transformers
from .version import __version__ as __version__

if TYPE_CHECKING:
    from .conversion.onnx_predictor import OnnxNestedNER as OnnxNestedNER
    from .data.collator import DataCollatorForNestedNER as DataCollatorForNestedNER
    from .data.loading import load_nested_ner as load_nested_ner
    from .drawing.html_drawing import draw_entities_html as draw_entities_html
    from .drawing.text_drawing import draw_entities as draw_entities
    from .evaluation.metric import NestedNERMetric as NestedNERMetric
    from .model.configuration_triaffine import TriaffineConfig as TriaffineConfig
    from .model.model_triaffine import TriaffineForNestedNER as TriaffineForNestedNER
    from .model.pipeline_triaffine import NestedNERPipeline as NestedNERPipeline
    from .model.processing_triaffine import TriaffineProcessor as TriaffineProcessor
    from .training import NestedNERTrainer as NestedNERTrainer
    from .training import NestedNERTrainingArguments as NestedNERTrainingArguments
    from .training import start_from_recipe as start_from_recipe

_FOLDERS = ("data", "evaluation", "model", "publishing", "training")
_MODULES = {
    "OnnxNestedNER": "conversion.onnx_predictor",
    "DataCollatorForNestedNER": "data.collator",
    "load_nested_ner": "data.loading",
    "draw_entities": "drawing.text_drawing",
    "draw_entities_html": "drawing.html_drawing",
    "NestedNERMetric": "evaluation.metric",
    "TriaffineConfig": "model.configuration_triaffine",
    "TriaffineForNestedNER": "model.model_triaffine",
    "NestedNERPipeline": "model.pipeline_triaffine",
    "TriaffineProcessor": "model.processing_triaffine",
    **dict.fromkeys(("NestedNERTrainer", "NestedNERTrainingArguments", "start_from_recipe"), "training"),
}
__all__ = sorted(["__version__", *_MODULES])
__getattr__, __dir__ = on_first_use(__name__, _MODULES | {folder: folder for folder in _FOLDERS})

register_with_transformers()
