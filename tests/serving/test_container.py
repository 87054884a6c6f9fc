"""The container of `examples/endpoint`, without a container: its files, and its commands in this environment."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.helpers.processes import free_port
from tests.helpers.served_model import TEXTS, WAIT
from tests.test_distribution import REPOSITORY, SOURCES


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """The name and the rest of each instruction."""
    text = (REPOSITORY / "examples" / "endpoint" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def test_it_copies_what_the_wheel_is_built_from_and_installs_the_extra(instructions):
    copied = [name for instruction, rest in instructions if instruction == "COPY" for name in rest.split()[:-1]]
    assert {*copied} == {*SOURCES}
    assert any("pip install" in rest and '".[serve]"' in rest for _, rest in instructions)


def test_it_serves_the_model_tells_its_health_and_stops(instructions, model):
    rest = dict(instructions)
    variables = dict(pair.split("=") for pair in rest["ENV"].split())
    assert {*variables} == {"MODEL", "PORT"}
    assert rest["EXPOSE"] == variables["PORT"]
    variables = {"MODEL": model, "PORT": str(free_port())}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **variables, "PATH": path, "HF_HUB_OFFLINE": "1"}
    health = json.loads(rest["HEALTHCHECK"].partition("CMD ")[2])
    # Tests listen on this machine only.
    command = [part.replace("--host 0.0.0.0", "--host 127.0.0.1") for part in json.loads(rest["CMD"])]
    asked = {"env": environment, "capture_output": True, "timeout": WAIT, "check": False}
    assert subprocess.run(health, **asked).returncode != 0
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().split()[-1]
            assert url.endswith(f":{variables['PORT']}")
            assert subprocess.run(health, **asked).returncode == 0
            request = Request(url, json.dumps({"inputs": TEXTS[0]}).encode(), {"Content-Type": "application/json"})
            with urlopen(request, timeout=WAIT) as answer:
                assert json.load(answer)
            server.terminate()
            assert server.wait(WAIT) == 0
        finally:
            server.kill()
