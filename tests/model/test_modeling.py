"""The whole model: every part and encoder option, independence of batch and padding, saving and loading."""

import pytest
import torch
from accelerate import infer_auto_device_map
from transformers import AutoModel, AutoModelForTokenClassification

from modeling_triaffine import DataCollatorForNestedNER, TriaffineConfig, TriaffineForNestedNER
from modeling_triaffine.model.repository_triaffine import broken_weights
from modeling_triaffine.new_model import match_low_rank_start, words_of_random_subwords
from tests.helpers.corpora import entity
from tests.helpers.encoders import FIELDS as ENCODERS
from tests.helpers.encoders import SIZES, save_encoder
from tests.helpers.factors import FACTORS, HAVE_TENSORS, WITHOUT_WORDS, fields_of
from tests.helpers.faults import assert_same_weights
from tests.helpers.tiny import LABELS, tiny_model, tiny_processor

SENTENCES = [["IL2", "gene", "binds"], ["protein"], ["the", "gene", "protein", "binds", "DNA", "."]]
ENTITIES = [[entity(0, 2, "DNA"), entity(0, 1, "protein")], [], [entity(1, 3, "protein")]]
PARTS = {
    "word_embedding_size": 3,
    "pos_embedding_size": 2,
    "char_embedding_size": 3,
    "char_lstm_hidden_size": 2,
    "word_vocab_size": 20,
    "pos_vocab_size": 10,
    "char_vocab_size": 50,
}
VARIANTS = {
    "full": {},
    "rank": {"triaffine_rank": 3},
    "no_cross_span": {"cross_span": False},
    **{"-".join(pair): fields_of(*pair) for pair in [*FACTORS[1:], *WITHOUT_WORDS]},
    "no_lstm": {"lstm_hidden_size": 0, "subword_pooling": "mean"},
    "mixed_layers": {"mix_layers": True, "cross_span_residual": True, "subword_pooling": "first"},
    "word_parts": PARTS,
    "word_parts_no_lstm": {**PARTS, "lstm_hidden_size": 0},
}


def make_batch(encoder, model, order=(0, 1, 2)):
    processor = tiny_processor(encoder)
    records = [{"tokens": words, "pos": ["X"] * len(words)} for words in SENTENCES]
    if model.config.word_embedding_size:
        processor.build_vocabularies(records, ["words", "pos", "chars"])
    features = processor.encode(SENTENCES, [record["pos"] for record in records])
    for feature, entities in zip(features, ENTITIES, strict=True):
        feature["entities"] = entities
    collator = DataCollatorForNestedNER(processor, model.config.label2id)
    return collator([features[n] for n in order])


