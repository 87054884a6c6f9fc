"""The loopback Hub, asked by the real client: what is pushed comes back, what is missing fails as on the real Hub."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

if TYPE_CHECKING:
    from tests.hub_server import LoopbackHub

pytest_plugins = ("tests.hub_server",)  # the fixture `hub`

REPO = "tester/nested"
WEIGHTS = bytes(range(256)) * 5
CARD = "---\ntags:\n- nested-ner\npipeline_tag: token-classification\n---\n# A card\n"
PUSHED = [".gitattributes", "README.md", "code/deep/ops.py", "code/model.py", "model.safetensors", "vectors.dat"]


@pytest.fixture
def api(hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> HfApi:
    """A client of the loopback Hub in this process, where the other tests are offline."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    return HfApi(endpoint=hub.endpoint, token=hub.token)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "code" / "deep").mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    (folder / "code" / "model.py").write_text("ONE = 1\n")
    (folder / "code" / "deep" / "ops.py").write_text("TWO = 2\n")
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "vectors.dat").write_bytes(b"binary by content\0\xff")
    return folder


@pytest.fixture
def pushed(api: HfApi, folder: Path) -> str:
    """Sha of the commit that holds `folder`."""
    api.create_repo(REPO)
    return api.upload_folder(repo_id=REPO, folder_path=folder).oid


def test_snapshot_is_the_folder_that_was_pushed(api: HfApi, folder: Path, pushed: str, tmp_path: Path):
    snapshot = Path(api.snapshot_download(REPO, cache_dir=tmp_path / "cache"))

    assert snapshot.name == pushed
    for path in PUSHED[1:]:
        assert (snapshot / path).read_bytes() == (folder / path).read_bytes()


def test_files_are_listed(api: HfApi, pushed: str):
    assert sorted(api.list_repo_files(REPO)) == PUSHED
    assert api.file_exists(REPO, "code/model.py")
    assert not api.file_exists(REPO, "code/other.py")


def test_tree_and_paths_show_folders_and_large_files(api: HfApi, pushed: str):
    top = {entry.path: entry for entry in api.list_repo_tree(REPO)}
    assert sorted(top) == [".gitattributes", "README.md", "code", "model.safetensors", "vectors.dat"]
    large = {path for path, entry in top.items() if isinstance(entry, RepoFile) and entry.lfs is not None}
    assert large == {"model.safetensors", "vectors.dat"}

    deep = [entry.path for entry in api.list_repo_tree(REPO, "code", recursive=True)]
    assert deep == ["code/deep", "code/deep/ops.py", "code/model.py"]

    known = api.get_paths_info(REPO, ["code", "README.md", "nowhere"])
    assert [(entry.path, hasattr(entry, "blob_id")) for entry in known] == [("code", False), ("README.md", True)]


def test_weights_travel_as_large_file_once(api: HfApi, hub: LoopbackHub, folder: Path, pushed: str):
    (folder / "README.md").write_text(CARD + "more\n")
    second = api.upload_folder(repo_id=REPO, folder_path=folder).oid

    assert second != pushed
    assert len([request for request in hub.requests if request.method == "PUT"]) == 2  # weights and vectors
    assert api.upload_folder(repo_id=REPO, folder_path=folder).oid == second  # unchanged: no commit


def test_metadata_of_a_large_file(api: HfApi, hub: LoopbackHub, pushed: str):
    weights = api.get_hf_file_metadata(url=f"{hub.endpoint}/{REPO}/resolve/main/model.safetensors")
    assert (weights.commit_hash, weights.size) == (pushed, len(WEIGHTS))
    assert weights.etag == hashlib.sha256(WEIGHTS).hexdigest()


