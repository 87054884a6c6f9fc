"""Publishes a trained model: a complete repository, on the Hub or (--dry-run) in a folder.

    triaffine-ner publish --model outputs/mine --repo-id owner/name

The repository has the weights, code that loads them with transformers alone, tokenizer and processor, the model card,
and a handler for Inference Endpoints. It is private unless --public is given.

An edited card is kept. Only these files and licenses are uploaded; the command lists all files that it leaves out.
"""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from .options import check_new


def command(
    repo_id: Annotated[str, typer.Option(help="Repository to publish to.", metavar="OWNER/NAME")],
    model: Annotated[
        str, typer.Option(help="Folder or Hub name of a trained model with its processor.", metavar="MODEL")
    ],
    public: Annotated[bool, typer.Option("--public", help="Make a new repository public.  [default: private]")] = False,
    branch: Annotated[
        str | None, typer.Option(help="Branch to publish to, created if missing.  [default: main]")
    ] = None,
    message: Annotated[str | None, typer.Option(help="Message of the commit.")] = None,
    new_card: Annotated[bool, typer.Option("--new-card", help="Replace an edited card.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Assemble and check the repository without uploading it.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="With --dry-run: new folder for the repository.", metavar="FOLDER")
    ] = None,
) -> None:
    if output and not dry_run:
        raise ValueError("--output is for a --dry-run. Leave it out, or add --dry-run.")
    if output:
        check_new(output)
    from ..model.model_triaffine import TriaffineForNestedNER
    from ..publishing.hub_requests import full_name
    from ..publishing.repository import assemble_repository, write_repository
    from ..publishing.upload import fetch_checkpoint, upload_repository

    with tempfile.TemporaryDirectory() as staging:
        name = repo_id if dry_run else full_name(repo_id)
        folder = fetch_checkpoint(model)
        repository = assemble_repository(folder, Path(staging), name, new_card=new_card)
        TriaffineForNestedNER.from_pretrained(folder)  # raises if it cannot be loaded
        print(repository.describe())
        if output is not None:
            write_repository(repository, output)
            print(f"Written to {output}; nothing was uploaded.")
        elif dry_run:
            print("Nothing was written or uploaded; --output FOLDER keeps the repository in a folder.")
        else:
            result = upload_repository(
                repository, private=not public, new_card=new_card, revision=branch, commit_message=message
            )
            if result.removed:
                print(f"Removed files of older versions: {', '.join(result.removed)}.")
            if public and result.private:
                print(f"{repository.repo_id} exists and stays private; make it public in its settings on the Hub.")
            print(f"Published {'privately' if result.private else 'for everybody'}: {result.commit.commit_url}")
