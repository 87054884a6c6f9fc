"""A Hugging Face Hub on the loopback interface: what the real client needs to publish and load a model.

    with LoopbackHub() as hub:
        hub.api.create_repo("user/name")

Model repositories live in memory; every commit keeps its state under its own sha. Routes and responses are those that
`huggingface_hub` 2.x calls and reads (`hf_api.py`, `_commit_api.py`, `file_download.py`), and errors carry the Hub's
`X-Error-Code`, so that the client raises its own exceptions. Not here: folders, data sets, Spaces, pull requests, tags,
transfer of large files, ranges and pages. A request outside of that gets a 404 which names it.
"""

import base64
import hashlib
import json
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml  # comes with huggingface_hub
from huggingface_hub import HfApi, constants
from huggingface_hub.utils.sha import git_hash

USER = "tester"
TIMEOUT = 10  # seconds, of a connection and of the shutdown

Json = dict[str, Any]
Files = dict[str, bytes]  # by path


class HubError(Exception):
    """A response other than success; `code` becomes the header from which the client chooses its exception."""

    def __init__(self, status: int, message: str, code: str = "", headers: dict[str, str] | None = None, **fields: str):
        super().__init__(message)
        self.status, self.fields = status, fields
        self.headers = {"X-Error-Message": message, "X-Error-Code": code, **(headers or {})}


class Repository:
    """The states of one repository by commit sha, and the branches that point at them."""

    def __init__(self, repo_id: str, private: bool):
        self.repo_id = repo_id
        self.private = private
        self.commits: dict[str, Files] = {}
        self.branches: dict[str, str] = {}
        self.add_commit("main", {".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"})

    def resolve(self, revision: str) -> tuple[str, Files]:
        sha = self.branches.get(revision.removeprefix("refs/heads/"), revision)
        if sha not in self.commits:
            raise HubError(404, "Invalid rev id", "RevisionNotFound")
        return sha, self.commits[sha]

    def add_commit(self, branch: str, files: Files) -> str:
        sha = hashlib.sha1(f"{self.repo_id} {len(self.commits)}".encode()).hexdigest()
        self.commits[sha] = files
        self.branches[branch] = sha
        return sha


ROUTES: list[tuple[str, "re.Pattern[str]", bool, Callable[..., Any]]] = []
REPO = "(?P<repo_id>[^/]+/[^/]+)"
REVISION = "(?P<revision>[^/]+)"
PATH = "(?P<path>.+)"


def route(method: str, pattern: str, needs_token: bool = False) -> Callable[..., Callable[..., Any]]:
    """Registers a method of `LoopbackHub`: it gets the request and the pattern's groups, unquoted."""

    def register(handle: Callable[..., Any]) -> Callable[..., Any]:
        ROUTES.append((method, re.compile(pattern), needs_token, handle))
        return handle

    return register


