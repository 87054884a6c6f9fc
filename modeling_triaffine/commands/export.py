"""Exports a trained model to ONNX, and compares its scores with those of the original.

    triaffine-ner export --model outputs/demo/model --output outputs/demo/onnx

Writes model.onnx, the model's config.json and the processor to a new folder. Needs the extra `onnx`.
"""

import logging
import warnings
from pathlib import Path
from typing import Annotated

import typer

from .options import Model, check_new


def command(
    output: Annotated[Path, typer.Option(help="New folder to write.")],
    model: Model = None,
    int8: Annotated[bool, typer.Option("--int8", help="Write the encoder in int8.")] = False,
) -> None:
    check_new(output)
    # torch's exporter warns of its own internals.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    from ..conversion.onnx_export import export_onnx, quantize_onnx
    from ..conversion.onnx_predictor import GRAPH
    from ..files import new_folder
    from ..model.pipeline_triaffine import NestedNERPipeline

    pipeline = NestedNERPipeline(model, device="cpu")
    with new_folder(output) as folder:
        difference = export_onnx(pipeline.model, pipeline.processor, folder / GRAPH)
        if int8:
            quantize_onnx(folder / GRAPH)
        pipeline.model.config.save_pretrained(folder)
        pipeline.processor.save_pretrained(folder)
    print(f"{output / GRAPH}: scores within {difference:.1e} of the model's{', before int8' if int8 else ''}")
