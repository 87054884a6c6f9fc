"""Publishes a trained model: a complete repository, on the Hub or (--output) in a folder.

    triaffine-ner publish --model outputs/mine --repo-id owner/name --output outputs/repository
    triaffine-ner publish --model outputs/mine --repo-id owner/name

The repository has the weights, code that loads them with transformers alone, tokenizer and processor, the model card,
and a handler for Inference Endpoints. It is private unless --public is given.

A card in the model's folder, or one on the Hub, is kept; without any, one is written from the facts of the run. Only
these files and licenses are uploaded; the command lists all files that it leaves out.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ..installed_models import find_model
from .options import check_new


def command(
    repo_id: Annotated[str, typer.Option(help="Repository to publish to.", metavar="OWNER/NAME")],
    model: Annotated[
        str, typer.Option(help="Folder or Hub name of a trained model with its processor.", metavar="MODEL")
    ],
    public: Annotated[bool, typer.Option("--public", help="Make a new repository public.  [default: private]")] = False,
    new_card: Annotated[
        bool, typer.Option("--new-card", help="Write the card anew, in place of one in the folder or on the Hub.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="New folder for the repository, which is not uploaded then.", metavar="FOLDER")
    ] = None,
) -> None:
    if output:
        check_new(output)
    from ..publishing import assemble_repository, publish_folder
    from ..publishing.upload import fetch_model

    with tempfile.TemporaryDirectory() as fetched, tempfile.TemporaryDirectory() as staging:
        folder = fetch_model(find_model(model), Path(fetched))
        if output:
            print(assemble_repository(folder, Path(staging), repo_id, new_card=new_card))
            shutil.copytree(staging, output)
            print(f"Nothing was uploaded; the files are in {output}.")
            return
        published = publish_folder(folder, repo_id, private=not public, new_card=new_card)
    print(published.files)
    if public and published.private:
        print(f"{repo_id} exists and stays private; make it public in its settings on the Hub.")
    print(f"Published {'privately' if published.private else 'for everybody'}: {published.commit.commit_url}")
