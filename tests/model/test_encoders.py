"""Ten architectures as the encoder: trained for a step, saved and loaded with equal scores; what some cannot do."""

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoProcessor

from modeling_triaffine import DataCollatorForNestedNER, NestedNERTrainer, TriaffineConfig, TriaffineForNestedNER
from modeling_triaffine.data.collator import encode_records
from modeling_triaffine.training import NestedNERTrainingArguments
from modeling_triaffine.training.interruptions import ACTIVATION_CHECKPOINTING
from tests.helpers.encoders import FIELDS, SIZES, save_encoder
from tests.helpers.tiny import tiny_model, tiny_processor

MAX_SUBWORDS = 24
SENTENCES = ["IL2 gene binds", "protein", "the gene protein binds the DNA .", "the gene " * MAX_SUBWORDS]  # in windows
ENTITIES = [[(0, 2, "DNA"), (0, 1, "protein")], [], [(1, 3, "protein")], [(1, 2, "DNA")]]
RECORDS = [
    {"tokens": sentence.split(), "entities": [{"start": start, "end": end, "type": kind} for start, end, kind in found]}
    for sentence, found in zip(SENTENCES, ENTITIES, strict=True)
]
NO_CHECKPOINTING = {"albert"}  # transformers cannot checkpoint these
# Weights that no gradient reaches: Longformer's global attention, which has no sub-words here. Several processes train
# such an encoder with `ddp_find_unused_parameters=True` only.
UNUSED = {"longformer": {f"{name}_global" for name in ("query", "key", "value")}}
NIGHTLY = {"distilbert", "xlm-roberta"}  # relatives of the others, which break with them


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.nightly] if name in NIGHTLY else []) for name in FIELDS],
)
def architecture(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def folder(architecture, tmp_path_factory) -> str:
    """A saved encoder of the architecture; only to be read."""
    return save_encoder(architecture, tmp_path_factory.mktemp(architecture))


@pytest.fixture
def model(folder) -> TriaffineForNestedNER:
    return tiny_model(folder, max_subwords=MAX_SUBWORDS)


@pytest.fixture
def processor(folder):
    return tiny_processor(folder, max_subwords=MAX_SUBWORDS)


def batch_of(model, processor, records=RECORDS) -> dict[str, torch.Tensor]:
    return DataCollatorForNestedNER(processor, model.config.label2id)(encode_records(processor, records))


def test_scores_are_equal_after_a_step_of_training_and_reloading(architecture, model, processor, tmp_path):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    options = {"max_steps": 1, "encoder_learning_rate": 1e-3, "disable_tqdm": True, "use_cpu": True}
    options[ACTIVATION_CHECKPOINTING] = architecture not in NO_CHECKPOINTING
    arguments = NestedNERTrainingArguments(str(tmp_path), **options)
    trainer = NestedNERTrainer(model, arguments, processing_class=processor, train_dataset=RECORDS)
    trainer.train()
    trainer.save_model()
    moved = {name.split(".")[0] for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"encoder", "words", "head"}

    model.eval()
    loaded = AutoModel.from_pretrained(tmp_path)
    assert type(loaded.encoder) is type(model.encoder)
    inputs = AutoProcessor.from_pretrained(tmp_path)(words=[record["tokens"] for record in RECORDS])
    with torch.no_grad():
        expected, output = model(**inputs), loaded(**inputs)
    torch.testing.assert_close(output.span_logits, expected.span_logits)
    torch.testing.assert_close(output.logits, expected.logits)


def test_words_are_cut_as_in_running_text(processor):
    """The pieces of words behind the first: tokenizers differ in whether a text begins with a space."""
    in_text = processor.tokenizer("the gene binds", add_special_tokens=False)["input_ids"]
    feature = processor.encode([["the", "gene", "binds"]])[0]
    assert list(feature["word_index"]) == [-1, 0, 1, 2, -1]
    assert list(feature["input_ids"][2:4]) == in_text[-2:]


def test_a_batch_does_not_change_a_sentence(model, processor):
    model.double()
    with torch.no_grad():
        joined = model(**batch_of(model, processor))
        for n, record in enumerate(RECORDS):
            alone = model(**batch_of(model, processor, [record]))
            size = len(record["tokens"])
            torch.testing.assert_close(joined.span_logits[n, :size, :size], alone.span_logits[0], rtol=1e-9, atol=1e-9)


def test_every_weight_is_trained_but_those_known_to_be_idle(architecture, model, processor):
    model(**batch_of(model, processor)).loss.backward()
    idle = {name.split(".")[-2] for name, value in model.named_parameters() if value.grad is None}
    assert idle == UNUSED.get(architecture, set())


def test_an_encoder_that_always_calls_its_pooler_runs_without_it():
    encoder = AutoConfig.for_model("layoutlm", **SIZES, vocab_size=20, max_position_embeddings=30)
    config = TriaffineConfig(encoder_config=encoder, num_labels=3, triaffine_dim=4, max_subwords=20)
    model = TriaffineForNestedNER(config).eval()
    assert not [name for name, _ in model.named_parameters() if "pooler" in name]
    inputs = {"input_ids": [[2, 5, 3]], "attention_mask": [[1, 1, 1]], "word_index": [[-1, 0, -1]], "num_words": [1]}
    output = model(**{name: torch.tensor(values) for name, values in inputs.items()})
    assert output.span_logits.isfinite().all()
