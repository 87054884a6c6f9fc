"""Dynamic batching: texts that arrive while a batch runs form the next one. One thread owns the model.

No text waits for others to arrive: an idle model starts at once. Requests share the model fairly, by characters (fair
queueing), and short ones run between two forward passes of a long batch.
"""

import contextlib
import heapq
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError
from itertools import count
from typing import Any, NamedTuple

from ..model.decoding_triaffine import FoundInText, Threshold
from ..model.kinds_triaffine import TextEntity
from ..model.options_triaffine import PredictionOptions

logger = logging.getLogger(__name__)

LONG_BATCH = 5000  # a batch of more characters is interrupted for up to half as many, which are not


class Item(NamedTuple):
    """A text with its options, see [`NestedNERPipeline`]; items with the same threshold run together."""

    text: str
    threshold: Threshold | None = None
    overlap: str = PredictionOptions.overlap
    labels: Collection[str] | None = None  # those to keep, before overlaps are resolved; None: all


class Job(NamedTuple):
    """A waiting text. `turn` orders the queue: the finish time in fair queueing, where characters count as time."""

    turn: int
    number: int
    item: Item
    answer: Future[list[TextEntity]]


class Batcher:
    """Runs texts through a pipeline in a thread of its own, in batches of those that arrived while it was busy.

    A context manager: on exit it finishes all texts that are not cancelled, then ends the thread.

    Args:
        find_entities: [`NestedNERPipeline`], called as `find_entities(texts, threshold=…, in_words=True)`.
    """

    max_texts, max_characters = 64, LONG_BATCH  # of a batch; a longer text runs alone

    def __init__(self, find_entities: Callable[..., list[FoundInText]]):
        self._find_entities = find_entities
        self._waiting: list[Job] = []  # a heap
        self._running: list[Job] = []
        self._turn, self._numbers = 0, count()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="batcher")

    def __enter__(self) -> "Batcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """True while the thread runs that owns the model."""
        return self._thread.is_alive()

    def submit(self, items: Sequence[Item]) -> list[Future[list[TextEntity]]]:
        """Queues the texts of one request. A batch whose answers are all cancelled ends at the next forward pass."""
        with self._changed:
            turn, answers = self._turn, []
            for item in items:
                turn += len(item.text)
                answers.append(Future[list[TextEntity]]())
                heapq.heappush(self._waiting, Job(turn, next(self._numbers), item, answers[-1]))
            self._changed.notify()
        return answers

    def forget_cancelled(self) -> None:
        """Removes the texts that nobody waits for from the queue."""
        with self._changed:
            self._waiting = [job for job in self._waiting if not job.answer.cancelled()]
            heapq.heapify(self._waiting)

    def between_passes(self, model: Any, *_: object) -> None:
        """Ends a batch that nobody waits for, and lets shorter ones go first: a forward pre-hook of the model."""
        if self._running and all(job.answer.cancelled() for job in self._running):
            raise CancelledError
        characters = sum(len(job.item.text) for job in self._running)
        if characters > LONG_BATCH and model.device.type == "cpu":  # a GPU may be recording a graph
            with self._changed:
                batch = self._take(LONG_BATCH // 2, at_least=0)
            self._run(batch)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                batch = self._take(self.max_characters, at_least=1)
            self._run(batch)

    def _take(self, most: int, at_least: int) -> list[Job]:
        """Takes texts from the queue: at most `most` characters in all, but at least `at_least` texts if it has any."""
        batch: list[Job] = []
        while self._waiting and len(batch) < self.max_texts:
            job = self._waiting[0]
            if not job.answer.cancelled():
                most -= len(job.item.text)
                if most < 0 and len(batch) >= at_least:
                    break
                self._turn = job.turn
                batch.append(job)
            heapq.heappop(self._waiting)
        return batch

    def _run(self, jobs: list[Job]) -> None:
        """Runs texts together; if that fails, one by one, so that only the faulty one fails."""
        outer, self._running = self._running, jobs
        found: list[Any] | None = None
        try:
            found = self._find([job.item for job in jobs])
        except CancelledError:  # nobody waits for the results
            return
        except BaseException as error:  # a panic of Rust code is no Exception, and must not end the thread
            if len(jobs) == 1:
                logger.exception("The model failed on a text of %d characters.", len(jobs[0].item.text))
                found = [error.with_traceback(None)]  # whose frames keep the memory of the forward pass
        finally:
            self._running = outer
        if found is None:
            for job in jobs:
                self._run([job])
            return
        for job, result in zip(jobs, found, strict=True):
            with contextlib.suppress(InvalidStateError):  # cancelled meanwhile
                (job.answer.set_exception if isinstance(result, BaseException) else job.answer.set_result)(result)

    def _find(self, items: Sequence[Item]) -> list[list[TextEntity]]:
        """The entities of each item, with one call of the pipeline per distinct threshold."""
        found: list[list[TextEntity]] = [[] for _ in items]
        for written, threshold in {repr(item.threshold): item.threshold for item in items}.items():
            alike = [number for number, item in enumerate(items) if repr(item.threshold) == written]
            in_words = self._find_entities([items[number].text for number in alike], threshold=threshold, in_words=True)
            for number, of_text in zip(alike, in_words, strict=True):
                text, _, overlap, labels = items[number]
                found[number] = of_text.in_characters(text, overlap, labels)
        return found
