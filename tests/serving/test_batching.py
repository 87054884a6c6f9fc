"""The queue and its thread: which jobs form a batch, and what a failure does to the others."""

import threading
from concurrent.futures import CancelledError

import pytest

from modeling_triaffine.serving import Item, QueueFullError
from modeling_triaffine.serving.batching import GivenUpError
from tests.helpers.served_model import WAIT, Finder, batcher_of, found_in, items, words


def test_requests_that_arrive_during_a_batch_form_the_next_one():
    finder = Finder(is_blocked=True)
    with batcher_of(finder) as batcher:
        first = batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        others = [batcher.submit(items(*texts)) for texts in (["b", "c"], [], ["d"])]
        assert batcher.num_waiting == 3
        finder.may_go_on.set()
        assert [words(future) for future in (first, *others)] == [[["a"]], [["b"], ["c"]], [], [["d"]]]
    assert [texts for texts, _ in finder.calls] == [["a"], ["b", "c", "d"]]


def test_items_with_equal_thresholds_run_together():
    finder = Finder(is_blocked=True)
    with batcher_of(finder) as batcher:
        futures = [batcher.submit(items("a"))]
        assert finder.is_called.wait(WAIT)
        futures.append(batcher.submit([Item("b", 0.5), Item("c"), Item("d", {"DNA": 0.5})]))
        futures.append(batcher.submit([Item("e", {"DNA": 0.5}, "flat"), Item("f", 0.5, "nested")]))
        finder.may_go_on.set()
        assert [words(future) for future in futures] == [[["a"]], [["b"], ["c"], ["d"]], [["e"], ["f"]]]
    assert finder.calls == [(["a"], None), (["b", "f"], 0.5), (["c"], None), (["d", "e"], {"DNA": 0.5})]


def test_labels_are_chosen_before_overlaps_are_resolved():
    entities = [
        found_in("ab", "DNA", 0.9),
        {"entity_group": "protein", "score": 0.5, "word": "b", "start": 1, "end": 2},
    ]
    with batcher_of(lambda texts, threshold: [entities for _ in texts]) as batcher:
        given = [Item("ab"), Item("ab", None, "flat"), Item("ab", None, "flat", ["protein"]), Item("ab", labels=[])]
        answers = batcher.submit(given).result(WAIT)
    assert answers == [entities, entities[:1], entities[1:], []]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"texts": 2}, [["a"], ["bb", "c"], ["dd"], ["e", "f", "g"], ["h"]]),
        ({"texts": 1}, [["a"], ["bb"], ["c"], ["dd"], ["e", "f", "g"], ["h"]]),
        ({"characters": 3}, [["a"], ["bb", "c"], ["dd"], ["e", "f", "g"], ["h"]]),
        ({"characters": 5}, [["a"], ["bb", "c", "dd"], ["e", "f", "g", "h"]]),
    ],
)
def test_batches_respect_the_limits_and_never_split_requests(bounds, expected):
    finder = Finder(is_blocked=True)
    with batcher_of(finder, **bounds) as batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        for texts in (["bb"], ["c"], ["dd"], ["e", "f", "g"], ["h"]):
            batcher.submit(items(*texts))
        finder.may_go_on.set()
    assert [texts for texts, _ in finder.calls] == expected


class PanicError(BaseException):
    """As those of the tokenizer's Rust code."""


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), PanicError()])
def test_a_failure_affects_only_its_request(caplog, error):
    finder = Finder(is_blocked=True)

    def find_entities(texts, threshold):
        found = finder(texts, threshold)
        if "bad" in texts:
            raise error
        return found

    with batcher_of(find_entities) as batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        good, bad, fine = (batcher.submit(items(*texts)) for texts in (["b"], ["x", "bad"], ["c"]))
        finder.may_go_on.set()
        assert (words(good), words(fine)) == ([["b"]], [["c"]])
        assert bad.exception(WAIT) is error
        assert words(batcher.submit(items("d"))) == [["d"]]
        assert batcher.is_alive
    [record] = caplog.records
    assert record.exc_info is not None


def test_aborted_jobs_end_at_the_next_forward_pass():
    is_called = threading.Event()

    def find_entities(texts, threshold):
        is_called.set()
        while True:  # a slow model
            batcher.check()

    batcher = batcher_of(find_entities)
    with batcher:
        running = batcher.submit(items("a", "b"))
        assert is_called.wait(WAIT)
        waiting = batcher.submit(items("c"))
        batcher.give_up()
    for future in (running, waiting):
        with pytest.raises(GivenUpError):
            future.result(0)


@pytest.mark.parametrize("leaving", [1, 2])
def test_a_batch_ends_when_all_its_clients_have_gone(leaving):
    finder, submitted = Finder(is_blocked=True), []

    def find_entities(texts, threshold):
        found = finder(texts, threshold)
        if [*texts] == ["b", "c"]:
            for answer in submitted[:leaving]:
                batcher.leave(answer)
            batcher.check()  # a forward pass
        return found

    batcher = batcher_of(find_entities)
    with batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        submitted += [batcher.submit(items("b")), batcher.submit(items("c"))]
        finder.may_go_on.set()
        assert [isinstance(answer.exception(WAIT), GivenUpError) for answer in submitted] == [leaving == 2] * 2
        assert words(batcher.submit(items("d"))) == [["d"]]
    batcher.check()


def test_the_queue_is_bounded_and_cancelled_requests_do_not_run():
    finder = Finder(is_blocked=True)
    with batcher_of(finder, waiting=2) as batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        cancelled, kept = batcher.submit(items("b")), batcher.submit(items("c"))
        with pytest.raises(QueueFullError, match="limit: 2"):
            batcher.submit(items("d"))
        batcher.leave(cancelled)
        assert batcher.num_waiting == 1
        accepted = batcher.submit(items("e"))
        finder.may_go_on.set()
        assert (words(kept), words(accepted)) == ([["c"]], [["e"]])
        with pytest.raises(CancelledError):
            cancelled.result(WAIT)
    assert [texts for texts, _ in finder.calls] == [["a"], ["c", "e"]]


def test_exit_finishes_submitted_jobs():
    with batcher_of(Finder(), texts=1) as batcher:
        futures = [batcher.submit(items(str(number))) for number in range(20)]
    assert [future.done() and words(future) for future in futures] == [[[str(number)]] for number in range(20)]
