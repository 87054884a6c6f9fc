"""Finds the entities of a request, as long as its client waits."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import HTTPException, Request

from ..model.kinds_triaffine import TextEntity
from .batching import Batcher, Item
from .middleware import Metrics
from .schema import Limits

CLIENT_GONE = 499  # as in nginx; nobody reads the response

Outcome = list[TextEntity] | HTTPException
"""The entities of an item, or why it has none."""


class Predictor:
    """Runs items through the batcher, within the limits, and counts them."""

    def __init__(self, batcher: Batcher, limits: Limits, metrics: Metrics):
        self.batcher, self.limits, self.metrics = batcher, limits, metrics
        self.waiting = 0  # requests
        metrics.waiting.set_function(lambda: self.waiting)

    async def __call__(self, items: Sequence[Item], request: Request) -> list[list[TextEntity]]:
        """The entities of each item.

        Raises:
            HTTPException: A limit is exceeded, too many requests wait, the model failed, or the client is gone.
        """
        if len(items) > self.limits.texts:
            raise HTTPException(422, f"There are {len(items)} texts, the limit is {self.limits.texts}.")
        refused = [item for item in map(self.check, items) if isinstance(item, HTTPException)]
        outcomes: list[Any] = refused or await self.each(items, request)
        for outcome in outcomes:
            if isinstance(outcome, HTTPException):
                raise outcome
        return outcomes

    async def each(
        self, items: Sequence[Item | HTTPException], request: Request, seconds: float | None = None
    ) -> list[Outcome]:
        """The outcome of each item, however many there are: one that fails, or is late, does not spoil the others.

        An exception in the place of an item is its outcome.
        """
        if self.waiting >= self.limits.waiting:
            problem = f"The queue is full (limit: {self.limits.waiting}). Try again later."
            raise HTTPException(503, problem, {"Retry-After": "1"})
        checked = [self.check(item) for item in items]
        fitting = [item for item in checked if isinstance(item, Item)]
        answers = [asyncio.wrap_future(answer) for answer in self.batcher.submit(fitting)]
        everything = asyncio.gather(*answers, return_exceptions=True)
        disconnection = asyncio.ensure_future(wait_for_disconnection(request))
        self.waiting += 1
        try:
            await asyncio.wait((everything, disconnection), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if disconnection.done() and not everything.done():
                raise HTTPException(CLIENT_GONE, "The client did not wait for the answer.")
            outcomes = [outcome_of(answer, seconds) for answer in answers]
        except asyncio.CancelledError:  # the time limit of the shutdown is reached
            raise HTTPException(503, "The server stopped before it could answer.") from None
        finally:
            self.waiting -= 1
            disconnection.cancel()
            for answer in answers:
                answer.cancel()
        self.metrics.count((item.text, found) for item, found in zip(fitting, outcomes, strict=True))
        answered = iter(outcomes)
        return [next(answered) if isinstance(item, Item) else item for item in checked]

    def check(self, item: Item | HTTPException) -> Item | HTTPException:
        """The item, or the problem of a text that is too long."""
        most = self.limits.text_characters
        if isinstance(item, Item) and len(item.text) > most:
            return HTTPException(422, f"A text has {len(item.text)} characters, the limit is {most}.")
        return item


def outcome_of(answer: asyncio.Future[list[TextEntity]], seconds: float | None) -> Outcome:
    if not answer.done():
        return HTTPException(503, f"There was no time for it within {seconds} seconds; ask again.")
    if answer.exception() is not None:  # the batcher has logged the traceback
        return HTTPException(500, "The model failed on this request; see the server's log.")
    return answer.result()


async def wait_for_disconnection(request: Request) -> None:
    """Returns when the client has disconnected. The body of the request must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