def test_old_revision_stays(api: HfApi, folder: Path, pushed: str, tmp_path: Path):
    (folder / "code" / "model.py").write_text("ONE = 'new'\n")
    newest = api.upload_folder(repo_id=REPO, folder_path=folder).oid

    def content(revision: str | None) -> str:
        path = api.hf_hub_download(REPO, "code/model.py", revision=revision, cache_dir=tmp_path / "cache")
        return Path(path).read_text()

    assert content(pushed) == "ONE = 1\n"
    assert content(newest) == content("main") == content(None) == "ONE = 'new'\n"
    assert [branch.target_commit for branch in api.list_repo_refs(REPO).branches] == [newest]
    assert api.model_info(REPO, revision=pushed).sha == pushed


def test_branch_keeps_its_own_state(api: HfApi, pushed: str, tmp_path: Path):
    api.create_branch(REPO, branch="trial")
    api.upload_file(repo_id=REPO, path_or_fileobj=b"x", path_in_repo="note.txt", revision="trial")

    assert api.file_exists(REPO, "note.txt", revision="trial")
    assert not api.file_exists(REPO, "note.txt")
    assert {branch.name for branch in api.list_repo_refs(REPO).branches} == {"main", "trial"}


def test_deleting_files_and_folders(api: HfApi, pushed: str):
    deletions = [CommitOperationDelete("README.md"), CommitOperationDelete("code/")]
    api.create_commit(REPO, operations=deletions, commit_message="less")
    assert sorted(api.list_repo_files(REPO)) == [".gitattributes", "model.safetensors", "vectors.dat"]

    with pytest.raises(EntryNotFoundError, match="doesn't exist"):
        api.delete_file("README.md", REPO)


def test_commit_on_an_outdated_parent_is_refused(api: HfApi, pushed: str):
    api.upload_file(repo_id=REPO, path_or_fileobj=b"x", path_in_repo="note.txt", parent_commit=pushed)
    addition = CommitOperationAdd("late.txt", b"y")
    with pytest.raises(HfHubHTTPError, match="412"):
        api.create_commit(REPO, operations=[addition], commit_message="late", parent_commit=pushed)
    assert not api.file_exists(REPO, "late.txt")


def test_model_info(api: HfApi, pushed: str):
    info = api.model_info(REPO, files_metadata=True)
    assert (info.id, info.sha, info.private) == (REPO, pushed, False)
    assert (info.tags, info.pipeline_tag) == (["nested-ner"], "token-classification")
    sizes = {sibling.rfilename: sibling.size for sibling in info.siblings or []}
    assert sorted(sizes) == PUSHED
    assert sizes["model.safetensors"] == len(WEIGHTS)


def test_creating_a_repository_twice(api: HfApi, hub: LoopbackHub):
    url = api.create_repo(REPO)
    assert (url.repo_id, url) == (REPO, f"{hub.endpoint}/{REPO}")
    with pytest.raises(HfHubHTTPError, match="409"):
        api.create_repo(REPO)
    assert api.create_repo(REPO, exist_ok=True) == url


def test_name_without_owner_belongs_to_the_user(api: HfApi):
    assert api.create_repo("alone").repo_id == f"{api.whoami()['name']}/alone"


def test_private_repository_is_hidden_without_the_token(api: HfApi, hub: LoopbackHub):
    api.create_repo(REPO, private=True)
    assert hub.repositories[REPO].private
    assert api.model_info(REPO).private

    stranger = HfApi(endpoint=hub.endpoint, token=False)
    with pytest.raises(RepositoryNotFoundError):
        stranger.model_info(REPO)


def test_nothing_is_written_without_the_token(api: HfApi, hub: LoopbackHub, pushed: str):
    stranger = HfApi(endpoint=hub.endpoint, token=False)
    with pytest.raises(HfHubHTTPError, match="401"):
        stranger.create_repo("tester/other")
    with pytest.raises(HfHubHTTPError, match="401"):
        stranger.upload_file(repo_id=REPO, path_or_fileobj=b"x", path_in_repo="note.txt")
    assert list(hub.repositories) == [REPO]
    assert list(hub.repositories[REPO].commits)[-1] == pushed


