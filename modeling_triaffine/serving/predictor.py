"""Finds the entities of a request: in parts, so that other requests come in between, as long as its client waits."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from fastapi import HTTPException, Request

from ..model.kinds_triaffine import TextEntity
from .batching import Answers, Batcher, Item, QueueFullError
from .metrics import Metrics
from .schema import Limits

RETRY_SECONDS = 1
CLIENT_GONE = 499  # as in nginx; nobody reads the response

Outcome = list[TextEntity] | str
"""The entities of an item, or why it has none."""


class ModelFailedError(HTTPException):
    """500; the batcher has logged the traceback."""

    def __init__(self) -> None:
        super().__init__(500, "The model failed on this request; see the server's log.")


class Predictor:
    """Runs items through the batcher, within the limits, and counts them."""

    def __init__(self, batcher: Batcher, limits: Limits, metrics: Metrics):
        self.batcher, self.limits, self.metrics = batcher, limits, metrics

    async def __call__(self, items: Sequence[Item], request: Request) -> Answers:
        """The entities of each item.

        Raises:
            HTTPException: A limit is exceeded, the queue is full, the model failed, or the client has disconnected.
        """
        if len(items) > self.limits.texts:
            raise HTTPException(422, f"There are {len(items)} texts, the limit is {self.limits.texts}.")
        if problem := next(filter(None, map(self.problem, items)), None):
            raise HTTPException(422, problem)
        found: Answers = []
        for part in self.parts(items):
            found += await self.run(part, request, may_wait=bool(found))
        return found

    async def each(self, items: Sequence[Item], request: Request) -> list[Outcome]:
        """The outcome of each item, however many there are: one that fails does not spoil the others.

        A part does not begin if it would not end in time, should it take as long as the longest one before.
        """
        problems = [self.problem(item) for item in items]
        good = [item for item, problem in zip(items, problems, strict=True) if problem is None]
        outcomes: list[Outcome] = []
        begin = last = time.monotonic()
        longest, seconds = 0.0, self.limits.label_studio_seconds
        for part in self.parts(good):
            if outcomes and last + longest > begin + seconds:
                break
            outcomes += await self._each_of(part, request, may_wait=bool(outcomes))
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        late = f"There was no time for it within {seconds} seconds; ask again."
        answered = chain(outcomes, repeat(late))
        return [next(answered) if problem is None else problem for problem in problems]

    async def _each_of(self, part: list[Item], request: Request, may_wait: bool) -> Sequence[Outcome]:
        """The outcomes of a part: if the model fails on it, those of each item alone."""
        try:
            return await self.run(part, request, may_wait)
        except ModelFailedError as error:
            if len(part) == 1:
                return [error.detail]
            return [outcome for item in part for outcome in await self._each_of([item], request, may_wait=True)]

    def problem(self, item: Item) -> str | None:
        most = self.limits.text_characters
        return f"A text has {len(item.text)} characters, the limit is {most}." if len(item.text) > most else None

    def parts(self, items: Sequence[Item]) -> Iterator[list[Item]]:
        """Consecutive items that fit into a batch; a longer text is alone."""
        part: list[Item] = []
        characters = 0
        for item in items:
            characters += len(item.text)
            if part and (len(part) == self.batcher.max_batch_texts or characters > self.batcher.max_batch_characters):
                yield part
                part, characters = [], len(item.text)
            part.append(item)
        if part:
            yield part

    async def run(self, items: list[Item], request: Request, may_wait: bool = False) -> Answers:
        """The entities of items that run as one job; while the queue is full, it waits or raises 503."""
        while True:
            try:
                job = self.batcher.submit(items)
                break
            except QueueFullError as error:
                if not may_wait:
                    raise HTTPException(503, f"{error} Try again later.", {"Retry-After": str(RETRY_SECONDS)}) from None
                await asyncio.sleep(RETRY_SECONDS)
        answer = asyncio.wrap_future(job)
        disconnection = asyncio.ensure_future(wait_for_disconnection(request))
        try:
            await asyncio.wait((answer, disconnection), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise HTTPException(CLIENT_GONE, "The client did not wait for the answer.")
            if answer.exception() is not None:
                raise ModelFailedError
            self.metrics.count(items, answer.result())
            return answer.result()
        finally:
            disconnection.cancel()
            answer.cancel()
            self.batcher.leave(job)


async def wait_for_disconnection(request: Request) -> None:
    """Returns when the client has disconnected. The body of the request must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
