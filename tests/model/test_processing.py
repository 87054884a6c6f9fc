"""Words and raw text to tensors: layout with context, windows, odd words, vocabularies, round trips."""

import itertools
import math
import threading
import unicodedata
from collections import Counter

import numpy as np
import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoProcessor, PretrainedConfig, ProcessorMixin
from transformers.tokenization_utils_base import TensorType

from modeling_triaffine import TriaffineConfig, TriaffineProcessor
from modeling_triaffine.model import processing_triaffine
from modeling_triaffine.model.batches_triaffine import batches_by_length
from modeling_triaffine.model.text_triaffine import neighbouring_words
from tests.helpers.tiny import tiny_processor


@pytest.fixture
def processor(encoder):
    return tiny_processor(encoder, max_subwords=16)


def tokens(processor, feature):
    return processor.tokenizer.convert_ids_to_tokens(feature["input_ids"])


@pytest.mark.parametrize(
    ("left", "right", "layout", "segments", "index"),
    [
        (["a", "b"], ["c"], "[CLS] a b [SEP] gene x [SEP] c [SEP]", "111000011", [-1, -1, -1, -1, 0, 1, -1, -1, -1]),
        ([], [], "[CLS] gene x [SEP]", "0000", [-1, 0, 1, -1]),
        (["a"], [], "[CLS] a [SEP] gene x [SEP]", "110000", [-1, -1, -1, 0, 1, -1]),
        ([], ["a"], "[CLS] gene x [SEP] a [SEP]", "000011", [-1, 0, 1, -1, -1, -1]),
    ],
)
def test_layout_with_context(processor, left, right, layout, segments, index):
    [feature] = processor.encode([["gene", "x"]], None, [left], [right])
    assert tokens(processor, feature) == layout.split()
    assert feature["token_type_ids"].tolist() == [int(segment) for segment in segments]
    assert feature["word_index"].tolist() == index
    assert feature["num_words"] == 2


def test_context_is_cut_evenly_around_the_sentence_and_specials_stay(processor):
    words = ["gene"] * 6
    for left, right, before, after in (
        ("abcdefgh", "stuvwxyz", "fgh", "stu"),
        ("gh", "stuvwxyz", "gh", "stuv"),
        ("abcdefgh", "st", "efgh", "st"),
    ):
        [feature] = processor.encode([words], None, [list(left)], [list(right)])
        assert tokens(processor, feature) == ["[CLS]", *before, "[SEP]", *words, "[SEP]", *after, "[SEP]"]
    [feature] = processor.encode([["gene"] * 13], None, [["a"]], [["b"]])
    assert "a" not in tokens(processor, feature)
    assert len(feature["input_ids"]) == 15


@pytest.mark.parametrize("count", [14, 15, 16, 21, 22, 40, 100])
def test_windows_hold_every_word_once_where_it_is_most_central(processor, count):
    [feature] = processor.encode([["gene"] * count])
    width = len(feature["input_ids"])
    index = feature["word_index"]
    assert index[index >= 0].tolist() == sorted(range(count), key=lambda word: np.flatnonzero(index == word)[0])
    if count <= 14:
        assert width == count + 2
        return
    assert width % 16 == 0
    for window, row in enumerate(feature["input_ids"].reshape(-1, 16)):
        assert processor.tokenizer.convert_ids_to_tokens(row)[::15] == ["[CLS]", "[SEP]"]
        inside = np.flatnonzero(index.reshape(-1, 16)[window] >= 0)
        # Half a window of overlap: an inner word has at least a quarter of a window of context on each side.
        if 0 < window < width // 16 - 2:
            assert inside.min() >= 4
            assert inside.max() <= 12


@pytest.mark.parametrize("word", ["xy", "xyz", "xyzw"])
def test_a_word_of_several_subwords_is_read_from_one_window(processor, word):
    [feature] = processor.encode([[word] * 15])
    rows = feature["word_index"].reshape(-1, 16)
    assert len(rows) > 2
    for number in range(15):
        assert sorted((rows == number).sum(1))[-2:] == [0, len(word)]


def test_word_longer_than_any_window_counts_with_all_its_subwords(processor):
    [feature] = processor.encode([["x", "y" * 50, "z"]])
    assert [(feature["word_index"] == word).sum() for word in range(3)] == [1, 50, 1]


