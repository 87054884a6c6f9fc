"""Exports a trained model to ONNX, and compares its scores in ONNX Runtime with the model's.

    python examples/export_onnx.py --model outputs/demo/model --output outputs/demo/onnx

The new folder, with model.onnx, the model's config.json and the processor, appears when it is whole. Needs the extra
`onnx`. The exit code is 2 for a mistake in the options and for a model that cannot be exported.
"""

import argparse
import logging
import warnings
from pathlib import Path

from modeling_triaffine import TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.commands.arguments import add_model
from modeling_triaffine.conversion.onnx_export import export_onnx
from modeling_triaffine.errors import ending_plainly
from modeling_triaffine.files import new_folder


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add_model(parser)
    parser.add_argument("--output", type=Path, required=True, help="new folder for model.onnx and the processor")
    # torch's exporter tells of its own inside and of operators that are not needed.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    with ending_plainly():
        run(parser.parse_args())


def run(arguments: argparse.Namespace) -> None:
    if arguments.output.exists():
        raise ValueError(f"--output {arguments.output} is there already; give the name of a new folder.")
    model = TriaffineForNestedNER.from_pretrained(arguments.model)
    processor = TriaffineProcessor.from_pretrained(arguments.model)
    processor.check_fits(model.config)
    with new_folder(arguments.output) as folder:
        difference = export_onnx(model, processor, folder / "model.onnx")
        model.config.save_pretrained(folder)
        processor.save_pretrained(folder)
    print(f"{arguments.output / 'model.onnx'}: scores within {difference:.1e} of the model's")


if __name__ == "__main__":
    main()
