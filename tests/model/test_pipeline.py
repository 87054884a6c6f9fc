"""Raw text in, entities out: offsets, batching, policies, inputs of every kind, odd text."""

import copy
import pickle
from collections import deque
from itertools import islice
from operator import length_hint

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
import transformers
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForTokenClassification, AutoTokenizer, BertForTokenClassification
from transformers.dynamic_module_utils import get_class_from_dynamic_module
from transformers.pipelines import PIPELINE_REGISTRY

from modeling_triaffine import NestedNERPipeline, TriaffineConfig, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.model import pipeline_triaffine
from tests.helpers.encoders import make_tokenizer
from tests.helpers.portable import near
from tests.helpers.tiny import save_tiny_model, tiny_model, tiny_pipeline, tiny_processor

TEXTS = [
    "The IL-2 gene binds protein. It is DNA! No gene here.",
    "",
    "gene",
    "naïve café — 中文 gene, emoji 👩‍🔬 and שלום gene.",
]

TINY_BERT = {"vocab_size": 9, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}


@pytest.fixture(scope="module")
def finder(encoder):
    return tiny_pipeline(encoder)


@pytest.mark.parametrize(("batch_size", "read_for_each"), [(1, [1, 2, 3, 4, 5]), (2, [2, 2, 6, 6, 6])])
def test_streams_are_read_as_they_go(finder, batch_size, read_for_each):
    unread = iter(range(10_000))
    stream = finder(("gene binds." for _ in unread), batch_size=batch_size)
    assert [10_000 - length_hint(unread) for _ in islice(stream, 5)] == read_for_each
    for _ in islice(stream, 200):
        pass
    assert 10_000 - length_hint(unread) <= 205 + batch_size * 16


@pytest.mark.parametrize("task", [("token-classification",), ("ner",), ()])
def test_transformers_own_pipeline_function_gives_it(finder, tmp_path, task):
    finder.save_pretrained(tmp_path)
    ways = [{"model": str(tmp_path), **trust} for trust in ({}, {"trust_remote_code": True})]
    if task:
        ways += [{"model": finder.model, name: finder.processor} for name in ("processor", "tokenizer")]
    for way in ways:
        stock = transformers.pipeline(*task, **way, threshold=0.2)
        assert isinstance(stock, NestedNERPipeline)  # no code of the folder
        assert stock(TEXTS[0]) == near(finder(TEXTS[0], threshold=0.2))


def test_a_token_is_in_no_copy_of_the_model(finder, saved_model):
    model = TriaffineForNestedNER.from_pretrained(saved_model, token="hf_secret", revision="main")
    assert model.origin == {"token": "hf_secret", "revision": "main"}
    assert b"hf_secret" not in pickle.dumps(model)
    model.compile()
    copied = copy.deepcopy(model)
    assert (copied.origin, copied._compiled_call_impl) == ({"revision": "main"}, None)  # would run the other's weights
    model._compiled_call_impl = None
    assert NestedNERPipeline(model=model)(TEXTS[0], threshold=0.2) == near(finder(TEXTS[0], threshold=0.2))


def test_code_loaded_from_a_folder_does_not_take_the_place_of_the_package(finder, tmp_path, monkeypatch):
    tasks = PIPELINE_REGISTRY.supported_tasks
    monkeypatch.setitem(tasks, "token-classification", tasks["token-classification"])
    finder.save_pretrained(tmp_path)
    remote = get_class_from_dynamic_module("model_triaffine.TriaffineForNestedNER", str(tmp_path))
    assert remote is not TriaffineForNestedNER
    built = transformers.pipeline("ner", model=finder.model, processor=finder.processor)
    assert isinstance(built, NestedNERPipeline)


def test_a_model_object_that_was_loaded_brings_its_processor(saved_model):
    model = TriaffineForNestedNER.from_pretrained(saved_model)
    found = NestedNERPipeline(model=saved_model)(TEXTS[0], threshold=0.2)
    for component in ({}, {"tokenizer": AutoTokenizer.from_pretrained(saved_model)}, {"tokenizer": str(saved_model)}):
        assert transformers.pipeline("ner", model=model, **component)(TEXTS[0], threshold=0.2) == near(found)
    assert NestedNERPipeline(model, processor=str(saved_model))(TEXTS[0], threshold=0.2) == near(found)
    peft = pytest.importorskip("peft")
    wrapped = peft.get_peft_model(model, peft.LoraConfig(target_modules=["query"]))
    assert transformers.pipeline("ner", model=wrapped)(TEXTS[0], threshold=0.2) == near(found)
    (other := make_tokenizer("bert")).add_tokens(["genes"])
    with pytest.raises(ValueError, match=r"`tokenizer` is .*`processor=`"):
        transformers.pipeline("ner", model=model, tokenizer=other)