@given(st.integers(1, 70), st.integers(1, 40))
def test_windows_of_a_long_sentence_own_each_entity_once(processor, length, longest):
    processor.max_sentence_words = longest
    windows = list(processor.windows(["x"] * length))
    owned = Counter()
    for window in windows:
        words = [start for start, _ in window.offsets]
        for start, end in itertools.combinations(range(len(words) + 1), 2):
            owned[words[start], words[end - 1] + 1] += window.owns(start, end)
    assert set(owned.values()) == {1}
    size = max(1, longest // 4) if length > longest else length
    complete = size // 4 + 1 if length > longest else length
    narrow = {(start, start + width) for width in range(1, complete + 1) for start in range(length - width + 1)}
    assert owned.keys() >= narrow
    assert [len(window.offsets) for window in windows[:-1]] == [size] * (len(windows) - 1)
    assert [window.shared_before for window in windows] == [0, *[size // 4] * (len(windows) - 1)]


def test_padding_only_fills_up(processor):
    features = processor.encode([["gene"] * 3, ["x"], ["gene"] * 20])
    short, whole = processor.pad(features[:2]), processor.pad(features)
    assert short["input_ids"].shape == (2, 5)
    assert whole["input_ids"].shape[1] % 16 == 0
    for name, padding in {"attention_mask": 0, "token_type_ids": 0, "word_index": -1, "input_ids": 0}.items():
        assert torch.equal(whole[name][:2, :5], short[name])
        assert (whole[name][1, 3:] == padding).all()
    assert whole["num_words"].tolist() == [3, 1, 20]


def test_rows_of_a_batch_are_features(tagged):
    sentences = {"words": [["x", "gene"], ["genes"] * 9], "pos": [["X", "N"], ["N"] * 9]}
    rows = Dataset.from_dict(sentences).map(lambda batch: tagged(**batch), batched=True)
    for row, feature in zip(rows, tagged.encode(**sentences), strict=True):
        found, expected = tagged.pad([row]), tagged.pad([feature])
        for name, values in expected.items():
            assert torch.equal(found[name][tuple(map(slice, values.shape))], values)


@given(
    sizes=st.lists(st.tuples(st.integers(2, 50), st.integers(0, 9)), max_size=60),
    batch_size=st.none() | st.integers(1, 9),
    max_subwords=st.none() | st.integers(1, 200),
)
def test_batches_by_length_hold_at_most_so_many_subwords(sizes, batch_size, max_subwords):
    if batch_size is None and max_subwords is None:
        return
    batches = batches_by_length(sizes, batch_size, max_subwords)
    rows = [row for batch in batches for row in batch]
    assert rows == sorted(range(len(sizes)), key=lambda row: (-sizes[row][0], -sizes[row][1], row))
    if batch_size is not None:
        average = math.ceil(batch_size * sum(subwords for subwords, _ in sizes) / max(1, len(sizes)))
        max_subwords = min(max_subwords or average, average)
    for batch, following in itertools.zip_longest(batches, batches[1:]):
        longest, _ = sizes[batch[0]]
        assert len(batch) == 1 or len(batch) * longest <= max_subwords
        assert batch_size is None or len(batch) <= batch_size
        # No batch but the last could have held one more.
        assert following is None or len(batch) == batch_size or (len(batch) + 1) * longest > max_subwords


def test_call_takes_text_or_words(processor):
    by_words = processor(words=["gene", "x", "."])
    by_text = processor("gene x.")
    assert all(torch.equal(by_words[name], by_text[name]) for name in by_words)
    of_array = processor(words=np.array(["gene", "x", "."]))
    usual = {"return_tensors": TensorType.PYTORCH, "padding": True, "truncation": True}
    as_for_tokenizers = processor([["gene", "x", "."]], is_split_into_words=True, **usual)
    for batch in (of_array, as_for_tokenizers):
        assert all(torch.equal(batch[name], by_words[name]) for name in by_words)
    assert processor(text=["gene. It binds.", "x"])["num_words"].tolist() == [2, 3, 1]
    for name, value in (("padding", False), ("padding", "max_length"), ("truncation", "only_first")):
        with pytest.raises(ValueError, match=f"`{name}` is {value!r}"):
            processor("gene x.", **{name: value})
    for wrong, kind in ((["one", None], "NoneType"), ({"text": "a row of a data set"}, "dict")):
        with pytest.raises(TypeError, match=f"not {kind}"):
            processor(wrong)
    for options in ({}, *({"text": "gene x.", name: [["x"] * 3]} for name in ("words", "pos", "left_tokens"))):
        with pytest.raises(ValueError, match="give either `text` or `words`"):
            processor(**options)


@pytest.mark.parametrize("words", ["gene x", ["gene", None], [["gene"], "gene x"], [["gene"], [1984]], [None]])
def test_a_sentence_is_a_list_of_strings(processor, words):
    """A string is not a sentence of letters."""
    with pytest.raises(TypeError, match=r"sentence [01] of `words`"):
        processor(words=words)
    for name in ("pos", "left_tokens", "right_tokens"):
        with pytest.raises(TypeError, match=f"sentence 1 of `{name}`"):
            processor(words=[["gene"], ["x"]], **{name: [["x"], "gene x"]})
    with pytest.raises(ValueError, match="`left_tokens` is given for 1 sentences, `words` for 2"):
        processor.encode([["a"], ["b"]], None, [["c"]])
    with pytest.raises(ValueError, match="contains no text or sentence"):
        processor(text=[])


@pytest.mark.parametrize("context", ["none", "previous_sentence", "document"])
def test_text_gets_the_context_that_records_get(encoder, context):
    processor = tiny_processor(encoder, max_subwords=24, context=context)
    # One-word sentences too: context reaches over many of them, and over the chunks that a text is read in.
    words = [[f"A{n}", "gene", "."] if n % 3 else ["Gene", "."] for n in range(150)]
    text = " ".join(" ".join(sentence[:-1]) + "." for sentence in words)
    features = [feature for feature, _ in processor.encode_text(text)]
    assert len(features) == 150
    left, right = zip(*(neighbouring_words(words, place, context, 24) for place in range(150)), strict=True)
    for one, other in zip(features, processor.encode(words, None, left, right), strict=True):
        assert one["input_ids"].tolist() == other["input_ids"].tolist()


def test_options_and_vocabularies_are_saved_and_loaded(encoder, tmp_path):
    options = {"max_subwords": 40, "context": "document", "word_splitter": "characters", "sentence_splitter": "lines"}
    processor = tiny_processor(encoder, **options)
    records = [{"tokens": ["Gene", "x", "x", "\ud800"], "pos": ["NOUN", "X", "X", "X"]}]  # a lone surrogate
    processor.build_vocabularies(records, ["words", "pos", "chars"])
    assert sorted(processor.vocabularies["chars"]) == sorted(["[PAD]", "[UNK]", *"Genx\ud800"])
    processor.save_pretrained(tmp_path)
    loaded = AutoProcessor.from_pretrained(tmp_path)
    assert isinstance(loaded, TriaffineProcessor)
    assert {name: getattr(loaded, name) for name in options} == options
    assert str(tmp_path) not in (tmp_path / "processor_config.json").read_text()
    assert loaded.vocabularies == processor.vocabularies
    for one in (processor, loaded):
        feature = one.encode([["x", "GENE", "new"]], [["X", "NOUN", "ODD"]])[0]
        assert feature["word_ids"].tolist() == [2, 1, 1]
        assert feature["pos_ids"].tolist() == [2, 3, 1]
        assert feature["char_ids"].shape == (3, 4)
        assert feature["char_ids"][0].tolist() == [one.vocabularies["chars"]["x"], 0, 0, 0]
    with pytest.raises(ValueError, match="choose among"):
        processor.build_vocabularies(records, ["shapes"])


def test_words_are_looked_up_composed_and_a_capitalized_one_as_the_lowercase(encoder):
    """Words spelled like padding have no number of their own: the highest number would be beyond the vocabulary."""
    processor = tiny_processor(encoder)
    composed, wide = "gene DNA Ü é ガ", "gene ＤＮＡ Ü é ガ"  # no tokenizer knows wide letters
    written = unicodedata.normalize("NFD", composed)
    processor.build_vocabularies([{"tokens": ["[PAD]", "[UNK]", *written.split()]}], ["words", "chars"])
    assert sorted(processor.vocabularies["words"].values()) == [*range(7)]
    features = [feature for text in (composed, written, wide) for feature, _ in processor.encode_text(text)]
    for name, values in features[0].items():
        assert all(np.array_equal(values, other[name]) for other in features[1:]), name
    capitalized, lowercase, known, unknown = processor.encode([["Gene", "gene", "DNA", "dna"]])[0]["word_ids"]
    assert capitalized == lowercase != known
    assert unknown == processor.vocabularies["words"]["[UNK]"]


def by_length(sentences):
    """A tagger that a test can foretell."""
    return [["LONG" if len(word) > 2 else "SHORT" for word in words] for words in sentences]


@pytest.fixture
def tagged(processor):
    """A processor of a model that reads parts of speech."""
    processor.build_vocabularies([{"tokens": ["x", "gene"], "pos": ["SHORT", "LONG"]}], ["pos"])
    return processor


def test_new_vocabularies_of_the_same_size_are_read(processor):
    for name, expected in (("aab", [[2, 3]]), ("abb", [[3, 2]])):
        processor.build_vocabularies([{"tokens": [name]}], ["chars"])
        assert processor(words=[["ab"]])["char_ids"][0].tolist() == expected


def test_sentences_without_parts_of_speech_get_the_taggers(tagged):
    seen = []
    tagged.pos_tagger = lambda sentences: seen.extend(sentences) or by_length(sentences)
    words = [["x", "gene"], ["gene", "x"], [], ["gene"]]
    features = tagged.encode(words, [[], ["SHORT", "SHORT"], [], []])
    long, short = (tagged.vocabularies["pos"][tag] for tag in ("LONG", "SHORT"))
    assert [feature["pos_ids"].tolist() for feature in features] == [[short, long], [short, short], [], [long]]
    assert tokens(tagged, features[2]) == ["[CLS]", "[SEP]"]
    assert seen == [["x", "gene"], ["gene"]]
    [(feature, _)] = tagged.encode_text("gene x")
    assert feature["pos_ids"].tolist() == [long, short]
    (feature,) = tagged.encode([["x"]], [None], [None], [None])  # null is no context and no tags
    assert (tokens(tagged, feature), feature["pos_ids"].tolist()) == (["[CLS]", "x", "[SEP]"], [short])
    with pytest.raises(ValueError, match=r"A sentence of 3 words \(a b c\) has 1 part-of-speech tags"):
        tagged.encode([["a", "b", "c"]], [["X"]])


def test_text_without_parts_of_speech_is_warned_of_once(tagged, caplog):
    processing_triaffine.logger.warning_once.__func__.cache_clear()
    for _ in range(2):
        features = tagged.encode([["x", "gene"], ["x"]])
    assert [feature["pos_ids"].tolist() for feature in features] == [[1, 1], [1]]
    assert caplog.text.count("trained with parts of speech") == 1


@pytest.mark.parametrize("function", ["pos_tagger", "text_splitter"])
def test_a_function_is_neither_saved_nor_copied(tagged, tmp_path, function):
    setattr(tagged, function, threading.Lock())  # which cannot be copied
    tagged.save_pretrained(tmp_path)
    assert function not in "".join(path.read_text() for path in tmp_path.glob("*.json"))
    assert getattr(TriaffineProcessor.from_pretrained(tmp_path), function) is None
    assert getattr(tagged, function)


@given(text=st.text(st.characters(exclude_categories=()), max_size=80))
def test_any_text_is_encoded_and_every_word_is_seen(processor, text):
    for feature, piece in processor.encode_text(text):
        index = feature["word_index"]
        assert set(index[index >= 0].tolist()) == set(range(feature["num_words"]))
        assert feature["num_words"] == len(piece.offsets)


def test_options_of_a_push_reach_it_whole(encoder, tmp_path, monkeypatch):
    """Also those that only transformers knows."""
    pushed = []
    for base in (ProcessorMixin, PretrainedConfig):
        monkeypatch.setattr(base, "push_to_hub", lambda _, repo_id, **options: pushed.append((repo_id, options)))
    tiny_processor(encoder).save_pretrained(tmp_path, push_to_hub=True, repo_id="owner/name", tags=["genes"])
    TriaffineConfig(num_labels=3).push_to_hub("owner/config", tags=["genes"])
    monkeypatch.chdir(tmp_path)
    tiny_processor(encoder).save_pretrained(".", push_to_hub=True, tags=["genes"])
    options = {"private": True, "tags": ["genes"]}
    assert pushed == [(name, options) for name in ("owner/name", "owner/config", tmp_path.name)]
