"""The summary of a run: where its facts come from."""

import torch
import transformers

from modeling_triaffine.environment import describe_hardware, describe_versions
from modeling_triaffine.publishing.run_summary import Epoch, Label
from modeling_triaffine.training.summary import choose_sentences, describe_labels, read_training_table
from modeling_triaffine.version import __version__
from tests.helpers.cards import epoch_scores


def log_entry(epoch: float, step: int, **scores: float) -> dict[str, float]:
    return {**{f"eval_{name}": value for name, value in scores.items()}, "epoch": epoch, "step": step}


def test_training_table_from_the_log():
    log = [
        {"loss": 3.0, "epoch": 0.3, "step": 3},
        {"loss": 2.0, "epoch": 0.9, "step": 9},
        log_entry(1.0, 10, loss=1.5, **epoch_scores(0.1, 0.2, 0.3, 0.4, 0.5), f1_DNA=0.6),
        log_entry(1.5, 15, loss=1.0),
        {"loss": 1.0, "epoch": 1.8, "step": 18},
        log_entry(2.0, 20, loss=0.9),
        log_entry(2.50004, 25, loss=0.8, f1=0.9),
        log_entry(3.0, 30, loss=0.7, f1=0.1),
        {"train_runtime": 5.0, "train_loss": 1.0, "epoch": 3.0, "step": 30},
        log_entry(3.0, 30, loss=0.7),  # of an evaluation afterwards
    ]
    nothing = dict.fromkeys(epoch_scores(0.0))
    assert read_training_table(log, kept_step=25) == [
        Epoch(1.0, 2.5, 1.5, False, 10, epoch_scores(0.1, 0.2, 0.3, 0.4, 0.5)),
        Epoch(1.5, None, 1.0, False, 15, nothing),
        Epoch(2.0, 1.0, 0.9, False, 20, nothing),
        Epoch(2.5, None, 0.8, True, 25, {**nothing, "f1": 0.9}),
        Epoch(3.0, None, 0.7, False, 30, {**nothing, "f1": 0.1}),
    ]
    assert read_training_table([], kept_step=0) == []


RECORDS = [
    {"tokens": ["IL", "-", "2", "binds", "IL"], "entities": [{"start": 0, "end": 3, "type": "protein"}]},
    {
        "tokens": ["the", "(", "IL", ")", "gene"],
        "entities": [{"start": 1, "end": 5, "type": "DNA"}, {"start": 2, "end": 3, "type": "protein"}],
    },
    {"tokens": ["IL"], "entities": [{"start": 0, "end": 1, "type": "protein"}]},
    {"tokens": ["long"] * 30, "entities": [{"start": 0, "end": end, "type": "protein"} for end in range(14, 20)]},
]


def test_labels_are_counted_with_their_commonest_spellings():
    described = describe_labels(RECORDS, ["DNA", "protein", "RNA"], spellings=2)
    assert described == {
        "DNA": Label(1, ["(IL) gene"]),
        "protein": Label(9, ["IL", "IL - 2"]),
        "RNA": Label(0, []),
    }
    assert describe_labels(RECORDS, ["DNA"], spellings=0) == {"DNA": Label(1, [])}
    assert describe_labels(RECORDS[3:], ["protein"], spellings=1)["protein"].examples == [" ".join(["long"] * 14)]


def test_shown_sentences_fit_into_a_line_and_nest():
    assert choose_sentences(RECORDS, 2, {}) == ["the (IL) gene", "IL - 2 binds IL"]
    assert len(choose_sentences(RECORDS, 9, {})) == 4
    assert choose_sentences(RECORDS, 0, {}) == []
    of_document = {**RECORDS[0], "doc_id": "a"}
    assert choose_sentences([of_document], 1, {"a": "It is so: IL-2\n binds IL."}) == ["IL-2 binds IL"]
    assert choose_sentences([of_document], 1, {"a": "Another text."}) == ["IL - 2 binds IL"]


def test_hardware_and_versions():
    versions = describe_versions()
    assert versions["modeling_triaffine"] == __version__
    # PyPI's CUDA builds leave the local part of the version, as in 2.13.0+cu130, out of their metadata.
    assert torch.__version__.startswith(versions["torch"])
    assert versions["transformers"] == transformers.__version__
    hardware = describe_hardware()
    assert hardware["cores"] >= 1
    assert not set(versions) & set(hardware)
