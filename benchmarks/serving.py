"""Requests a second of `triaffine-ner serve`, one client and many, with batching and without; and how it stops.

    python benchmarks/serving.py --model outputs/demo/model --long_seconds 60

The server is a process of its own, the clients are threads of this one, on connections that they keep; a request is a
sentence. Every answer is compared with the one that a lone request got: the entities must be the same, the scores may
differ by TOLERANCE. The settings take turns, so that what else the machine does meets them alike; a row gives the
median of its rounds. `cpu_milliseconds` is what a request costs the server, which other work on the machine changes
little. The row SIGTERM is of servers that are told to stop while all clients wait for answers.
"""

import argparse
import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil  # comes with accelerate
from measuring import Rows, read_corpus, texts_of

TOLERANCE = 1e-5  # of a probability, in float32
TIMEOUT = 120  # seconds
SECONDS_BEFORE_STOP = 1.0
MAIN = "from modeling_triaffine.commands import main; main()"
ONE_AT_A_TIME = f"""
from modeling_triaffine import serving
serving.Batcher.max_texts = 1
{MAIN}
"""

Entities = list[dict[str, Any]]


class Asked(NamedTuple):
    """A request: when it began and ended (seconds of a clock), and how it went."""

    start: float
    end: float
    difference: float = 0.0
    error: str | None = None


class Round(NamedTuple):
    asked: list[Asked]
    cpu_seconds: float  # of the server


def main() -> None:
    arguments = parse_arguments()
    rows = Rows("requests a second to triaffine-ner serve")
    texts = texts_of(read_corpus(arguments.data, "test"), arguments.max_samples)
    clients = arguments.clients
    with run_server(arguments.model) as together, run_server(arguments.model, program=ONE_AT_A_TIME) as one_at_a_time:
        expected = {text: ask_once(together.url, text) for text in texts}
        settings = {
            "one client": (together, 1),
            "many clients": (together, clients),
            "many clients, batching off": (one_at_a_time, clients),
        }
        rounds: dict[str, list[Round]] = {name: [] for name in settings}
        for _ in range(arguments.repeats):
            for name, (server, count) in settings.items():
                rounds[name].append(load_for(arguments.seconds, server, count, expected))
        for name, (_, count) in settings.items():
            rows.add(setting=name, clients=count, **summarize(rounds[name]))
        if arguments.long_seconds:
            long = load_for(arguments.long_seconds, together, clients, expected)
            rows.add(setting="many clients, long", clients=clients, **summarize([long]))
    stops = [stop_under_load(ServerProcess(arguments.model), clients, expected) for _ in range(arguments.repeats)]
    rows.add(setting="SIGTERM", clients=clients, stops=stops)
    rows.write(arguments.output)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="Folder or Hub name of a trained model.")
    parser.add_argument("--data", help="Corpus file or folder, the first split of it; default: the demo corpus, test.")
    parser.add_argument("--max_samples", type=int, default=150, help="Sentences that are read.")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0, help="Of a round.")
    parser.add_argument("--repeats", type=int, default=3, help="Rounds of each setting, and stops.")
    parser.add_argument("--long_seconds", type=float, default=0.0, help="Of one more round with all clients.")
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


# ---- the server


