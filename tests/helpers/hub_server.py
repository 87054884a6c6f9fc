"""A Hugging Face Hub on the loopback interface: what the real client needs to publish and load a model.

    with LoopbackHub() as hub:
        HfApi(endpoint=hub.endpoint, token=hub.token).create_repo("user/name")

Model repositories live in memory; every commit keeps its state under its own sha. Routes and answers are those that
`huggingface_hub` 2.x calls and reads (`hf_api.py`, `_commit_api.py`, `lfs.py`, `file_download.py`), and errors carry
the Hub's `X-Error-Code`, so that the client raises its own exceptions. Not here: folders, data sets, Spaces,
pull requests, tags, Xet transfer, ranges and pages. A request outside of that gets a 404 which names it.
"""

import base64
import hashlib
import json
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml  # comes with huggingface_hub
from huggingface_hub import constants

USER = "tester"
LFS_PATTERNS = ("*.safetensors", "*.bin", "*.pt", "*.onnx")
LARGEST_REGULAR_FILE = 10 * 1024 * 1024  # bytes
TIMEOUT = 10  # seconds, of a connection and of the shutdown

Json = dict[str, Any]


class HubError(Exception):
    """An answer other than success; `code` becomes the header from which the client chooses its exception."""

    def __init__(self, status: int, message: str, code: str | None = None, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status = status
        self.headers = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {}), **(headers or {})}


@dataclass
class Request:
    """One request as it came, with the status it was answered with; `LoopbackHub.requests` keeps them all."""

    method: str
    path: str  # still quoted: an encoded "/" belongs to a name
    query: dict[str, list[str]]
    headers: dict[str, str]  # names in lower case
    body: bytes = field(repr=False)
    status: int = 0

    def json(self) -> Json:
        return json.loads(self.body)

    def flag(self, name: str) -> bool:
        return self.query.get(name, ["false"])[-1].lower() == "true"


@dataclass
class Response:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> "Response":
        return cls(json.dumps(value).encode(), status, {"Content-Type": "application/json", **(headers or {})})


@dataclass(frozen=True)
class StoredFile:
    """A file in a commit; git knows a large one by a pointer, everybody else by the SHA-256 of its content."""

    content: bytes = field(repr=False)
    is_lfs: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def pointer(self) -> bytes:
        lines = ("version https://git-lfs.github.com/spec/v1", f"oid sha256:{self.sha256}", f"size {len(self.content)}")
        return "".join(f"{line}\n" for line in lines).encode()

    @property
    def git_oid(self) -> str:
        blob = self.pointer if self.is_lfs else self.content
        return hashlib.sha1(b"blob %d\0" % len(blob) + blob).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.is_lfs else self.git_oid

    def entry(self, path: str) -> Json:
        """As listed by `tree` (type, path, oid) and by the model info (rfilename, blobId)."""
        size, sha256 = len(self.content), self.sha256
        entry = {"type": "file", "path": path, "oid": self.git_oid, "size": size}
        lfs = {"oid": sha256, "sha256": sha256, "size": size, "pointerSize": len(self.pointer)}
        return {**entry, "rfilename": path, "blobId": self.git_oid, **({"lfs": lfs} if self.is_lfs else {})}


Files = dict[str, StoredFile]


class Repository:
    """The states of one repository by commit sha, and the branches that point at them."""

    def __init__(self, repo_id: str, private: bool):
        self.repo_id = repo_id
        self.private = private
        self.commits: dict[str, Files] = {}
        self.branches: dict[str, str] = {}
        attributes = "".join(f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in LFS_PATTERNS)
        self.add_commit("main", {".gitattributes": StoredFile(attributes.encode(), is_lfs=False)})

    def resolve(self, revision: str) -> tuple[str, Files]:
        sha = self.branches.get(revision.removeprefix("refs/heads/"), revision)
        if sha not in self.commits:
            raise HubError(404, "Invalid rev id", "RevisionNotFound")
        return sha, self.commits[sha]

    def add_commit(self, branch: str, files: Files) -> str:
        state = {path: file.git_oid for path, file in sorted(files.items())}
        history = [self.repo_id, branch, len(self.commits), state]
        sha = hashlib.sha1(json.dumps(history).encode()).hexdigest()
        self.commits[sha] = files
        self.branches[branch] = sha
        return sha


