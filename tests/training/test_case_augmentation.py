"""Training sentences in capitals and in lower case: which these are, and what stays as it is."""

from modeling_triaffine.training.batching import CaseAugmentation, TrainingBatchSampler
from tests.helpers.micro_training import micro_records, micro_trainer

RECORD = {"id": "1", "tokens": ["The", "Straße"], "entities": [], "left_tokens": ["Is"], "right_tokens": None}


def changed(share, epoch=0, seed=3, count=1000):
    sampler = TrainingBatchSampler([(2, 2)] * count, 8, seed)
    sampler.set_epoch(epoch)
    return [" ".join(record["tokens"]) for record in CaseAugmentation([RECORD] * count, share, sampler)]


def test_a_share_of_the_sentences_is_changed_in_every_epoch_others():
    found = changed(0.2)
    assert set(found) == {"The Straße", "THE STRASSE", "the straße"}
    assert all(60 < found.count(other) < 140 for other in ("THE STRASSE", "the straße"))
    assert found == changed(0.2)
    assert found != changed(0.2, epoch=1)
    assert found != changed(0.2, seed=4)
    assert "The Straße" not in changed(1.0)


def test_context_has_the_case_of_its_sentence():
    sampler = TrainingBatchSampler([(2, 2)], 1, seed=0)
    [record] = CaseAugmentation([RECORD], 1.0, sampler)
    assert record["left_tokens"] == ["IS" if record["tokens"][0] == "THE" else "is"]
    assert (record["right_tokens"], record["entities"], RECORD["tokens"][0]) == (None, [], "The")


def test_only_training_sentences_are_changed(tmp_path):
    records = [{**record, "tokens": [word.title() for word in record["tokens"]]} for record in micro_records(8, 0)]
    ids = {}
    for share in (0.0, 1.0):
        trainer = micro_trainer(tmp_path, records, case_augmentation=share)
        loaders = trainer.get_train_dataloader(), trainer.get_eval_dataloader(trainer.train_dataset)
        ids[share] = [
            sorted(number for batch in loader for row in batch["input_ids"].tolist() for number in row)
            for loader in loaders
        ]
    assert ids[0.0][0] != ids[1.0][0]
    assert ids[0.0][1] == ids[1.0][1]
