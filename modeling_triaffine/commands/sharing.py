"""`publish` and `export`: a trained model for the Hub, and for ONNX Runtime."""

import logging
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Annotated

from typer import Option

from ..files import new_folder
from ..installed_models import find_model
from .options import Model, check_new


def publish(
    repo_id: Annotated[str, Option(help="Repository to publish to.", metavar="OWNER/NAME")],
    model: Annotated[str, Option(help="Folder or Hub name of a trained model with its processor.", metavar="MODEL")],
    public: Annotated[bool, Option("--public", help="Make a new repository public.  [default: private]")] = False,
    new_card: Annotated[
        bool, Option("--new-card", help="Write the card anew, in place of one in the folder or on the Hub.")
    ] = False,
    output: Annotated[Path | None, Option(help="New folder for the repository, which is not uploaded then.")] = None,
) -> None:
    """Publishes a trained model: a complete repository, on the Hub or (--output) in a folder.

        triaffine-ner publish --model outputs/mine --repo-id owner/name --output outputs/repository
        triaffine-ner publish --model outputs/mine --repo-id owner/name

    The repository has the weights, code that loads them with transformers alone, tokenizer and processor, the model
    card, and a handler for Inference Endpoints. It is private unless --public is given.

    A card in the model's folder, or one on the Hub, is kept; without any, one is written from the facts of the run.
    Only these files and licenses are uploaded; the command lists all files that it leaves out.
    """
    check_new(output)
    from ..publishing import assemble_repository, publish_folder
    from ..publishing.upload import fetch_model

    with tempfile.TemporaryDirectory() as fetched, tempfile.TemporaryDirectory() as staging:
        folder = fetch_model(find_model(model), Path(fetched))
        if output:
            print(assemble_repository(folder, Path(staging), repo_id, new_card=new_card))
            with new_folder(output) as unfinished:
                for path in Path(staging).iterdir():
                    shutil.copyfile(path, unfinished / path.name)
            print(f"Nothing was uploaded; the files are in {output}.")
            return
        published = publish_folder(folder, repo_id, private=not public, new_card=new_card)
    print(published.files)
    if public and published.private:
        print(f"{repo_id} exists and stays private; make it public in its settings on the Hub.")
    print(f"Published {'privately' if published.private else 'for everybody'}: {published.commit.commit_url}")


def export(
    output: Annotated[Path, Option(help="New folder to write.")],
    model: Model = None,
    int8: Annotated[bool, Option("--int8", help="Write the encoder in int8.")] = False,
) -> None:
    """Exports a trained model to ONNX, and compares its scores with those of the original.

        triaffine-ner export --model outputs/demo/model --output outputs/demo/onnx

    Writes model.onnx, the model's config.json and the processor to a new folder. Needs the extra `onnx`.
    """
    check_new(output)
    # torch's exporter warns of its own internals.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    from ..conversion.onnx import GRAPH, export_onnx, quantize_onnx
    from ..model.pipeline_triaffine import NestedNERPipeline

    pipeline = NestedNERPipeline(model, device="cpu")
    with new_folder(output) as folder:
        difference = export_onnx(pipeline.model, pipeline.processor, folder / GRAPH)
        if int8:
            quantize_onnx(folder / GRAPH)
        pipeline.model.config.save_pretrained(folder)
        pipeline.processor.save_pretrained(folder)
    print(f"{output / GRAPH}: scores within {difference:.1e} of the model's{', before int8' if int8 else ''}")
