"""What publishing refuses, its errors of the Hub, and the dry run."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import GatedRepoError
from transformers import AutoModelForTokenClassification

from modeling_triaffine import TriaffineForNestedNER
from modeling_triaffine.model.repository_triaffine import REMOTE_CODE_FILES
from modeling_triaffine.publishing.upload import NotPublishedError, errors_of_hub, publish_folder, saved_before
from tests.helpers.checkpoint_to_publish import (
    CODE,
    CODE_FILES,
    LEFT_BEHIND,
    MODEL_FILES,
    NAME,
    api_of,
    files_of,
    train_on,
)
from tests.helpers.portable import near
from tests.helpers.stranger import expected_answer
from tests.helpers.tiny import tiny_model, tiny_processor

pytest_plugins = ("tests.helpers.hub_server",)


# ---- Refusals


def output_with(files: dict[str, str], beside: str = "") -> Callable[[Path], list[object]]:
    """A dry run to a folder of these files, which may have those of a model or of an earlier dry run, too."""

    def mistake(checkpoint: Path) -> list[object]:
        folder = checkpoint.parent / "other"
        if beside == "a model":
            TriaffineForNestedNER.from_pretrained(checkpoint).save_pretrained(folder)
        elif beside == "a dry run":
            shutil.copytree(checkpoint, folder, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("a") as file:
                file.write(text)
        return ["--output", folder, "--dry-run"]

    return mistake


def output_is_the_run(checkpoint: Path) -> list[object]:
    """The folder of the run is written to, and one of its checkpoints is what is published."""
    run = checkpoint.parent / "run"
    shutil.copytree(checkpoint, run / "checkpoint-3")
    (run / "README.md").write_text((checkpoint / "README.md").read_text())
    return ["--checkpoint", run / "checkpoint-3", "--output", run, "--dry-run"]


FOREIGN = "has files that an earlier dry run did not write:"
EDITED = "other has files, but no unedited README.md"


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (output_is_the_run, f"run {FOREIGN} checkpoint-3."),
        (output_with({".git/HEAD": "ref: refs/heads/main"}), f"other {FOREIGN} .git."),
        (output_with({"thesis.tex": "years of work"}), f"other {FOREIGN} thesis.tex."),
        (output_with({"LICENSE": "For us alone."}, beside="a dry run"), f"other {FOREIGN} LICENSE."),
        (output_with({"README.md": "Years of work."}, beside="a dry run"), EDITED),
        (output_with({"README.md": "---\nlicense: mit\n---\n"}, beside="a model"), EDITED),
        (output_with({}, beside="a model"), EDITED),
        (lambda checkpoint: (checkpoint / "model.safetensors").unlink(), "no file named model.safetensors"),
        (lambda checkpoint: os.truncate(checkpoint / "model.safetensors", 1000), "are damaged or cut off"),
        (lambda checkpoint: (checkpoint / "vocabularies.json").unlink(), "has no vocabularies.json"),
        (lambda checkpoint: ["--output", checkpoint, "--dry-run"], "is the folder of the model"),
        (lambda checkpoint: ["--output", checkpoint.parent / "new"], "add --dry-run"),
        (lambda checkpoint: ["--repo-id", "a//b"], "'a//b', which cannot be a repository"),
        (lambda checkpoint: ["--code-repo", NAME], "cannot be both the model's repository and its code repository"),
        (lambda checkpoint: ["--code-repo", CODE], f"The Hub has no model {CODE}"),
        (lambda checkpoint: ["--checkpoint", "owner/nothing"], "There is no folder owner/nothing. The Hub has no"),
    ],
)
def test_mistakes_are_explained_and_nothing_is_written(checkpoint, online, command, tmp_path, mistake, message):
    before = {path for path in checkpoint.parent.rglob("*") if "hub_cache" not in path.parts}
    more = mistake(checkpoint) or []
    made = {path for path in checkpoint.parent.rglob("*") if "hub_cache" not in path.parts} - before
    result = command("publish", "--checkpoint", checkpoint, "--repo-id", NAME, *more)
    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert "Traceback" not in result.err
    assert online.repositories == {}
    after = {path for path in checkpoint.parent.rglob("*") if "hub_cache" not in path.parts}
    assert after - before == made


def test_code_and_models_do_not_replace_each_other(checkpoint, online, command):
    assert command("publish", "--code-only", "--repo-id", CODE).code == 0
    shared = files_of(online, CODE)
    lacking = "owner/lacking"
    api_of(online).create_repo(lacking)
    result = command("publish", "--checkpoint", checkpoint, "--repo-id", NAME, "--code-repo", lacking)
    assert f"{lacking} lacks {min(REMOTE_CODE_FILES)}" in result.err
    assert f"--code-only --repo-id {lacking}" in result.err
    result = command("publish", "--checkpoint", checkpoint, "--repo-id", CODE)
    assert f"{CODE} has the code that models in other repositories refer to" in result.err
    assert files_of(online, CODE) == shared

    assert command("publish", "--checkpoint", checkpoint, "--repo-id", NAME, "--code-repo", CODE).code == 0
    model = files_of(online)
    result = command("publish", "--code-only", "--repo-id", NAME)
    assert f"{NAME} has a model" in result.err
    assert files_of(online) == model


def test_errors_of_the_hub_are_explained_in_one_paragraph(checkpoint, online, command, monkeypatch):
    def publish() -> str:
        result = command("publish", "--checkpoint", checkpoint, "--repo-id", NAME)
        assert result.code == 2
        assert "Traceback" not in result.err
        return result.err.splitlines()[-1]

    for token, message in {
        online.reading_token: f"no write access to {NAME}. Its owner must be you",
        "hf_unknown": "there is no valid token. Check the spelling. Log in with `hf auth login`",
    }.items():
        monkeypatch.setenv("HF_TOKEN", token)
        assert message in publish()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert f"The Hub ({online.endpoint}) cannot be reached for {NAME}" in publish()
    assert online.repositories == {}


def test_model_that_its_owner_shows_to_some_only_says_how_to_ask():
    answer = httpx.Response(403, request=httpx.Request("GET", "https://hub"))
    error = GatedRepoError("Access to model owner/gated is restricted.", response=answer)
    with pytest.raises(PermissionError, match=r"gated: request access .*/owner/gated"), errors_of_hub("owner/gated"):
        raise error


def test_an_interrupted_upload_is_explained(checkpoint, online, command, monkeypatch):
    """The Hub's client raises no error of its own for it."""

    def break_off(*_: Any, **options: Any) -> None:
        raise RuntimeError("Error while uploading 'model.safetensors' to the Hub.") from ConnectionResetError("reset")

    monkeypatch.setattr(HfApi, "create_commit", break_off)
    result = command("publish", "--checkpoint", checkpoint, "--repo-id", NAME)
    assert result.code == 2
    printed = f"error: The transfer of files of {NAME} was interrupted (reset). Check the connection, and try again."
    assert result.err.splitlines()[-1] == printed