def test_given_words_are_the_words(finder):
    """As in transformers, of the text in which blanks join them."""
    words = ["The", "IL-2", "gene.x"]
    found = finder(words, is_split_into_words=True, threshold=0.0)
    assert {entity["word"] for entity in found} <= {" ".join(words[i:j]) for i in range(3) for j in range(i + 1, 4)}
    assert all(" ".join(words)[one["start"] : one["end"]] == one["word"] for one in found)
    for texts in ([words, ["gene"]], iter([words])):
        assert next(iter(finder(texts, is_split_into_words=True, threshold=0.0))) == near(found)


class OwnConfig(TriaffineConfig):
    model_type = "own_ner"
    own_size: int = 5


class OwnModel(TriaffineForNestedNER):
    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.own = torch.nn.Linear(2, 2)
        self.post_init()


def test_a_subclass_of_a_type_of_its_own_is_loaded_with_its_layers(encoder, finder, tmp_path):
    transformers.AutoConfig.register("own_ner", OwnConfig, exist_ok=True)
    AutoModelForTokenClassification.register(OwnConfig, OwnModel, exist_ok=True)
    model = OwnModel.from_encoder(encoder, num_labels=3, own_size=9)
    NestedNERPipeline(model, finder.processor).save_pretrained(tmp_path)
    for made in (NestedNERPipeline(tmp_path), transformers.pipeline("ner", model=str(tmp_path))):
        assert isinstance(made, NestedNERPipeline)
        assert torch.equal(made.model.own.weight, model.own.weight)
        assert made.model.config.own_size == 9


def test_precision_is_that_of_the_caller_or_of_a_model_object(finder, saved_model):
    assert NestedNERPipeline(model=saved_model, dtype=torch.float16).model.dtype == torch.float16
    for dtype in ("auto", "float32", torch.float32):
        assert NestedNERPipeline(finder.model, finder.processor, dtype=dtype).model is finder.model
    with pytest.raises(TypeError, match="'dtype' for a loaded model"):
        NestedNERPipeline(finder.model, finder.processor, dtype="bfloat16")


def test_other_models_keep_the_pipeline_of_transformers(encoder):
    other = BertForTokenClassification.from_pretrained(encoder)
    for arguments in ({"model": other, "tokenizer": make_tokenizer("bert")}, {"model": encoder}):
        built = transformers.pipeline("ner", **arguments)
        assert type(built) is transformers.TokenClassificationPipeline
        assert [entity["word"] for entity in built("gene")] == ["gene"]
    with pytest.raises((OSError, ValueError)):  # neither a tokenizer nor a place to read one from
        transformers.pipeline("ner", model=BertForTokenClassification(other.config.__class__(**TINY_BERT)))


@pytest.mark.parametrize(
    "texts",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS),
        pd.Series(TEXTS, index=list("abcd")),
        pa.chunked_array([TEXTS[:1], TEXTS[1:]]),
        Dataset.from_dict({"text": TEXTS})["text"],
        deque(TEXTS),
        np.array([], dtype=str),
    ],
    ids=lambda texts: f"{type(texts).__name__}-{len(texts)}",
)
def test_a_collection_of_texts_gives_a_list_equal_to_single_texts_and_a_stream(finder, texts):
    found = finder(texts, threshold=0.2)
    assert isinstance(found, list)
    assert found == near([finder(str(text), threshold=0.2) for text in texts])
    assert finder(texts, threshold=0.2, batch_size=1) == near(found)
    assert list(finder((str(text) for text in texts), threshold=0.2, batch_size=3)) == near(found)


def test_a_data_set_of_torch_ends_by_its_length(finder):
    """As people write it, not every row beyond is an IndexError."""

    class OfLength(torch.utils.data.Dataset):
        def __len__(self):
            return len(TEXTS)

        def __getitem__(self, row):
            return TEXTS[row % len(TEXTS)]

    found = finder(OfLength(), threshold=0.2)
    assert list(islice(found, len(TEXTS) + 1)) == near(finder(TEXTS, threshold=0.2))


CALLS = [
    *(({"threshold": value}, ValueError, "`threshold` is ") for value in ("0.5", True, float("nan"), 2)),
    *(({"threshold": {"DNA": value}}, ValueError, "threshold.*DNA") for value in (None, 1.5)),
    ({"threshold": {"RNA": 0.5}}, ValueError, "RNA.*DNA.*protein"),
    *(({"overlap": value}, ValueError, "`overlap` is .*choose one of") for value in ("nonesuch", ["flat"])),
    *(({"batch_size": value}, ValueError, "`batch_size` is ") for value in (0, "2", True)),
    ({"aggregation_strategy": "none"}, ValueError, "`aggregation_strategy`"),
    *(({name: "DNA"}, ValueError, f"`{name}` is .*list of labels") for name in ("labels", "ignore_labels")),
    ({"labels": ["virus"]}, ValueError, "`labels` names .*virus"),
    *(({name: "x"}, TypeError, name) for name in ("stride", "treshold", "revision", "device_map", "config")),
]