class ServerProcess:
    """A server that answers; `stop` sends it SIGTERM and gives its exit code."""

    def __init__(self, model: str, *options: str, program: str = MAIN):
        command = [sys.executable, "-c", program, "serve", "--model", model, "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip().rpartition(" at ")[2]
        if not self.url:
            raise SystemExit("The server did not start.")

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(TIMEOUT)


@contextlib.contextmanager
def run_server(model: str, *options: str, program: str = MAIN) -> Iterator[ServerProcess]:
    server = ServerProcess(model, *options, program=program)
    try:
        yield server
    finally:
        server.stop()


# ---- a request


def connect(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT)


def ask(connection: http.client.HTTPConnection, text: str) -> Entities:
    """Raises ValueError for an answer other than 200, OSError or http.client.HTTPException when there is none."""
    connection.request("POST", "/predict", json.dumps({"text": text}), {"Content-Type": "application/json"})
    response = connection.getresponse()
    body = response.read()
    if response.status != http.HTTPStatus.OK:
        raise ValueError(f"status {response.status}: {body.decode()}")
    return json.loads(body)["entities"]


def ask_once(url: str, text: str) -> Entities:
    with contextlib.closing(connect(url)) as connection:
        return ask(connection, text)


def largest_difference(found: Entities, expected: Entities) -> float:
    """Of the scores. Raises ValueError when the answers differ in more than TOLERANCE of a score."""
    without_scores = [[{**entity, "score": None} for entity in entities] for entities in (found, expected)]
    if without_scores[0] != without_scores[1]:
        raise ValueError(f"{found} instead of {expected}")
    differences = [abs(one["score"] - other["score"]) for one, other in zip(found, expected, strict=True)]
    if max(differences, default=0.0) > TOLERANCE:
        raise ValueError(f"scores differ by {max(differences)}")
    return max(differences, default=0.0)


# ---- many requests


def load_for(seconds: float, server: ServerProcess, clients: int, expected: dict[str, Entities]) -> Round:
    """All requests of clients that begin one each, and none more after that time."""
    end = time.perf_counter() + seconds
    cpu_seconds = server.cpu_seconds()
    asked, wait = start_clients(server.url, clients, expected, is_over=lambda: time.perf_counter() >= end)
    wait()
    return Round(asked, server.cpu_seconds() - cpu_seconds)


def start_clients(
    url: str, clients: int, expected: dict[str, Entities], is_over: Callable[[], bool]
) -> tuple[list[Asked], Callable[[], None]]:
    """Clients that ask for one text after the other until it is over, or a request fails.

    Returns the list that their requests are appended to, and what waits for their end.
    """
    asked: list[Asked] = []
    texts = list(expected)

    def run_client(number: int) -> None:
        with contextlib.closing(connect(url)) as connection:
            for text in islice(cycle(texts), number * len(texts) // clients, None):
                start = time.perf_counter()
                try:
                    difference = largest_difference(ask(connection, text), expected[text])
                except (ValueError, OSError, http.client.HTTPException) as error:
                    asked.append(Asked(start, time.perf_counter(), error=repr(error)))
                    return
                asked.append(Asked(start, time.perf_counter(), difference))
                if is_over():
                    return

    threads = [threading.Thread(target=run_client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()

    def wait() -> None:
        for thread in threads:
            thread.join()

    return asked, wait


def summarize(rounds: list[Round]) -> dict[str, Any]:
    """Rates, latencies and costs: the median of the rounds."""
    rates, costs, latencies = [], [], []
    for asked, cpu_seconds in rounds:
        seconds = max(one.end for one in asked) - min(one.start for one in asked)
        rates.append(len(asked) / seconds)
        costs.append(cpu_seconds / len(asked))
        latencies.append(statistics.quantiles([one.end - one.start for one in asked], n=20))
    return {
        "requests": sum(len(asked) for asked, _ in rounds),
        "requests_a_second": round(statistics.median(rates), 1),
        "rounds": [round(rate, 1) for rate in rates],
        "cpu_milliseconds": round(1000 * statistics.median(costs), 2),
        "milliseconds": round(1000 * statistics.median(cuts[9] for cuts in latencies), 1),
        "milliseconds_95": round(1000 * statistics.median(cuts[18] for cuts in latencies), 1),
        **check([one for asked, _ in rounds for one in asked]),
    }


def check(asked: list[Asked]) -> dict[str, Any]:
    return {
        "largest_score_difference": max(one.difference for one in asked),
        "errors": [one.error for one in asked if one.error],
    }


def stop_under_load(server: ServerProcess, clients: int, expected: dict[str, Entities]) -> dict[str, Any]:
    """Of the requests that had begun when SIGTERM was sent, how many were answered."""
    asked, wait = start_clients(server.url, clients, expected, is_over=lambda: False)
    time.sleep(SECONDS_BEFORE_STOP)
    stopped = time.perf_counter()
    code = server.stop()
    seconds = time.perf_counter() - stopped
    wait()
    in_flight = [one for one in asked if one.start <= stopped < one.end]
    return {
        "in_flight": len(in_flight),
        **check(in_flight),
        "exit_code": code,
        "seconds": round(seconds, 2),
    }


if __name__ == "__main__":
    main()
