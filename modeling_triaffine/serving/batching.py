"""Dynamic batching: requests that arrive while a batch runs form the next one. One thread owns the model.

No request waits for others to arrive: an idle model starts at once, a busy one takes all waiting requests next.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, NamedTuple

from ..model.decoding_triaffine import FoundInText, Threshold
from ..model.kinds_triaffine import TextEntity
from ..model.options_triaffine import PredictionOptions

logger = logging.getLogger(__name__)

# The entities of each text.
Answers = list[list[TextEntity]]


class Item(NamedTuple):
    """A text with its options, see [`NestedNERPipeline`]; items with equal thresholds run together.

    labels: The labels to keep, before overlaps are resolved; None: all.
    """

    text: str
    threshold: Threshold | None = None
    overlap: str = PredictionOptions.overlap
    labels: Collection[str] | None = None

    def kept(self, found: FoundInText) -> list[TextEntity]:
        return found.in_characters(self.text, self.overlap, self.labels)


class QueueFullError(Exception):
    """The queue is full."""


class GivenUpError(Exception):
    """Nobody waits for the results any longer."""


class Job(NamedTuple):
    """The items of one request, which run in one batch, and the future of their entities."""

    items: Sequence[Item]
    future: Future[Answers]


class Batcher:
    """Runs jobs through a pipeline in a thread of its own, in batches of those that arrived while it was busy.

    A context manager: on exit it finishes all jobs that are not cancelled, then ends the thread.

    Args:
        find_entities: [`NestedNERPipeline`], called as `find_entities(texts, threshold=…, in_words=True)`.
        max_batch_texts, max_batch_characters: Limits of a batch, which is filled in order of arrival. A larger job runs
            alone.
        max_waiting: Length of the queue.
    """

    def __init__(
        self,
        find_entities: Callable[..., list[FoundInText]],
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
        self._running: set[Future[Answers]] | None = None  # those that are still waited for
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

    def leave(self, answer: Future[Answers]) -> None:
        """Nobody waits for this answer any longer: if so for all of a batch, it ends at the next forward pass."""
        answer.cancel()
        if (running := self._running) is not None:
            running.discard(answer)

    def check(self, *_: object) -> None:
        """Raises GivenUpError if the batch is not to go on; register it as a forward pre-hook of the model."""
        if self._given_up or self._running == set():
            raise GivenUpError

    @property
    def is_alive(self) -> bool:
        """Whether the thread of the model runs."""
        return self._thread.is_alive()

    @property
    def num_waiting(self) -> int:
        """The number of waiting jobs, counting neither running ones nor those whose clients have gone."""
        with self._changed:
            return sum(not job.future.cancelled() for job in self._waiting)

    def submit(self, items: Sequence[Item]) -> Future[Answers]:
        """Queues the items of one request, which do not run if they are [left][Batcher.leave] before their turn.

        Raises:
            QueueFullError: `max_waiting` jobs are waiting.
        """
        job = Job(items, Future())
        with self._changed:
            if len(self._waiting) >= self.max_waiting:  # clients that have gone do not count
                self._waiting = deque(job for job in self._waiting if not job.future.cancelled())
            if len(self._waiting) >= self.max_waiting:
                raise QueueFullError(f"The queue is full (limit: {self.max_waiting}).")
            self._waiting.append(job)
            self._changed.notify()
        return job.future

    def _work(self) -> None:
        while batch := self._take_batch():
            if jobs := [job for job in batch if job.future.set_running_or_notify_cancel()]:
                self._run(jobs)

    def _take_batch(self) -> list[Job]:
        """Waits for jobs and takes those of the next batch; none if the batcher is closed and the queue empty."""
        batch: list[Job] = []
        texts = characters = 0
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            while self._waiting:
                job = self._waiting[0]
                texts += len(job.items)
                characters += sum(len(item.text) for item in job.items)
                if batch and (texts > self.max_batch_texts or characters > self.max_batch_characters):
                    break
                batch.append(self._waiting.popleft())
        return batch

    def _run(self, jobs: list[Job]) -> None:
        """Runs jobs together; if that fails, one by one, so that only the faulty one fails."""
        items = [item for job in jobs for item in job.items]
        self._running = {job.future for job in jobs}
        try:
            found = iter(self._find(items))
        except GivenUpError as error:
            for job in jobs:
                job.future.set_exception(error)
            return
        except BaseException as error:  # a panic of Rust code is no Exception, and must not end the thread
            if len(jobs) > 1:
                for job in jobs:
                    self._run([job])
                return
            logger.exception("The model failed on a request of %d texts.", len(items))
            jobs[0].future.set_exception(error)
            return
        finally:
            self._running = None
        for job in jobs:
            job.future.set_result(list(islice(found, len(job.items))))

    def _find(self, items: Sequence[Item]) -> Answers:
        """The entities of each item, with one call of the pipeline per distinct threshold."""
        by_threshold: dict[Any, list[int]] = {}
        for number, item in enumerate(items):
            given = item.threshold
            key = frozenset(given.items()) if isinstance(given, Mapping) else given
            by_threshold.setdefault(key, []).append(number)
        found: Answers = [[] for _ in items]
        for numbers in by_threshold.values():
            texts = [items[number].text for number in numbers]
            in_words = self._find_entities(texts, threshold=items[numbers[0]].threshold, in_words=True)
            for number, of_text in zip(numbers, in_words, strict=True):
                found[number] = items[number].kept(of_text)
        return found