def test_a_token_for_reading_does_not_write(api: HfApi, hub: LoopbackHub, pushed: str):
    reader = HfApi(endpoint=hub.endpoint, token=hub.reading_token)
    assert reader.model_info(REPO).sha == pushed
    with pytest.raises(HfHubHTTPError, match="403"):
        reader.upload_file(repo_id=REPO, path_or_fileobj=b"x", path_in_repo="note.txt")
    assert list(hub.repositories[REPO].commits)[-1] == pushed


def test_what_is_missing_raises_the_clients_exceptions(api: HfApi, pushed: str, tmp_path: Path):
    cache = tmp_path / "cache"
    with pytest.raises(RepositoryNotFoundError):
        api.snapshot_download("tester/unknown", cache_dir=cache)
    with pytest.raises(RepositoryNotFoundError):
        api.hf_hub_download("tester/unknown", "README.md", cache_dir=cache)
    with pytest.raises(EntryNotFoundError):
        api.hf_hub_download(REPO, "unknown.txt", cache_dir=cache)
    with pytest.raises(EntryNotFoundError):
        list(api.list_repo_tree(REPO, "unknown"))
    with pytest.raises(RevisionNotFoundError):
        api.hf_hub_download(REPO, "README.md", revision="unknown", cache_dir=cache)
    with pytest.raises(RevisionNotFoundError):
        api.model_info(REPO, revision="0" * 40)
    assert not api.repo_exists("tester/unknown")


def test_names_with_unusual_characters(api: HfApi, pushed: str, tmp_path: Path):
    path = "données/a b+c%20#1?.txt"
    api.upload_file(repo_id=REPO, path_or_fileobj="é".encode(), path_in_repo=path)
    assert path in api.list_repo_files(REPO)
    assert Path(api.hf_hub_download(REPO, path, cache_dir=tmp_path / "cache")).read_text() == "é"
    assert not api.file_exists(REPO, "données/ü.txt")


def test_card_metadata_is_validated(api: HfApi):
    api._validate_yaml(CARD)
    with pytest.warns(UserWarning, match="empty or missing"):
        api._validate_yaml("# no metadata")
    with pytest.raises(ValueError, match="Invalid metadata"):
        api._validate_yaml("---\ntags: [unclosed\n---\n")


def test_requests_are_recorded(api: HfApi, hub: LoopbackHub):
    api.create_repo(REPO, private=True)
    assert not api.file_exists(REPO, "README.md")
    created, asked = hub.requests
    assert (created.method, created.path, created.status) == ("POST", "/api/repos/create", 200)
    assert created.json()["visibility"] == "private"
    assert (asked.method, asked.status) == ("HEAD", 404)
    assert asked.headers["authorization"] == f"Bearer {hub.token}"


def test_unserved_request_is_named(api: HfApi, hub: LoopbackHub):
    with pytest.raises(HfHubHTTPError, match="does not serve GET /api/datasets/tester/data"):
        api.dataset_info("tester/data")


LOAD = """
from huggingface_hub import snapshot_download
print(open(snapshot_download("tester/nested") + "/code/model.py").read())
"""


def test_another_process_loads_and_then_works_offline(hub: LoopbackHub, pushed: str):
    def load(**changes: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, **hub.environment(), **changes}
        command = [sys.executable, "-c", LOAD]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert "OfflineModeIsEnabled" in load(HF_HUB_OFFLINE="1").stderr  # nothing in the cache yet
    assert load().stdout.strip() == "ONE = 1"
    hub.stop()
    before = len(hub.requests)
    assert load(HF_HUB_OFFLINE="1").stdout.strip() == "ONE = 1"
    assert len(hub.requests) == before


def test_the_cache_goes_with_the_hub():
    from tests.hub_server import LoopbackHub

    with LoopbackHub() as hub:
        home = Path(hub.environment()["HF_HOME"])
        assert home.is_dir()
    assert not home.exists()


def test_only_the_loopback_interface_listens(hub: LoopbackHub):
    assert hub.endpoint.startswith("http://127.0.0.1:")
    assert hub._server.socket.getsockname()[0] == "127.0.0.1"