@pytest.mark.parametrize("variant", VARIANTS)
def test_loss_and_gradients_do_not_depend_on_order_or_padding(encoder, variant):
    model = tiny_model(encoder, **VARIANTS[variant]).double()

    def run(batch):
        model.zero_grad()
        output = model(**batch)
        output.loss.backward()
        return output, {name: value.grad.clone() for name, value in model.named_parameters()}

    plain, gradients = run(make_batch(encoder, model))
    assert set(gradients) == {name for name, _ in model.named_parameters()}
    turned, turned_gradients = run(make_batch(encoder, model, (2, 0, 1)))
    torch.testing.assert_close(turned.loss, plain.loss, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(turned_gradients, gradients, rtol=1e-7, atol=1e-9)
    # One by one: the mean of the sentences' own losses, and the same scores.
    alone = [model(**make_batch(encoder, model, (n,))) for n in range(3)]
    torch.testing.assert_close(torch.stack([one.loss for one in alone]).mean(), plain.loss, rtol=1e-9, atol=1e-9)
    for n, one in enumerate(alone):
        size = one.span_logits.shape[1]
        torch.testing.assert_close(one.span_logits[0], plain.span_logits[n, :size, :size], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("variant", VARIANTS)
def test_saved_model_gives_equal_scores(encoder, tmp_path, variant):
    model = tiny_model(encoder, **VARIANTS[variant])
    model.save_pretrained(tmp_path)
    batch = make_batch(encoder, model)
    expected = model(**batch)
    for auto_class in (AutoModel, AutoModelForTokenClassification, TriaffineForNestedNER):
        loaded = auto_class.from_pretrained(tmp_path)
        assert type(loaded) is TriaffineForNestedNER
        output = loaded(**batch)
        torch.testing.assert_close(output.loss, expected.loss)
        torch.testing.assert_close(output.span_logits, expected.span_logits)


def test_attention_maps_and_hidden_states_on_request(encoder):
    model = tiny_model(encoder)
    batch = make_batch(encoder, model)
    plain = model(**batch)
    assert plain.span_attentions is plain.cross_span_attentions is plain.hidden_states is None
    model.set_attn_implementation("eager")  # as transformers requires for the field, not for the argument
    full = model(**batch, output_attentions=True, output_hidden_states=True)
    model.config.output_attentions = model.config.output_hidden_states = True
    torch.testing.assert_close(model(**batch).to_tuple(), full.to_tuple())
    assert model(**batch, output_attentions=False).span_attentions is None
    count = full.candidates.shape[1]
    assert full.span_attentions.shape == (3, count, 6, 3)
    assert full.cross_span_attentions.shape == (3, count, count, 3)
    assert len(full.hidden_states) == 3


def test_mixed_layers_start_as_their_mean(encoder):
    model = tiny_model(encoder, mix_layers=True)
    batch = make_batch(encoder, model)
    layers = model(**batch, output_hidden_states=True).hidden_states[1:]
    mean = torch.stack(layers).mean(0)
    torch.testing.assert_close(model.words.layer_mix(layers), mean)
    scores = model(**batch).span_logits
    model.words.layer_mix.forward = lambda hidden_states: mean
    torch.testing.assert_close(model(**batch).span_logits, scores)
    model.words.layer_mix.forward = lambda hidden_states: layers[-1]
    assert not torch.allclose(model(**batch).span_logits, scores)


@pytest.mark.parametrize("readout", ["both_ends", "last_character"])
def test_characters_of_words_that_occur_twice_are_read_once(encoder, readout):
    """In prediction; as in training, whose dropouts are off here, where all words are read side by side."""
    model = tiny_model(encoder, **PARTS, char_readout=readout, char_dropout=0.0)
    char_ids = torch.tensor([[[2, 3, 4, 0], [5, 0, 0, 0], [2, 3, 4, 0]], [[0, 0, 0, 0], [5, 0, 0, 0], [3, 3, 6, 7]]])
    with torch.no_grad():
        torch.testing.assert_close(
            model.eval().words._character_states(char_ids), model.train().words._character_states(char_ids)
        )


def test_initialisation_is_torchs_own_and_the_papers(encoder):
    torch.manual_seed(0)
    fields = {"id2label": dict(enumerate(LABELS)), "triaffine_dim": 40, "lstm_hidden_size": 30, **PARTS}
    model = TriaffineForNestedNER.from_encoder(encoder, **fields)
    assert model.head.attention.triaffine.weight.std().item() == pytest.approx(0.01, rel=0.05)
    linear = model.head.attention.inside[3]
    assert linear.weight.abs().max() <= 1 / 40**0.5
    assert linear.weight.std().item() == pytest.approx(1 / (3 * 40) ** 0.5, rel=0.1)
    assert (linear.bias != 0).all()
    assert model.words.char_embedding.weight.std().item() == pytest.approx(1, rel=0.2)
    pretrained = AutoModel.from_pretrained(encoder)
    for name, value in model.encoder.named_parameters():
        assert torch.equal(value, pretrained.state_dict()[name])


def test_from_encoder_takes_a_config_or_fields(encoder):
    config = TriaffineConfig(num_labels=3, hidden_size=999, triaffine_dim=7, lstm_hidden_size=4)
    model = TriaffineForNestedNER.from_encoder(encoder, config, attn_implementation="eager")
    assert (model.config.hidden_size, model.config.triaffine_dim) == (16, 7)
    assert model.encoder.config._attn_implementation == "eager"
    with pytest.raises(ValueError, match="not both"):
        TriaffineForNestedNER.from_encoder(encoder, config, triaffine_dim=3)
    with pytest.raises(ValueError, match="from_encoder"):
        TriaffineForNestedNER(TriaffineConfig(num_labels=3))
    with pytest.raises(ValueError, match=r"from_encoder: TriaffineConfig has no field 'dtype'"):
        TriaffineForNestedNER.from_encoder("somewhere", num_labels=3, dtype=torch.bfloat16)


def test_half_precision_encoders_become_float32_models(encoder, tmp_path):
    AutoModel.from_pretrained(encoder).half().save_pretrained(tmp_path)
    model = tiny_model(str(tmp_path))
    assert {value.dtype for value in model.parameters()} == {torch.float32}
    assert model(**make_batch(encoder, model)).loss.isfinite()


@pytest.mark.parametrize(
    ("kind", "fields", "most"),
    [
        ("roberta", {}, 32),  # its positions begin after the padding index
        ("bert", {}, 34),
        ("deberta-v2", ENCODERS["deberta-v2"] | {"position_biased_input": True}, 34),
        ("deberta-v2", ENCODERS["deberta-v2"], None),  # relative positions have no limit
    ],
)
def test_positions_of_the_encoder_limit_the_subwords(kind, fields, most):
    encoder = {**SIZES, "vocab_size": 20, "max_position_embeddings": 34, "pad_token_id": 1, **fields}
    fields = {"encoder_config": {"model_type": kind, **encoder}, "num_labels": 3, "triaffine_dim": 4}
    TriaffineForNestedNER(TriaffineConfig(**fields, max_subwords=most or 80))
    if most:
        with pytest.raises(ValueError, match=f"at most {most}"):
            TriaffineForNestedNER(TriaffineConfig(**fields, max_subwords=most + 1))


def test_devices_share_the_model_between_its_parts_but_no_part(encoder):
    model = tiny_model(encoder, **PARTS)
    size = sum(weight.nbytes for weight in model.parameters())
    for share in range(5, 100, 5):
        memory = {0: size * share // 100, 1: 2 * size}
        places = infer_auto_device_map(model, memory, no_split_module_classes=list(model._no_split_modules))
        assert not [name for name in places if name.startswith(("head.", "words."))]


@pytest.mark.parametrize(("rank", "dim"), [(16, 32), pytest.param(64, 128, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("lstm_hidden_size", [0, 32])
@pytest.mark.parametrize(("attention", "scoring"), HAVE_TENSORS)
def test_low_rank_scores_start_with_about_unit_variance(tmp_path, attention, scoring, rank, dim, lstm_hidden_size):
    """Words may come near 0 from a BiLSTM, or at full size from the encoder, whose numbers have variance 1 here."""
    encoder = save_encoder("bert", tmp_path, hidden_size=64)
    labels = {"id2label": dict(enumerate([*map(str, range(15)), "None"]))}
    sizes = {"triaffine_rank": rank, "triaffine_dim": dim, "lstm_hidden_size": lstm_hidden_size}
    model = tiny_model(encoder, **labels, **sizes, attention=attention, scoring=scoring)
    hidden = words_of_random_subwords(model)
    for factor in model.head.factors(model.head.project(hidden)):
        assert 0.5 < factor.whole_cube().square().mean().sqrt() < 2
    before = {name: weight.clone() for name, weight in model.head.named_parameters()}
    match_low_rank_start(model)  # they fit already
    assert all(torch.allclose(weight, before[name], rtol=1e-3) for name, weight in model.head.named_parameters())


# ---- What users of transformers do with a model


def test_the_base_model_is_the_encoder(encoder):
    model = tiny_model(encoder)
    model.base_model.requires_grad_(False)
    trained = {name.split(".")[0] for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained == {"words", "head"}


def test_a_compiled_encoder_is_saved_under_its_own_names(encoder, tmp_path):
    model = tiny_model(encoder)
    expected = {name: weight.clone() for name, weight in model.state_dict().items()}
    model.encoder = torch.compile(model.encoder, backend="eager")
    model.save_pretrained(tmp_path)
    assert_same_weights(TriaffineForNestedNER.from_pretrained(tmp_path).state_dict(), expected)


def test_the_head_is_not_left_on_disk(saved_model, tmp_path):
    device_map = {"encoder": "cpu", "words": "cpu", "head": "disk"}
    with pytest.raises(ValueError, match="place 'head' on a device"):
        TriaffineForNestedNER.from_pretrained(saved_model, device_map=device_map, offload_folder=tmp_path)


def test_resized_embeddings_are_saved_with_their_size(saved_model, tmp_path):
    model = TriaffineForNestedNER.from_pretrained(saved_model)
    model.resize_token_embeddings(300)
    model.save_pretrained(tmp_path)
    loaded = TriaffineForNestedNER.from_pretrained(tmp_path)
    assert loaded.config.encoder_config.vocab_size == len(loaded.get_input_embeddings().weight) == 300


def test_quantized_weights_are_not_computed_with(encoder):
    """Their types may have no sum."""

    class Quantized(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), keywords=None):
            if function is torch.Tensor.sum:
                raise NotImplementedError("sum")
            return super().__torch_function__(function, types, arguments, keywords or {})

    model = tiny_model(encoder)
    query = model.encoder.encoder.layer[0].attention.self.query
    query.weight = torch.nn.Parameter(query.weight.detach().as_subclass(Quantized), requires_grad=False)
    assert type(query.weight) is not torch.nn.Parameter
    assert broken_weights(model) == []
