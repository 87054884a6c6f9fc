"""Label Studio's tasks."""

import pytest

from modeling_triaffine.data import CorpusError
from tests.helpers.corpora import NESTED, read, region, spelled, task, write_json

TEXT = "The mayor of Orsk slept. He woke."


class TestLabelStudio:
    def test_regions_become_entities(self, tmp_path):
        regions = region(0, 17, "Person"), region(13, 17, "City", "Goal")
        records, check = read(write_json(tmp_path / "a.json", task(*regions, data={"text": TEXT}), as_list=True))
        assert spelled(records[0]) == [*NESTED, ("Orsk", "Goal")]
        assert [(record["id"], record["doc_id"]) for record in records] == [("5:0", "5"), ("5:1", "5")]
        assert not check.report()

    def test_tasks_without_a_number_are_counted(self, tmp_path):
        records, _ = read(write_json(tmp_path / "a.json", task(id=None), task(id=None), as_list=True))
        assert [record["id"] for record in records] == ["0:0", "1:0"]

    def test_a_text_of_another_name(self, tmp_path):
        records, _ = read(write_json(tmp_path / "a.json", task(data={"body": "One.", "year": 1}), as_list=True))
        assert records[0]["tokens"] == ["One", "."]

    def test_regions_of_another_text_are_counted(self, tmp_path):
        regions = [{**region(4, 9, "Office"), "to_name": "title"}, {**region(13, 17, "City"), "to_name": "text"}]
        file = write_json(tmp_path / "a.json", task(*regions, data={"text": TEXT, "title": TEXT}), as_list=True)
        records, check = read(file)
        assert spelled(records[0]) == [("Orsk", "City")]
        assert check.counts == {"entities in the text 'title' dropped": 1}

    def test_regions_of_several_texts_of_other_names_are_an_error(self, tmp_path):
        regions = [{**region(4, 9, "Office"), "to_name": name} for name in ("one", "two")]
        with pytest.raises(CorpusError, match=r"result\[1\]\.to_name' is 'two', but that of other regions is 'one'"):
            read(write_json(tmp_path / "a.json", task(*regions, data={"text": TEXT}), as_list=True))

    def test_a_region_without_a_label_is_counted(self, tmp_path):
        unlabelled = {"type": "labels", "value": {"start": 0, "end": 3}}
        _, check = read(write_json(tmp_path / "a.json", task(unlabelled, data={"text": TEXT}), as_list=True))
        assert check.counts == {"spans without a type dropped": 1}

    @pytest.mark.parametrize(
        ("made", "taken"),
        [
            ([{"created_at": "2024-01-01"}, {"created_at": "2024-02-01"}, {"created_at": "2023-12-01"}], 1),
            ([{"created_at": "2024-01-01", "ground_truth": True}, {"created_at": "2024-02-01"}], 0),
            ([{}, {}], 1),
            ([{}, {"was_cancelled": True}], 0),
        ],
    )
    def test_one_of_several_annotations_is_taken(self, tmp_path, made, taken):
        annotations = [{**fields, "result": [region(13, 17, f"X{n}")]} for n, fields in enumerate(made)]
        records, check = read(write_json(tmp_path / "a.json", task(annotations=annotations), as_list=True))
        assert spelled(records[0]) == [("Orsk", f"X{taken}")]
        assert sum(check.counts.values()) == len(made) - 1

    def test_what_is_not_used_is_counted(self, tmp_path):
        others = [{"type": kind} for kind in ("choices", "relation", "choices")]
        regions = [region(0, 17, "Person"), region(0, 3), *others]
        tasks = [task(*regions, predictions=[{}, {}]), {"id": 6, "annotations": [], "data": {"text": "b"}}]
        _, check = read(write_json(tmp_path / "a.json", *tasks, as_list=True))
        assert check.counts == {
            "predictions ignored": 2,
            "spans without a type dropped": 1,
            "results of type 'choices' ignored": 2,
            "results of type 'relation' ignored": 1,
            "tasks without an annotation ignored": 1,
        }
        assert "record 0 (task 5): annotations[0].result[1]" in check.report()