class LoopbackHub:
    """The server; `requests` lists methods and paths of all requests.

    A pair (part of a path, status) in `faults` is the fate of the next such request: an error of this status, or with 0
    no answer, though the request has been served.
    """

    def __init__(self) -> None:
        self.token = "hf_loopback"
        self.reading_token = "hf_reader"  # may read everything, but not write
        self.requests: list[str] = []
        self.faults: list[tuple[str, int]] = []
        self.repositories: dict[str, Repository] = {}
        self._lock = threading.Lock()
        self._home = tempfile.TemporaryDirectory(prefix="loopback_hub_")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Request)
        self._server.hub = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.api = HfApi(endpoint=self.endpoint, token=self.token)

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
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"),
        }

    def respond(self, request: "Request") -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; one request at a time, so that handlers need not be thread-safe."""
        status, headers = 200, {"Content-Type": "application/json"}
        fate = next((fault for fault in self.faults if fault[0] in request.place), None)
        if fate is not None:
            self.faults.remove(fate)
            if fate[1]:
                return fate[1], {"Retry-After": "0"}, b"{}"
        try:
            with self._lock:
                self.requests.append(f"{request.command} {request.place}")
                content = self._dispatch(request)
        except HubError as error:
            status, content = error.status, {"error": str(error), **error.fields}
            headers |= error.headers
        except (KeyError, ValueError, yaml.YAMLError) as error:
            status, content = 400, {"error": f"malformed request: {error!r}"}
        if fate is not None:
            return 0, {}, b""
        if isinstance(content, tuple):  # a file
            headers, body = content
            return status, headers, body
        return status, headers, json.dumps(content).encode()

    def _dispatch(self, request: "Request") -> Any:
        method = "GET" if request.command == "HEAD" else request.command
        for route_method, pattern, needs_token, handle in ROUTES:
            match = pattern.fullmatch(request.place)
            if match and method == route_method:
                if needs_token and not self._is_authorized(request):
                    raise HubError(401, "Invalid username or password.")
                if needs_token and method != "GET" and request.token == self.reading_token:
                    raise HubError(403, "Forbidden: this token may not write.")
                return handle(self, request, **{name: unquote(text) for name, text in match.groupdict().items()})
        raise HubError(404, f"the loopback Hub does not serve {request.command} {request.place}")

    def _is_authorized(self, request: "Request") -> bool:
        return request.token in (self.token, self.reading_token)

    def _repository(self, request: "Request", repo_id: str) -> Repository:
        """Without the token a private repository looks like one that does not exist, as on the real Hub."""
        repository = self.repositories.get(repo_id)
        authorized = self._is_authorized(request)
        if repository is None or (repository.private and not authorized):
            raise HubError(404 if authorized else 401, "Repository not found", "RepoNotFound")
        return repository

    # Account and repositories

    @route("GET", "/api/whoami-v2", needs_token=True)
    def whoami(self, request: "Request") -> Json:
        return {"type": "user", "name": USER, "orgs": [], "auth": {"type": "access_token"}}

    @route("POST", "/api/validate-yaml")
    def validate_yaml(self, request: "Request") -> Json:
        _front_matter(json.loads(request.body)["content"])
        return {"errors": [], "warnings": []}

    @route("POST", "/api/repos/create", needs_token=True)
    def create_repo(self, request: "Request") -> Json:
        wanted = json.loads(request.body)
        if wanted.get("type", "model") != "model":
            raise HubError(400, "the loopback Hub holds model repositories only")
        repo_id = f"{wanted.get('organization') or USER}/{wanted['name']}"
        url = f"{self.endpoint}/{repo_id}"
        if repo_id in self.repositories:
            raise HubError(409, "You already created this model repo", url=url)
        self.repositories[repo_id] = Repository(repo_id, private=wanted.get("visibility") == "private")
        return {"url": url}

    @route("POST", f"/api/models/{REPO}/branch/(?P<branch>[^/]+)", needs_token=True)
    def create_branch(self, request: "Request", repo_id: str, branch: str) -> Json:
        repository = self._repository(request, repo_id)
        if branch in repository.branches:
            raise HubError(409, "Reference already exists")
        repository.branches[branch], _ = repository.resolve(json.loads(request.body).get("startingPoint", "main"))
        return {"success": True}

    # Upload

    @route("POST", f"/api/models/{REPO}/preupload/{REVISION}", needs_token=True)
    def preupload(self, request: "Request", repo_id: str, revision: str) -> Json:
        """Every file may come within the commit; of a file that is there already, the client compares the oid."""
        _, files = self._repository(request, repo_id).resolve(revision)
        paths = [file["path"] for file in json.loads(request.body)["files"]]
        known = {path: {"oid": git_hash(files[path])} if path in files else {} for path in paths}
        mode = {"uploadMode": "regular", "shouldIgnore": False}
        return {"files": [{"path": path, **mode, **known[path]} for path in paths]}

    @route("POST", f"/api/models/{REPO}/commit/{REVISION}", needs_token=True)
    def commit(self, request: "Request", repo_id: str, revision: str) -> Json:
        repository = self._repository(request, repo_id)
        parent, files = repository.resolve(revision)
        files = dict(files)
        for line in request.body.splitlines():
            operation = json.loads(line)
            self._apply(operation["key"], operation["value"], files, parent)
        sha = repository.add_commit(revision, files)
        return {"success": True, "commitOid": sha, "commitUrl": f"{self.endpoint}/{repo_id}/commit/{sha}"}

    def _apply(self, key: str, value: Json, files: Files, parent: str) -> None:
        """Changes `files` by one line of a commit."""
        if key == "header":
            if not parent.startswith(value.get("parentCommit", "")):
                raise HubError(412, "A commit has happened since. Please refresh and try again.")
        elif key == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif key == "deletedFile":
            if files.pop(value["path"], None) is None:
                raise HubError(404, "A file with this name doesn't exist", "EntryNotFound")
        else:
            raise HubError(400, f"unknown commit operation {key!a}")

    # Reading

    @route("GET", f"/api/models/{REPO}")
    @route("GET", f"/api/models/{REPO}/revision/{REVISION}")
    def model_info(self, request: "Request", repo_id: str, revision: str = "main") -> Json:
        repository = self._repository(request, repo_id)
        sha, files = repository.resolve(revision)
        card = _front_matter(files.get("README.md", b"").decode())
        from_card = {name: card[name] for name in ("pipeline_tag", "library_name", "tags") if name in card}
        siblings = [{"rfilename": path} for path in sorted(files)]
        return {"id": repo_id, "sha": sha, "private": repository.private, "siblings": siblings, **from_card}

    @route("GET", f"/api/models/{REPO}/tree/{REVISION}")
    @route("GET", f"/api/models/{REPO}/tree/{REVISION}/{PATH}")
    def tree(self, request: "Request", repo_id: str, revision: str, path: str = "") -> list[Json]:
        sha, files = self._repository(request, repo_id).resolve(revision)
        inside = {name: content for name, content in sorted(files.items()) if not path or name.startswith(f"{path}/")}
        if not inside:
            raise HubError(404, "Entry not found", "EntryNotFound", {"X-Repo-Commit": sha})
        return [
            {"type": "file", "path": name, "oid": git_hash(content), "size": len(content)}
            for name, content in inside.items()
        ]

    @route("GET", f"/{REPO}/resolve/{REVISION}/{PATH}")
    def resolve(self, request: "Request", repo_id: str, revision: str, path: str) -> tuple[dict[str, str], bytes]:
        sha, files = self._repository(request, repo_id).resolve(revision)
        if path not in files:
            raise HubError(404, "Entry not found", "EntryNotFound", {"X-Repo-Commit": sha})
        return {"X-Repo-Commit": sha, "ETag": f'"{git_hash(files[path])}"'}, files[path]


def _front_matter(card: str) -> Json:
    block = re.match(r"---\r?\n(.*?)\r?\n---", card, re.DOTALL)
    return (yaml.safe_load(block[1]) if block else None) or {}


class Request(BaseHTTPRequestHandler):
    """A request, which the hub answers; one connection each (HTTP/1.0)."""

    timeout = TIMEOUT

    def _serve(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.place = urlsplit(self.path).path  # still quoted: an encoded "/" belongs to a name
        status, headers, body = self.server.hub.respond(self)
        if not status:
            return
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = _serve  # noqa: N815 (names given by http.server)

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