Route = tuple[str, "re.Pattern[str]", bool, Callable[..., Response]]
ROUTES: list[Route] = []
REPO = "(?P<repo_id>[^/]+/[^/]+)"
REVISION = "(?P<revision>[^/]+)"
PATH = "(?P<path>.+)"


def route(method: str, pattern: str, needs_token: bool = False) -> Callable[..., Callable[..., Response]]:
    """Registers a method of `LoopbackHub`: it gets the request and the pattern's groups, unquoted."""

    def register(handle: Callable[..., Response]) -> Callable[..., Response]:
        ROUTES.append((method, re.compile(pattern), needs_token, handle))
        return handle

    return register


class LoopbackHub:
    """The server; `requests` holds everything that was asked, `repositories` what came of it."""

    def __init__(self) -> None:
        self.token = "hf_loopback"
        self.reading_token = "hf_reader"  # may read everything, but not write
        self.requests: list[Request] = []
        self.repositories: dict[str, Repository] = {}
        self.large_files: dict[str, bytes] = {}  # by SHA-256
        self._lock = threading.Lock()
        self._home = tempfile.TemporaryDirectory(prefix="loopback_hub_")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "LoopbackHub":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._home.cleanup()

    def stop(self) -> None:
        """Stops answering; the client's cache (see `environment`) stays until the `with` block ends."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(TIMEOUT)

    def environment(self) -> dict[str, str]:
        """Variables with which another process talks to this Hub only, in a cache of its own."""
        home = Path(self._home.name)
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_TOKEN": self.token,
            "HF_HOME": str(home),
            "HF_HUB_CACHE": str(home / "hub"),
            "HF_MODULES_CACHE": str(home / "modules"),
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "NO_PROXY": "127.0.0.1",
        }

    def answer(self, request: Request) -> Response:
        """Finds the route and answers; one request at a time, so that handlers need not think of threads."""
        try:
            with self._lock:
                response = self._dispatch(request)
        except HubError as error:
            response = Response.of_json({"error": str(error)}, error.status, error.headers)
        except (KeyError, ValueError) as error:
            response = Response.of_json({"error": f"malformed request: {error!r}"}, 400)
        request.status = response.status
        self.requests.append(request)
        return response

    def _dispatch(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        for route_method, pattern, needs_token, handle in ROUTES:
            match = pattern.fullmatch(request.path)
            if match and method == route_method:
                if needs_token and not self._is_authorized(request):
                    raise HubError(401, "Invalid username or password.")
                if needs_token and method != "GET" and self._token(request) == self.reading_token:
                    raise HubError(403, "Forbidden: this token may not write.")
                return handle(self, request, **{name: unquote(text) for name, text in match.groupdict().items()})
        raise HubError(404, f"the loopback Hub does not serve {request.method} {request.path}")

    def _is_authorized(self, request: Request) -> bool:
        return self._token(request) in (self.token, self.reading_token)

    @staticmethod
    def _token(request: Request) -> str:
        return request.headers.get("authorization", "").removeprefix("Bearer ")

    def _repository(self, request: Request, repo_id: str) -> Repository:
        """Without the token a private repository looks like one that does not exist, as on the real Hub."""
        repository = self.repositories.get(repo_id)
        authorized = self._is_authorized(request)
        if repository is None or (repository.private and not authorized):
            raise HubError(404 if authorized else 401, "Repository not found", "RepoNotFound")
        return repository

    # Account and repositories

    @route("GET", "/api/whoami-v2", needs_token=True)
    def whoami(self, request: Request) -> Response:
        return Response.of_json({"type": "user", "name": USER, "orgs": [], "auth": {"type": "access_token"}})

    @route("POST", "/api/validate-yaml")
    def validate_yaml(self, request: Request) -> Response:
        try:
            metadata = _front_matter(request.json()["content"])
        except yaml.YAMLError as error:
            return Response.of_json({"errors": [{"message": str(error)}], "warnings": []}, 400)
        warnings = [] if metadata else [{"message": "empty or missing yaml metadata in repo card"}]
        return Response.of_json({"errors": [], "warnings": warnings})

    @route("POST", "/api/repos/create", needs_token=True)
    def create_repo(self, request: Request) -> Response:
        wanted = request.json()
        if wanted.get("type", "model") != "model":
            raise HubError(400, "the loopback Hub holds model repositories only")
        repo_id = f"{wanted.get('organization') or USER}/{wanted['name']}"
        answer = {"url": f"{self.endpoint}/{repo_id}", "name": repo_id}
        if repo_id in self.repositories:
            return Response.of_json({**answer, "error": "You already created this model repo"}, 409)
        self.repositories[repo_id] = Repository(repo_id, private=wanted.get("visibility") == "private")
        return Response.of_json(answer)

    @route("POST", f"/api/models/{REPO}/branch/(?P<branch>[^/]+)", needs_token=True)
    def create_branch(self, request: Request, repo_id: str, branch: str) -> Response:
        repository = self._repository(request, repo_id)
        if branch in repository.branches:
            raise HubError(409, "Reference already exists")
        sha, _ = repository.resolve(request.json().get("startingPoint", "main"))
        repository.branches[branch] = sha
        return Response.of_json({"success": True})

    # Upload

    @route("POST", f"/api/models/{REPO}/preupload/{REVISION}", needs_token=True)
    def preupload(self, request: Request, repo_id: str, revision: str) -> Response:
        _, files = self._repository(request, repo_id).resolve(revision)
        answers = []
        for file in request.json()["files"]:
            by_name = any(fnmatch(file["path"], pattern) for pattern in LFS_PATTERNS)
            by_content = file["size"] > LARGEST_REGULAR_FILE or b"\0" in base64.b64decode(file["sample"])
            answer = {"path": file["path"], "uploadMode": "lfs" if by_name or by_content else "regular"}
            known = {"oid": files[file["path"]].etag} if file["path"] in files else {}
            answers.append({**answer, "shouldIgnore": False, **known})
        return Response.of_json({"files": answers})

    @route("POST", f"/{REPO}[.]git/info/lfs/objects/batch", needs_token=True)
    def lfs_batch(self, request: Request, repo_id: str) -> Response:
        self._repository(request, repo_id)
        objects = [{"oid": item["oid"], "size": item["size"]} for item in request.json()["objects"]]
        for item in objects:
            if item["oid"] not in self.large_files:
                upload = {"href": f"{self.endpoint}/lfs/{item['oid']}"}
                verify = {"href": f"{self.endpoint}/{repo_id}.git/info/lfs/objects/verify"}
                item["actions"] = {"upload": upload, "verify": verify}
        return Response.of_json({"transfer": "basic", "objects": objects})

    @route("PUT", "/lfs/(?P<oid>[0-9a-f]{64})")
    def lfs_put(self, request: Request, oid: str) -> Response:
        if hashlib.sha256(request.body).hexdigest() != oid:
            raise HubError(400, f"the content does not have the SHA-256 {oid}")
        self.large_files[oid] = request.body
        return Response()

    @route("POST", f"/{REPO}[.]git/info/lfs/objects/verify", needs_token=True)
    def lfs_verify(self, request: Request, repo_id: str) -> Response:
        wanted = request.json()
        if len(self.large_files[wanted["oid"]]) != wanted["size"]:
            raise HubError(400, f"the object {wanted['oid']} does not have {wanted['size']} bytes")
        return Response.of_json({"message": "Verified"})

    @route("POST", f"/api/models/{REPO}/commit/{REVISION}", needs_token=True)
    def commit(self, request: Request, repo_id: str, revision: str) -> Response:
        repository = self._repository(request, repo_id)
        parent, files = repository.resolve(revision)
        files = dict(files)
        for line in request.body.splitlines():
            operation = json.loads(line)
            self._apply(operation["key"], operation["value"], files, parent)
        sha = repository.add_commit(revision, files)
        url = f"{self.endpoint}/{repo_id}/commit/{sha}"
        return Response.of_json({"success": True, "commitOid": sha, "commitUrl": url, "hookOutput": ""})

    def _apply(self, key: str, value: Json, files: Files, parent: str) -> None:
        """Changes `files` by one line of a commit."""
        if key == "header":
            if not parent.startswith(value.get("parentCommit", "")):
                raise HubError(412, "A commit has happened since. Please refresh and try again.")
        elif key == "file":
            files[value["path"]] = StoredFile(base64.b64decode(value["content"]), is_lfs=False)
        elif key == "lfsFile":
            files[value["path"]] = StoredFile(self.large_files[value["oid"]], is_lfs=True)
        elif key in ("deletedFile", "deletedFolder"):
            folder = value["path"].rstrip("/") + "/"
            inside = [path for path in files if path.startswith(folder)]
            deleted = inside if key == "deletedFolder" else [value["path"]]
            if not deleted or not files.keys() >= set(deleted):
                raise HubError(404, "A file with this name doesn't exist", "EntryNotFound")
            for path in deleted:
                del files[path]
        else:
            raise HubError(400, f"unknown commit operation {key!a}")

    # Reading

    @route("GET", f"/api/models/{REPO}")
    @route("GET", f"/api/models/{REPO}/revision/{REVISION}")
    def model_info(self, request: Request, repo_id: str, revision: str = "main") -> Response:
        repository = self._repository(request, repo_id)
        sha, files = repository.resolve(revision)
        card = _front_matter(files["README.md"].content.decode()) if "README.md" in files else {}
        with_blobs = request.flag("blobs")
        siblings = [f.entry(path) if with_blobs else {"rfilename": path} for path, f in sorted(files.items())]
        identity = {"_id": repo_id, "id": repo_id, "modelId": repo_id, "author": repo_id.split("/")[0], "sha": sha}
        from_card = {name: card[name] for name in ("pipeline_tag", "library_name") if name in card}
        state = {"private": repository.private, "gated": False, "disabled": False, "downloads": 0, "likes": 0}
        lists = {"tags": card.get("tags", []), "cardData": card, "siblings": siblings}
        return Response.of_json({**identity, **from_card, **state, **lists})

    @route("GET", f"/api/models/{REPO}/tree/{REVISION}")
    @route("GET", f"/api/models/{REPO}/tree/{REVISION}/{PATH}")
    def tree(self, request: Request, repo_id: str, revision: str, path: str = "") -> Response:
        sha, files = self._repository(request, repo_id).resolve(revision)
        inside = f"{path}/" if path else ""
        listed = [file.entry(name) for name, file in sorted(files.items()) if name.startswith(inside)]
        if path and not listed:
            raise HubError(404, "Entry not found", "EntryNotFound", {"X-Repo-Commit": sha})
        return Response.of_json(listed)

    @route("GET", f"/{REPO}/resolve/{REVISION}/{PATH}")
    def resolve(self, request: Request, repo_id: str, revision: str, path: str) -> Response:
        sha, files = self._repository(request, repo_id).resolve(revision)
        if path not in files:
            raise HubError(404, "Entry not found", "EntryNotFound", {"X-Repo-Commit": sha})
        file = files[path]
        headers = {"X-Repo-Commit": sha, "ETag": f'"{file.etag}"', "Content-Type": "application/octet-stream"}
        if file.is_lfs:
            headers |= {"X-Linked-ETag": f'"{file.sha256}"', "X-Linked-Size": str(len(file.content))}
        return Response(file.content, headers=headers)


def _front_matter(card: str) -> Json:
    block = re.match(r"---\r?\n(.*?)\r?\n---", card, re.DOTALL)
    return yaml.safe_load(block[1]) if block else {}


class _Handler(BaseHTTPRequestHandler):
    """Carries requests to the hub and answers back; one connection each (HTTP/1.0)."""

    timeout = TIMEOUT

    def __init__(self, hub: LoopbackHub, *args: Any):
        self._hub = hub
        super().__init__(*args)

    def _serve(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, url.path, parse_qs(url.query), headers, body)
        response = self._hub.answer(request)
        self.send_response(response.status)
        for name, value in {**response.headers, "Content-Length": str(len(response.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    do_GET = do_HEAD = do_POST = do_PUT = _serve  # noqa: N815 (names given by http.server)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: `LoopbackHub.requests` is the log."""


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as running:
        yield running


@pytest.fixture
def online(hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LoopbackHub:
    """The Hub with this process, where the other tests are offline, as its client."""
    cache = {"HF_HUB_CACHE": str(tmp_path / "hub_cache")}
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.endpoint)
    address = {"ENDPOINT": hub.endpoint, "HUGGINGFACE_CO_URL_TEMPLATE": template}
    for name, value in {**address, **cache, "HF_HUB_OFFLINE": False, "HF_HUB_DISABLE_XET": True}.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setattr("transformers.utils.hub._hf_api", None)  # else the client of the Hub that was there before
    monkeypatch.setenv("HF_TOKEN", hub.token)
    return hub
