"""Publishes a trained model: a complete repository, on the Hub or (--dry-run) in a folder.

    triaffine-ner publish --checkpoint outputs/mine --repo-id owner/name

The repository holds the weights, the code that loads them with transformers alone, the tokenizer and processor, the
card, and the handler of an Inference Endpoint. It is private unless --public opens it. Several models can share the
code of one repository, which then is published first:

    triaffine-ner publish --code-only --repo-id owner/code
    triaffine-ner publish --checkpoint outputs/mine --repo-id owner/name --code-repo owner/code

A card that somebody has edited is kept. A folder with files of other kinds is refused; what a training leaves behind
besides the model stays at home, and so do pickles.
"""

import argparse
import tempfile
from pathlib import Path

from ..model.modeling_triaffine import TriaffineForNestedNER
from ..publishing.repository import Repository, assemble_code_repository, assemble_repository, write_repository
from ..publishing.upload import fetch_checkpoint, full_name, upload_repository


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--checkpoint", help="folder or Hub name of a trained model with its processor")
    what.add_argument("--code-only", action="store_true", help="publish the code alone, for models to share")
    parser.add_argument("--repo-id", required=True, metavar="OWNER/NAME", help="the repository to publish to")
    parser.add_argument("--code-repo", metavar="OWNER/NAME", help="refer to the code in this repository")
    parser.add_argument("--public", action="store_true", help="make a new repository public (default: private)")
    parser.add_argument("--branch", help="branch of the repository, made if there is none (default: main)")
    parser.add_argument("--message", help="message of the commit")
    parser.add_argument("--new-card", action="store_true", help="write the card anew, even where it was edited")
    parser.add_argument("--dry-run", action="store_true", help="write the repository to a folder, and upload nothing")
    parser.add_argument("--output", type=Path, help="that folder (default: the repository's name)")


def run(arguments: argparse.Namespace) -> None:
    check_combination(arguments)
    with tempfile.TemporaryDirectory() as staging:
        repository = assemble(arguments, Path(staging))
        print(repository.describe())
        if arguments.dry_run:
            folder = arguments.output or Path(repository.repo_id.split("/")[-1])
            write_repository(repository, folder)
            print(f"Written to {folder}; nothing was uploaded.")
        else:
            upload(repository, arguments)


def check_combination(arguments: argparse.Namespace) -> None:
    if arguments.output and not arguments.dry_run:
        raise ValueError("--output is the folder of a --dry-run; leave it out, or add --dry-run.")
    if arguments.code_only and arguments.code_repo:
        raise ValueError("--code-only publishes the code itself; leave --code-repo out.")


def assemble(arguments: argparse.Namespace, staging: Path) -> Repository:
    repo_id = arguments.repo_id if arguments.dry_run else full_name(arguments.repo_id)
    if arguments.code_only:
        return assemble_code_repository(staging, repo_id)
    checkpoint = fetch_checkpoint(arguments.checkpoint)
    repository = assemble_repository(
        checkpoint, staging, repo_id, code_repository=arguments.code_repo, new_card=arguments.new_card
    )
    TriaffineForNestedNER.from_pretrained(checkpoint)  # nothing is published that does not load
    return repository


def upload(repository: Repository, arguments: argparse.Namespace) -> None:
    result = upload_repository(
        repository,
        private=not arguments.public,
        new_card=arguments.new_card,
        revision=arguments.branch,
        commit_message=arguments.message,
    )
    if result.removed:
        print(f"Removed, no longer part of it: {', '.join(result.removed)}.")
    if arguments.public and result.private:
        print(f"{repository.repo_id} was there and stays private; its settings on the Hub open it.")
    print(f"Published {'privately' if result.private else 'for everybody'}: {result.commit.commit_url}")
