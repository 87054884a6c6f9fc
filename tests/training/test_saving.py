"""What a run leaves: the facts of its summary, and the recipe that repeats it."""

from modeling_triaffine.publishing.run_summary import Epoch, Label
from modeling_triaffine.training.saving import choose_sentences, describe_labels, read_training_table
from tests.helpers.cards import epoch_scores

RECORDS = [
    {"tokens": ["IL", "-", "2", "binds", "IL"], "entities": [{"start": 0, "end": 3, "type": "protein"}]},
    {
        "tokens": ["the", "(", "IL", ")", "gene"],
        "entities": [{"start": 1, "end": 5, "type": "DNA"}, {"start": 2, "end": 3, "type": "protein"}],
    },
    {"tokens": ["IL"], "entities": [{"start": 0, "end": 1, "type": "protein"}]},
    {"tokens": ["long"] * 30, "entities": [{"start": 0, "end": end, "type": "protein"} for end in range(14, 20)]},
]


def log_entry(epoch: float, step: int, **scores: float) -> dict[str, float]:
    return {**{f"eval_{name}": value for name, value in scores.items()}, "epoch": epoch, "step": step}


def test_training_table_from_the_log():
    log = [
        {"loss": 3.0, "epoch": 0.3, "step": 3},
        {"loss": 2.0, "epoch": 0.9, "step": 9},
        log_entry(1.0, 10, loss=1.5, **epoch_scores(0.1, 0.2, 0.3, 0.4, 0.5), f1_DNA=0.6),
        {"loss": 1.0, "epoch": 1.8, "step": 18},
        log_entry(2.0, 20, loss=0.9),
        log_entry(2.50004, 25, loss=0.8, f1=0.9),
        {"train_runtime": 5.0, "train_loss": 1.0, "epoch": 3.0, "step": 30},
        log_entry(3.0, 30, loss=0.7),  # of an evaluation afterwards
    ]
    nothing = dict.fromkeys(epoch_scores(0.0))
    assert read_training_table(log, kept_step=25) == [
        Epoch(1.0, 2.5, 1.5, False, 10, epoch_scores(0.1, 0.2, 0.3, 0.4, 0.5)),
        Epoch(2.0, 1.0, 0.9, False, 20, nothing),
        Epoch(2.5, None, 0.8, True, 25, {**nothing, "f1": 0.9}),
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
    assert choose_sentences(RECORDS, 2) == ["the (IL) gene", "IL - 2 binds IL"]
    assert choose_sentences(RECORDS, 0) == []
