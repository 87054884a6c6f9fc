"""The work of the host for a sentence: words that were read before, few function calls, batches that fit the memory."""

import pickle
import sys
import unicodedata
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from modeling_triaffine import TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.model import processing_triaffine
from modeling_triaffine.model.batches_triaffine import BatchReader, subwords_that_fit
from modeling_triaffine.model.span_head_triaffine import NestedNEROutput
from tests.helpers.encoders import FIELDS, LETTERS, make_tokenizer
from tests.helpers.tiny import tiny_pipeline, tiny_processor

# As long as GENIA's sentences, of many different words.
SENTENCE = "The IL-2 gene binds a protein, and NF-kappa B activation through CD28 needs reactive oxygen production {} ."


@pytest.mark.parametrize("architecture", FIELDS)
def test_a_word_has_the_same_subwords_alone_as_in_its_sentence(architecture):
    tokenizer = make_tokenizer(architecture)
    processor = TriaffineProcessor(tokenizer, max_subwords=512)
    words = ["The", "gene", "IL-2", "é", "中", "x" * 40, "…", "[SEP]", "</s>", LETTERS, "binds"]
    words += ["\x00", "\u200b", "\ud800", "", "👩‍🔬", "שלום", "e\u0301"]  # some are without sub-words
    processor.encode([words[::-1]])  # read in another order before
    [feature] = processor.encode([words])
    options = {"is_split_into_words": True, "add_special_tokens": False, "split_special_tokens": True}
    cleaned = [processing_triaffine.beginning(word) for word in words]
    for number, word in enumerate(cleaned):
        if processor._unknown_id in tokenizer([processor._word_prefix + word], **options)["input_ids"]:
            cleaned[number] = unicodedata.normalize("NFKC", word)
    cleaned = [processor._word_prefix + word for word in cleaned]
    together = tokenizer(cleaned, **options)
    index = np.array(together.word_ids())
    for number in range(len(words)):
        expected = np.array(together["input_ids"])[index == number].tolist()
        own = feature["input_ids"][feature["word_index"] == number].tolist()
        assert own == (expected or [processor._unknown_id])


def test_words_are_kept_for_later_but_not_in_files_or_for_ever(encoder, monkeypatch):
    processor = tiny_processor(encoder)
    new, asked = pickle.dumps(processor), []
    monkeypatch.setattr(processing_triaffine, "MOST_KNOWN_WORDS", 3)
    kind = type(processor.tokenizer)
    call = kind.__call__
    monkeypatch.setattr(kind, "__call__", lambda self, words, **how: asked.append(words) or call(self, words, **how))
    for words in (["gene", "the"], ["gene"], ["x", "y"], ["gene", "z" * 10**5]):
        processor.encode([words])
    assert [sorted(words) for words in asked[:3]] == [["gene", "the"], ["x", "y"], ["gene", "z" * 256]]
    assert sum(map(len, processor._cache[1])) < 10**4  # encoded data of many characters is not kept whole
    assert pickle.dumps(processor) == new


def test_few_function_calls_a_sentence(encoder, monkeypatch):
    pipeline = tiny_pipeline(encoder)
    config = pipeline.model.config

    def answer(self, num_words=None, **inputs):
        batch, words, places = len(num_words), int(num_words.max()), config.max_candidates
        logits = torch.zeros(batch, places, config.num_scores)
        logits[..., -1] = 5.0
        logits[:, :3, 0] = 10.0  # three entities in each sentence
        candidates = torch.arange(places).view(1, -1, 1).expand(batch, -1, 2) % num_words.view(-1, 1, 1)
        mask = torch.ones(batch, places, dtype=torch.bool)
        scores = torch.zeros(batch, words, words, config.num_scores)
        return NestedNEROutput(span_logits=scores, logits=logits, candidates=candidates, candidate_mask=mask)

    monkeypatch.setattr(TriaffineForNestedNER, "forward", answer)
    texts = [SENTENCE.format(f"word{number}") for number in range(256)]
    pipeline(texts, batch_size=32)
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        found = pipeline(texts, batch_size=32)
    finally:
        sys.setprofile(None)
    assert {len(entities) for entities in found} == {3}
    assert calls / len(texts) <= 160


@pytest.mark.parametrize("largest", [3, 0])
def test_where_memory_runs_out_batches_are_halved(largest):
    sizes = []

    def run(batch):
        sizes.append(len(batch["numbers"]))
        if sizes[-1] > largest:
            raise torch.OutOfMemoryError
        return batch["numbers"].tolist()

    def pad(features):
        return {"numbers": torch.tensor([feature["input_ids"][0] for feature in features]), "num_words": torch.ones(1)}

    reader = BatchReader(pad, run, iter, torch.device("cpu"), batch_size=16)
    results = reader.read(range(10), lambda rows: [{"input_ids": [row] * 4, "num_words": 1} for row in rows])
    with nullcontext() if largest else pytest.raises(torch.OutOfMemoryError):  # one sentence alone
        assert list(results) == [(number, number) for number in range(10)]
    assert sizes == ([10, 5, 2, 2, 2, 2, 2] if largest else [10, 5, 2, 1])


def test_batches_on_a_gpu_have_as_many_subwords_as_fit():
    assert subwords_that_fit(80 * 2**30) == 16384
    assert subwords_that_fit(2**30) == 8192
    assert subwords_that_fit(0) == 1024
