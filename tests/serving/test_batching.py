"""The queue and its thread: which texts form a batch, whose turn it is, and what a failure does to the others."""

from types import SimpleNamespace

import pytest

from modeling_triaffine.serving import Item
from modeling_triaffine.serving.batching import LONG_BATCH
from tests.helpers.served_model import WAIT, Finder, batcher_of, found_in, items, words

MODEL = SimpleNamespace(device=SimpleNamespace(type="cpu"))


def test_texts_that_arrive_during_a_batch_form_the_next_one_by_threshold():
    finder = Finder(is_blocked=True)
    with batcher_of(finder) as batcher:
        first = batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        others = [batcher.submit(items("b", "c")), batcher.submit([])]
        others.append(batcher.submit([Item("d", 0.5), Item("e", {"DNA": 0.5, "RNA": 0.4})]))
        others.append(batcher.submit([Item("f", {"RNA": 0.4, "DNA": 0.5}, "flat"), Item("g", 0.5, "nested")]))
        finder.may_go_on.set()
        assert [words(answers) for answers in (first, *others)] == [["a"], ["b", "c"], [], ["d", "e"], ["f", "g"]]
    both = {"DNA": 0.5, "RNA": 0.4}
    assert finder.calls == [(["a"], None), (["b", "c"], None), (["d", "g"], 0.5), (["f"], both), (["e"], both)]


def test_labels_are_chosen_before_overlaps_are_resolved():
    entities = [found_in("ab", "DNA", 0.9), {**found_in("b", "protein"), "start": 1, "end": 2}]
    with batcher_of(lambda texts, threshold: [entities for _ in texts]) as batcher:
        given = [Item("ab"), Item("ab", None, "flat"), Item("ab", None, "flat", ["protein"]), Item("ab", labels=[])]
        answers = [answer.result(WAIT) for answer in batcher.submit(given)]
    assert answers == [entities, entities[:1], entities[1:], []]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, [["a"], ["c", "h", "bb", "x", "dd", "eeee"]]),
        ({"texts": 2}, [["a"], ["c", "h"], ["bb", "x"], ["dd", "eeee"]]),
        ({"characters": 3}, [["a"], ["c", "h"], ["bb", "x"], ["dd"], ["eeee"]]),
    ],
)
def test_requests_take_turns_in_batches_within_the_limits(bounds, expected):
    """A short request does not wait for the rest of a long one."""
    finder = Finder(is_blocked=True)
    with batcher_of(finder, **bounds) as batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        answers = [batcher.submit(items(*texts)) for texts in (["bb", "dd", "eeee"], ["c", "x"], ["h"])]
        finder.may_go_on.set()
        assert [words(of) for of in answers] == [["bb", "dd", "eeee"], ["c", "x"], ["h"]]
    assert [texts for texts, _ in finder.calls] == expected


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_short_texts_run_between_two_forward_passes_of_a_long_batch(device):
    long, calls = "x" * (2 * LONG_BATCH), []

    def find_entities(texts, threshold):
        calls.append([*texts])
        if long in texts:
            answers.append(batcher.submit(items("a"))[0])
            answers.append(batcher.submit(items(long[:LONG_BATCH]))[0])
            for _ in range(2):
                batcher.between_passes(SimpleNamespace(device=SimpleNamespace(type=device)))
            assert [answer.done() for answer in answers] == [device == "cpu", False]
        return [[found_in(text)] for text in texts]

    batcher, answers = batcher_of(find_entities, texts=1), []
    with batcher:
        assert words(batcher.submit(items(long))) == [long]
    assert words(answers) == ["a", long[:LONG_BATCH]]
    assert calls == [[long], ["a"], [long[:LONG_BATCH]]]


class PanicError(BaseException):
    """As those of the tokenizer's Rust code."""


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), PanicError()])
def test_a_failure_affects_only_its_text(caplog, error):
    finder = Finder(is_blocked=True)

    def find_entities(texts, threshold):
        found = finder(texts, threshold)
        if "bad" in texts:
            raise error
        return found

    with batcher_of(find_entities) as batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        good, (fine, bad) = batcher.submit(items("b")), batcher.submit(items("x", "bad"))
        finder.may_go_on.set()
        assert words([*good, fine]) == ["b", "x"]
        assert (bad.exception(WAIT), error.__traceback__) == (error, None)
        assert words(batcher.submit(items("d"))) == ["d"]
        assert batcher.is_alive
    [record] = caplog.records
    assert record.exc_info is not None


@pytest.mark.parametrize("cancelled", [1, 2])
def test_a_batch_ends_when_nobody_waits_for_it(cancelled):
    finder, answers = Finder(is_blocked=True), []

    def find_entities(texts, threshold):
        found = finder(texts, threshold)
        if [*texts] == ["b", "c"]:
            for answer in answers[:cancelled]:
                answer.cancel()
            batcher.between_passes(MODEL)
        return found

    batcher = batcher_of(find_entities)
    with batcher:
        batcher.submit(items("a"))
        assert finder.is_called.wait(WAIT)
        answers += [*batcher.submit(items("b")), *batcher.submit(items("c"))]
        finder.may_go_on.set()
        if cancelled == 1:
            assert words(answers[1:]) == ["c"]
        else:
            assert words(batcher.submit(items("d"))) == ["d"]
    batcher.between_passes(MODEL)  # when nothing runs
