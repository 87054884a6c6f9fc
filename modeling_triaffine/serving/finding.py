"""Runs the items of a request: waits for the batcher while the client does, and in parts if there are many."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

from fastapi import HTTPException, Request

from ..model.kinds_triaffine import TextEntity
from .batching import Answers, Batcher, Item, QueueFullError

RETRY_SECONDS = 1
CLIENT_GONE = 499  # as in nginx; nobody reads the response

Find = Callable[[Sequence[Item], Request], Awaitable[Answers]]
"""Items of a request → entities of each."""
Outcome = list[TextEntity] | str
"""The entities of an item, or why it has none."""
FindEach = Callable[[Sequence[Item], Request], Awaitable[list[Outcome]]]
"""Items of a request → outcome of each."""


class ModelFailedError(HTTPException):
    """500: the model failed; the batcher has logged the traceback."""

    def __init__(self) -> None:
        super().__init__(500, "The model failed on this request; see the server's log.")


async def run(batcher: Batcher, items: Sequence[Item], request: Request) -> Answers:
    """The entities of items, which run as one job of the batcher, as long as the client waits.

    Raises:
        QueueFullError: The queue is full.
        HTTPException: The model failed, or the client has disconnected.
    """
    job = batcher.submit(items)
    answer = asyncio.wrap_future(job)
    disconnection = asyncio.ensure_future(wait_for_disconnection(request))
    try:
        await asyncio.wait((answer, disconnection), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise HTTPException(CLIENT_GONE, "The client did not wait for the answer.")
        if answer.exception() is not None:
            raise ModelFailedError
        return answer.result()
    finally:
        disconnection.cancel()
        answer.cancel()
        batcher.leave(job)


async def wait_for_disconnection(request: Request) -> None:
    """Returns when the client has disconnected. The body of the request must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


# ---- Many texts ----


async def run_in_parts(
    find: Find, items: Sequence[Item], request: Request, max_texts: int, max_characters: int, seconds: float
) -> list[Outcome]:
    """The outcome of each item. Parts of this size run one after the other, so that other requests come in between.

    An item on which the model fails does not spoil the others: its part runs again item by item. A part does not begin
    if it would not end within the time, should it take as long as the longest one before; the first always runs.

    Raises:
        QueueFullError: The queue was full at the first part; later ones wait.
        HTTPException: The client has disconnected.
    """
    outcomes: list[Outcome] = []
    begin = last = time.monotonic()
    longest = 0.0
    for part in parts_of(items, max_texts, max_characters):
        if outcomes and last + longest > begin + seconds:
            late = f"There was no time for it within {seconds:g} seconds; ask again."
            return outcomes + [late] * (len(items) - len(outcomes))
        outcomes += await _outcomes(find, part, request, may_wait=bool(outcomes))
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    return outcomes


def parts_of(items: Sequence[Item], max_texts: int, max_characters: int) -> Iterator[list[Item]]:
    """Consecutive items with at most this many texts and characters; a longer text is alone."""
    part: list[Item] = []
    characters = 0
    for item in items:
        characters += len(item.text)
        if part and (len(part) == max_texts or characters > max_characters):
            yield part
            part, characters = [], len(item.text)
        part.append(item)
    if part:
        yield part


async def _outcomes(find: Find, part: list[Item], request: Request, may_wait: bool) -> list[Outcome]:
    while True:
        try:
            return [*await find(part, request)]
        except QueueFullError:
            if not may_wait:
                raise
            await asyncio.sleep(RETRY_SECONDS)
        except ModelFailedError:
            if len(part) == 1:
                return ["The model failed on this text; see the server's log."]
            return [outcome for item in part for outcome in await _outcomes(find, [item], request, may_wait=True)]