@pytest.mark.parametrize(("options", "kind", "fact"), CALLS)
def test_a_keyword_that_cannot_work_is_refused_by_name(finder, options, kind, fact):
    with pytest.raises(kind, match=fact):
        finder(["x"], **options)
    if "batch_size" not in options:
        with pytest.raises(kind, match=fact):
            NestedNERPipeline(model=finder.model, processor=finder.processor, **options)


def test_keywords_of_transformers_work_together(saved_model, tmp_path):
    attention = {"attn_implementation": "eager"}
    where = {"cache_dir": tmp_path, "local_files_only": True, "token": None, "subfolder": "", "revision": "main"}
    how = {"use_safetensors": False, "dtype": torch.float32, "device_map": "cpu", "quantization_config": None}
    config = TriaffineConfig.from_pretrained(saved_model)
    model = TriaffineForNestedNER.from_pretrained(saved_model, config=config, **where, **how, **attention)
    assert model.head.label_bias.isfinite().all()
    parts = {"tokenizer": str(saved_model), "processor": TriaffineProcessor.from_pretrained(saved_model)}
    for options in (
        {**parts, "revision": "main", "use_fast": True, "token": None, "local_files_only": True, "num_workers": 0},
        {"device": "cpu", "dtype": torch.float32, "model_kwargs": attention, "pipeline_class": NestedNERPipeline},
        {"device_map": "cpu", "batch_size": 2, "aggregation_strategy": "simple", "ignore_labels": ["O"]},
        {"torch_dtype": torch.float32, "model_kwargs": {"return_dict": False}},
    ):
        made = transformers.pipeline("ner", model=str(saved_model), trust_remote_code=True, **options)
        assert isinstance(made(TEXTS[0], threshold=0.2), list)
    assert NestedNERPipeline(saved_model.parent, subfolder=saved_model.name).model.origin["subfolder"]
    for name in ("feature_extractor", "image_processor", "made_up"):
        with pytest.raises(TypeError, match=name):
            transformers.pipeline("ner", model=str(saved_model), **{name: object()})


def test_inputs_that_are_not_of_the_processor_and_the_collator_are_refused(finder):
    with pytest.raises(ValueError, match=r"`word_index`.*TriaffineProcessor"):
        finder.model(**finder.processor.tokenizer(TEXTS[0], return_tensors="pt"))
    with pytest.raises(ValueError, match="no `inputs_embeds`"):
        finder.model(**finder.processor(TEXTS[2]), inputs_embeds=torch.zeros(1, 9, 16))
    with pytest.raises(ValueError, match=r"`labels` is \[1, 5\]; .*DataCollatorForNestedNER"):
        finder.model(**finder.processor(TEXTS[2]), labels=torch.zeros(1, 5, dtype=torch.long))


def test_labels_are_kept_or_ignored_as_if_the_model_had_no_others(encoder):
    finder = tiny_pipeline(encoder, multi_label=True)
    text, options = TEXTS[2], {"threshold": 0.0, "aggregation_strategy": "simple"}  # every label of every candidate
    found = finder(text, **options)
    assert {entity["entity_group"] for entity in found} == {"DNA", "protein"}
    without = near([entity for entity in found if entity["entity_group"] != "DNA"])
    assert finder(text, ignore_labels=["DNA", "O", ["PER"]], **options) == without
    assert finder(text, labels=["protein"], **options) == without
    made = NestedNERPipeline(model=finder.model, processor=finder.processor, ignore_labels=("DNA",))
    assert made(text, **options) == without


def test_a_model_in_training_predicts_without_dropout_and_goes_on_training(encoder):
    model = tiny_model(encoder, mlp_dropout=0.5).train()
    model.encoder.eval()  # as where it is frozen
    pipeline = NestedNERPipeline(model=model, processor=tiny_processor(encoder))
    assert pipeline(TEXTS, threshold=0.2) == near(pipeline(TEXTS, threshold=0.2))
    assert (model.training, model.head.training, model.encoder.training) == (True, True, False)
    pipeline.model = tiny_model(encoder, seed=1, mlp_dropout=0.5).train()
    assert pipeline(TEXTS, threshold=0.2) == near(pipeline(TEXTS, threshold=0.2))