def test_a_saved_model_can_be_published_later(checkpoint, online, monkeypatch, tmp_path):
    folder = checkpoint.rename(tmp_path / "my run")
    later = f"The model is saved in {folder}; publish it with: "
    later += f"triaffine-ner publish --model '{folder}' --repo-id {NAME}"
    monkeypatch.setenv("HF_TOKEN", "hf_unknown")
    with pytest.raises(NotPublishedError, match="Log in with") as refused, saved_before(folder, NAME):
        publish_folder(folder, NAME)
    assert str(refused.value).endswith(later)
    assert "\n" not in str(refused.value)
    (folder / "vocabularies.json").unlink()
    with pytest.raises(NotPublishedError, match=r"vocabularies\.json") as refused, saved_before(folder, NAME):
        publish_folder(folder, NAME)
    assert str(refused.value).endswith(later)


def test_change_by_somebody_else_is_not_undone(checkpoint, online, command, monkeypatch):
    assert command("publish", "--checkpoint", checkpoint, "--repo-id", NAME).code == 0
    create_commit = HfApi.create_commit

    def after_another(self, *arguments: Any, **options: Any) -> Any:
        create_commit(self, NAME, [], commit_message="nothing")
        online.repositories[NAME].add_commit("main", dict(online.repositories[NAME].resolve("main")[1]))
        return create_commit(self, *arguments, **options)

    monkeypatch.setattr(HfApi, "create_commit", after_another)
    result = command("publish", "--checkpoint", train_on(checkpoint), "--repo-id", NAME)
    assert result.code == 2
    assert f"Somebody else has just changed {NAME}" in result.err


# ---- Dry run


def test_dry_run_needs_no_hub_and_replaces_its_own_folder(checkpoint, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("publish", "--checkpoint", checkpoint, "--repo-id", NAME, "--dry-run")
    before = set(tmp_path.iterdir())
    result = command(*options)
    assert result.code == 0, result.err
    assert "Nothing was written or uploaded" in result.out
    assert set(tmp_path.iterdir()) == before
    options += ("--output", "name")
    result = command(*options)
    assert result.code == 0, result.err
    folder = tmp_path / "name"
    assert "Written to name; nothing was uploaded." in result.out
    for path in folder.iterdir():
        assert f"  {path.name} " in result.out
    assert expected_answer(folder) == near(expected_answer(checkpoint))
    (folder / "model-00001-of-00002.safetensors").write_bytes(b"outdated")
    shutil.rmtree(checkpoint / "checkpoint-3")
    assert command(*options).code == 0
    assert {path.name for path in folder.iterdir()} == MODEL_FILES | CODE_FILES
    for _ in range(2):
        assert command("publish", "--code-only", "--repo-id", CODE, "--dry-run", "--output", "code").code == 0
    assert {path.name for path in (tmp_path / "code").iterdir()} == {*REMOTE_CODE_FILES, "LICENSE", "README.md"}


@pytest.mark.parametrize("output", [".", ".."])
def test_dry_run_does_not_replace_the_folder_one_is_in(checkpoint, command, tmp_path, monkeypatch, output):
    options = ("publish", "--checkpoint", checkpoint, "--repo-id", NAME, "--dry-run", "--output")
    outer = tmp_path / "outer"
    assert command(*options, outer).code == 0
    inner = outer / "tokenizer.model"  # of a name that a repository may hold
    (inner if output == ".." else outer).mkdir(exist_ok=True)
    monkeypatch.chdir(inner if output == ".." else outer)
    result = command(*options, output)
    assert result.code == 2
    assert f"{outer} is the working directory, or contains it" in result.err
    assert Path.cwd().exists()
    assert (outer / "config.json").exists()


def test_weights_in_several_files_stay_whole(encoder, command, tmp_path):
    folder = tmp_path / "sharded"
    tiny_model(encoder).save_pretrained(folder, max_shard_size="20kB")
    tiny_processor(encoder).save_pretrained(folder)
    shards = {path.name for path in folder.glob("model*")}
    assert len(shards) > 2
    options = ("--checkpoint", folder, "--repo-id", NAME, "--dry-run", "--output", tmp_path / "dry")
    assert command("publish", *options).code == 0
    assert {path.name for path in (tmp_path / "dry").glob("model*")} == shards
    assert AutoModelForTokenClassification.from_pretrained(tmp_path / "dry").config.num_labels == 3
