"""What data a trainer and `start_from_recipe` take: data sets, lists, parts of these; types by name or number."""

import pytest
from datasets import ClassLabel, Dataset, Features, LargeList, List, Value
from torch.utils.data import ConcatDataset, IterableDataset, Subset, random_split

from modeling_triaffine import start_from_recipe
from modeling_triaffine.data import add_context
from tests.helpers.micro_training import micro_dataset, micro_records, micro_trainer, trainer_like, write_recipe

RECORDS = micro_records(6)
NAMES = ["protein", "DNA"]  # in another order than the model's labels
NUMBERED = [
    {
        "tokens": record["tokens"],
        "entities": [{**entity, "type": NAMES.index(entity["type"])} for entity in record["entities"]],
    }
    for record in RECORDS
]


def class_labels(kind=List):
    entity = {"start": Value("int32"), "end": Value("int32"), "type": ClassLabel(names=NAMES)}
    return Dataset.from_list(NUMBERED, features=Features({"tokens": List(Value("string")), "entities": kind(entity)}))


class Stream(IterableDataset):
    def __iter__(self):
        return iter(RECORDS)


ALL = {
    "list": RECORDS,
    "records without some fields": [RECORDS[0], *({n: one[n] for n in ("tokens", "entities")} for one in RECORDS[1:])],
    "class labels": class_labels(),
    "class labels in a large list": class_labels(LargeList),
    "class labels as tensors": class_labels().with_format("torch"),
    "subset of a subset of a list": Subset(Subset(micro_records(9), range(7)), range(6)),
    "random split": random_split(class_labels(), [1.0])[0],
    "concatenated": ConcatDataset([class_labels().select([0, 1]), class_labels().select(range(2, 6))]),
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    trainer = micro_trainer(tmp_path_factory.mktemp("expected"), RECORDS)
    return trainer.evaluate(micro_dataset(RECORDS))["eval_loss"]


@pytest.mark.parametrize("data", ALL.values(), ids=ALL)
def test_all_forms_of_the_same_sentences(data, expected, tmp_path):
    trainer = trainer_like(
        micro_trainer(tmp_path, RECORDS, max_steps=1),
        train_dataset=data,
        eval_dataset={"a": data, "b": micro_dataset(RECORDS)},
    )
    scores = trainer.evaluate()
    assert scores["eval_a_loss"] == pytest.approx(expected)
    assert scores["eval_a_f1"] == scores["eval_b_f1"]
    assert trainer.evaluate(data)["eval_loss"] == pytest.approx(expected)  # given to the call
    assert len(trainer.predict_entities(data)) == 6
    trainer.train()
    model, _, _ = start_from_recipe(write_recipe(tmp_path / "recipe"), {"train": data}, tmp_path)
    assert model.config.entity_labels == ["DNA", "protein"]


REFUSED = {
    "numbers": (NUMBERED, "numbers as types of entities in row 0.*ClassLabel"),
    "stream of torch": (Stream(), r"is a stream \(Stream\).*list\(stream\)"),
    "stream of datasets": (class_labels().to_iterable_dataset(), r"is a stream \(IterableDataset\)"),
    "generator": ((record for record in RECORDS), r"is a stream \(generator\)"),
    "nothing": ([], "has 0 records"),
}


@pytest.mark.parametrize(("data", "fact"), REFUSED.values(), ids=REFUSED)
def test_data_of_another_form_is_an_error_about_the_data(data, fact, tmp_path):
    trainer = micro_trainer(tmp_path, RECORDS)
    with pytest.raises(ValueError, match=f"train_dataset.*{fact}"):
        trainer_like(trainer, train_dataset=data)
    if not fact.startswith("is a stream \\(generator"):
        with pytest.raises(ValueError, match=fact):
            start_from_recipe(write_recipe(tmp_path / "recipe"), {"train": data}, tmp_path)


def test_a_model_that_reads_context_is_trained_and_scored_with_it(tmp_path):
    trainer = micro_trainer(tmp_path, RECORDS, config={"context": "document"})
    for run in (trainer.train, lambda: trainer.evaluate(micro_dataset(RECORDS))):
        with pytest.raises(ValueError, match=r"context of .*'document'.*add_context\(data, 'document', 64\)"):
            run()
    with_context = add_context(micro_dataset(RECORDS), "document", 64)
    assert "eval_f1" in trainer_like(trainer, train_dataset=with_context).evaluate(with_context)