def test_pipelines_that_share_a_processor_split_texts_their_own_way(encoder):
    model, processor = tiny_model(encoder), tiny_processor(encoder)
    one = NestedNERPipeline(model=model, processor=processor)
    expected = near(one(TEXTS[0], threshold=0.0))
    other = NestedNERPipeline(model=model, processor=processor, text_splitter=lambda text: [[(0, 3)]])
    assert [entity["word"] for entity in other(TEXTS[0], threshold=0.0)] == ["The"]
    assert one(TEXTS[0], threshold=0.0) == expected


@pytest.mark.parametrize(
    ("inputs", "fact"),
    [
        (3, "int"),
        (b"gene", "bytes.*decoded"),
        ([{"text": "x"}], r"dict.*column"),
        (["x", None], "text 1 .*NoneType"),
        ([["two", "words"]], "list.*one string"),
        (pd.DataFrame({"text": ["x"]}), "DataFrame"),
        ((["two", ""], ["words"]), "text 0 .*'' in place of a word"),
        ((["two"], "words"), "text 1 .*list of words"),
    ],
)
def test_inputs_other_than_texts_are_refused(finder, inputs, fact):
    with pytest.raises(TypeError, match=fact):
        finder(inputs, is_split_into_words=isinstance(inputs, tuple))
    with pytest.raises(TypeError, match="positional"):  # a second text
        finder("gene", inputs)


def test_a_processor_that_does_not_fit_is_refused(encoder, finder):
    with pytest.raises(ValueError, match="max_subwords=192"):
        NestedNERPipeline(model=finder.model, processor=tiny_processor(encoder, max_subwords=50))
    for component in ({}, {"tokenizer": finder.processor.tokenizer}, {"processor": finder.processor.tokenizer}):
        with pytest.raises(ValueError, match=r"`processor` is .*`processor=`"):
            NestedNERPipeline(model=finder.model, **component)


@given(text=st.text(st.characters(exclude_categories=()), max_size=50))
def test_any_text_has_a_result_whose_offsets_slice_back(finder, text):
    for entity in finder(text, threshold=0.3):
        assert text[entity["start"] : entity["end"]] == entity["word"] != ""


def test_texts_without_words_run_through_models_with_word_parts(encoder, tmp_path):
    finder = NestedNERPipeline(save_tiny_model(tmp_path, encoder, ["words", "pos", "chars"]))
    assert finder(["", " ", "gene"], threshold=0.9)[:2] == [[], []]
    with pytest.raises(ValueError, match="The model reads words in addition to sub-words"):
        NestedNERPipeline(model=finder.model, processor=tiny_processor(encoder))


def test_a_tagger_gives_raw_text_its_parts_of_speech(encoder, tmp_path):
    folder, asked = str(save_tiny_model(tmp_path, encoder, ["pos"])), []

    def tagger(sentences):
        asked.extend(sentences)
        return [["N"] * len(words) for words in sentences]

    for made in (NestedNERPipeline(folder, pos_tagger=tagger), transformers.pipeline("ner", folder, pos_tagger=tagger)):
        made("gene x")
    assert asked == [["gene", "x"]] * 2


@pytest.mark.parametrize("fields", [{}, {"cross_span": False}])
def test_scores_that_are_no_numbers_are_warned_of(encoder, caplog, fields):
    """As of large weights in float16, whose entities would silently be missing."""
    finder = tiny_pipeline(encoder, **fields)
    finder.model.words.register_forward_hook(lambda _module, _inputs, output: output * float("nan"))
    pipeline_triaffine.logger.warning_once.__func__.cache_clear()
    assert finder(TEXTS[0], threshold=0.0) == []
    assert "dtype='bfloat16' or 'float32'" in caplog.text


def test_zero_threshold_finds_every_span_and_nothing_else(encoder, caplog):
    pipeline_triaffine.logger.warning_once.__func__.cache_clear()
    for fields in ({"cross_span": False}, {"max_candidates": 7}, {}):  # by default 6, as many as there are spans
        found = tiny_pipeline(encoder, **fields)(["gene binds it", "gene"], threshold=0.0)
        assert [len(entities) for entities in found] == [6, 1]
        assert ("`max_candidates`" in caplog.text) == (not fields)


def test_a_device_that_there_is_not(saved_model, caplog, monkeypatch):
    for device in ("cuda:9", "bogus", "meta"):
        with pytest.raises(ValueError, match=f"There is no device '{device}'"):
            NestedNERPipeline(saved_model, device=device)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert NestedNERPipeline(saved_model, device=0).device.type == "cpu"
    assert "device=0, but torch finds no GPU" in caplog.text
