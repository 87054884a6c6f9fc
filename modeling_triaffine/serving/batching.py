"""Dynamic batching: requests that arrive while a batch runs form the next one. One thread owns the model; no HTTP here.

No request waits for others to arrive: an idle model starts at once, a busy one then takes all that have queued up.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)

# The entities of each text, as the pipeline returns them.
Answers = list[list[dict[str, Any]]]


class Decoding(NamedTuple):
    """Decoding options, see [`NestedNERPipeline`]; only requests with the same options run together."""

    threshold: float | None = None
    overlap: str = "all"


class QueueFullError(Exception):
    """The queue is full."""


class GivenUpError(Exception):
    """The server has stopped waiting for results."""


@dataclass(eq=False)
class Job:
    """The texts of one request, which are never split, and the future of their entities."""

    texts: Sequence[str]
    decoding: Decoding
    future: Future[Answers] = field(default_factory=Future)

    @property
    def characters(self) -> int:
        return sum(map(len, self.texts))


class Batcher:
    """Runs jobs through a pipeline in its own thread, batched with those that arrived while it was busy.

    A context manager: on exit it finishes the jobs that were submitted and not cancelled, then ends the thread.

    Args:
        find_entities: [`NestedNERPipeline`], called as `find_entities(texts, threshold=…, overlap=…)`.
        max_batch_texts, max_batch_characters: Limits of a batch, which is filled in the order of arrival. A larger job
            runs alone.
        max_waiting: Length of the queue.
    """

    def __init__(
        self,
        find_entities: Callable[..., Answers],
        max_batch_texts: int,
        max_batch_characters: int,
        max_waiting: int,
    ):
        self.max_batch_texts = max_batch_texts
        self.max_batch_characters = max_batch_characters
        self.max_waiting = max_waiting
        self._find_entities = find_entities
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._given_up = False
        self._thread = threading.Thread(target=self._work, name="batcher")

    def __enter__(self) -> "Batcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def give_up(self) -> None:
        """Aborts the running jobs before the model's next forward pass, and all waiting ones."""
        self._given_up = True

    def check(self, *_: object) -> None:
        """Raises GivenUpError after [`give_up`]; register it as a forward pre-hook of the model."""
        if self._given_up:
            raise GivenUpError

    @property
    def num_waiting(self) -> int:
        """The number of waiting jobs, without the running ones."""
        return len(self._waiting)

    def submit(self, texts: Sequence[str], decoding: Decoding) -> Future[Answers]:
        """Queues the texts of one request; a future cancelled before its batch starts is not run.

        Raises:
            QueueFullError: `max_waiting` jobs are waiting.
        """
        job = Job(texts, decoding)
        with self._changed:
            if len(self._waiting) >= self.max_waiting:
                raise QueueFullError(f"The queue is full (limit: {self.max_waiting}).")
            self._waiting.append(job)
            self._changed.notify()
        return job.future

    def _work(self) -> None:
        while batch := self._take_batch():
            by_decoding: dict[Decoding, list[Job]] = {}
            for job in batch:
                if job.future.set_running_or_notify_cancel():
                    by_decoding.setdefault(job.decoding, []).append(job)
            for jobs in by_decoding.values():
                self._run(jobs)

    def _take_batch(self) -> list[Job]:
        """Waits for jobs and takes those of the next batch; none once the batcher is closed and the queue empty."""
        batch: list[Job] = []
        texts = characters = 0
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            while self._waiting:
                job = self._waiting[0]
                texts += len(job.texts)
                characters += job.characters
                if batch and (texts > self.max_batch_texts or characters > self.max_batch_characters):
                    break
                batch.append(self._waiting.popleft())
        return batch

    def _run(self, jobs: list[Job]) -> None:
        """Runs jobs with the same options together; if that fails, one by one, so that only the faulty one fails."""
        texts = [text for job in jobs for text in job.texts]
        try:
            found = iter(self._find_entities(texts, **jobs[0].decoding._asdict()))
        except GivenUpError as error:
            for job in jobs:
                job.future.set_exception(error)
            return
        except Exception as error:
            if len(jobs) > 1:
                for job in jobs:
                    self._run([job])
                return
            logger.exception("The model failed on a request of %d texts.", len(texts))
            jobs[0].future.set_exception(error)
            return
        for job in jobs:
            job.future.set_result(list(islice(found, len(job.texts))))
