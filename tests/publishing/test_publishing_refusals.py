"""What publishing refuses, its errors of the Hub, and the dry run."""

import os
from typing import Any

import httpx
import pytest
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import GatedRepoError
from transformers import AutoModelForTokenClassification

from modeling_triaffine.publishing.hub_requests import errors_of_hub
from modeling_triaffine.publishing.repository import format_size
from modeling_triaffine.publishing.upload import NotPublishedError, publish_folder, saved_before
from tests.helpers.checkpoint_to_publish import (
    CODE_FILES,
    MODEL_FILES,
    NAME,
    train_on,
)
from tests.helpers.portable import near
from tests.helpers.stranger import expected_answer
from tests.helpers.tiny import tiny_model, tiny_processor

pytest_plugins = ("tests.helpers.hub_server",)


# ---- Refusals


def test_another_kind_of_model_is_refused_without_warnings_of_its_fields(encoder, command, caplog):
    result = command("publish", "--model", encoder, "--repo-id", NAME, "--dry-run")
    assert result.code == 2
    assert "Give a trained model, or start a new one from it with `triaffine-ner train" in result.err
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda checkpoint: (checkpoint / "model.safetensors").unlink(), "but no weights. Load it with OnnxNestedNER"),
        (lambda checkpoint: os.truncate(checkpoint / "model.safetensors", 1000), "are damaged or cut off"),
        (lambda checkpoint: (checkpoint / "vocabularies.json").unlink(), "has no vocabularies.json"),
        (lambda checkpoint: (checkpoint / "README.md").write_bytes(b"\xe9") and None, "README.md: byte 1 is not valid"),
        (lambda checkpoint: ["--output", checkpoint, "--dry-run"], "exists already. Give the name of a new folder"),
        (lambda checkpoint: ["--output", checkpoint.parent / "new"], "add --dry-run"),
        (lambda checkpoint: ["--repo-id", "a//b"], "'a//b', which cannot be a repository"),
        (lambda checkpoint: ["--model", "owner/nothing"], "There is no folder owner/nothing. The Hub has no"),
    ],
)
def test_mistakes_are_explained_and_nothing_is_written(checkpoint, online, command, tmp_path, mistake, message):
    before = {path for path in checkpoint.parent.rglob("*") if "hub_cache" not in path.parts}
    more = mistake(checkpoint) or []
    made = {path for path in checkpoint.parent.rglob("*") if "hub_cache" not in path.parts} - before
    result = command("publish", "--model", checkpoint, "--repo-id", NAME, *more)
    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert "Traceback" not in result.err
    assert online.repositories == {}
    after = {path for path in checkpoint.parent.rglob("*") if "hub_cache" not in path.parts}
    assert after - before == made


def test_errors_of_the_hub_are_explained_in_one_paragraph(checkpoint, online, command, monkeypatch):
    def publish() -> str:
        result = command("publish", "--model", checkpoint, "--repo-id", NAME)
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
    result = command("publish", "--model", checkpoint, "--repo-id", NAME)
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


def test_change_by_somebody_else_is_not_undone(checkpoint, online, command, publish, monkeypatch):
    publish()
    create_commit = HfApi.create_commit

    def after_another(self, *arguments: Any, **options: Any) -> Any:
        create_commit(self, NAME, [], commit_message="nothing")
        online.repositories[NAME].add_commit("main", dict(online.repositories[NAME].resolve("main")[1]))
        return create_commit(self, *arguments, **options)

    monkeypatch.setattr(HfApi, "create_commit", after_another)
    result = command("publish", "--model", train_on(checkpoint), "--repo-id", NAME)
    assert result.code == 2
    assert f"Somebody else has just changed {NAME}" in result.err


# ---- Dry run


def test_sizes_have_three_digits():
    assert [format_size(size) for size in (0, 999, 1234, 999_700)] == ["0 bytes", "999 bytes", "1.23 kB", "1 MB"]


def test_dry_run_needs_no_hub(checkpoint, publish, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    assert "Nothing was written or uploaded" in publish("--dry-run")
    assert set(tmp_path.iterdir()) == before
    printed = publish("--dry-run", "--output", "name")
    folder = tmp_path / "name"
    assert "Written to name; nothing was uploaded." in printed
    assert all(f"  {path.name} " in printed for path in folder.iterdir())
    assert {path.name for path in folder.iterdir()} == MODEL_FILES | CODE_FILES
    assert expected_answer(folder) == near(expected_answer(checkpoint))


def test_weights_in_several_files_stay_whole(encoder, publish, tmp_path):
    folder = tmp_path / "sharded"
    tiny_model(encoder).save_pretrained(folder, max_shard_size="20kB")
    tiny_processor(encoder).save_pretrained(folder)
    shards = {path.name for path in folder.glob("model*")}
    assert len(shards) > 2
    publish("--dry-run", "--output", tmp_path / "dry", model=folder)
    assert {path.name for path in (tmp_path / "dry").glob("model*")} == shards
    assert AutoModelForTokenClassification.from_pretrained(tmp_path / "dry").config.num_labels == 3


@pytest.mark.parametrize("shard_size", ["1GB", "20kB"])
def test_a_checkpoint_without_all_of_its_weights_is_refused(encoder, online, tmp_path, shard_size):
    tiny_model(encoder).save_pretrained(tmp_path, max_shard_size=shard_size)
    tiny_processor(encoder).save_pretrained(tmp_path)
    missing = max(tmp_path.glob("*.safetensors"))
    missing.unlink()
    with pytest.raises(ValueError, match=f"has no {missing.name}: its weights are incomplete"):
        publish_folder(tmp_path, NAME)
    assert online.repositories == {}
