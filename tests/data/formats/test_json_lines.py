"""JSON of words: this project's lines, and the published experiments' lists."""

from modeling_triaffine.data import load_nested_ner, write_nested_ner
from tests.helpers.corpora import PUBLISHED, RECORD, read, write_json


class TestSentencesOfWords:
    def test_tags_and_context_are_optional(self, tmp_path):
        bare = {key: value for key, value in RECORD.items() if key != "pos"}
        more = {**bare, "id": "a:1", "left_tokens": ["so"]}, {**bare, "id": "a:2", "left_tokens": None}
        records, _ = read(write_json(tmp_path / "a.jsonl", bare, *more))
        context = [(record["left_tokens"], record["right_tokens"]) for record in records]
        assert context == [(None, None), (["so"], []), (None, None)]
        assert [record["pos"] for record in records] == [[], [], []]

    def test_a_file_without_ids_is_one_document_in_order(self, tmp_path):
        bare = {"tokens": RECORD["tokens"], "entities": RECORD["entities"]}
        records, _ = read(write_json(tmp_path / "a.jsonl", bare, bare))
        assert [(record["id"], record["doc_id"], record["sent_id"]) for record in records] == [
            ("a.jsonl:line 1", "a.jsonl", 0),
            ("a.jsonl:line 2", "a.jsonl", 1),
        ]

    def test_a_sentence_longer_than_what_is_looked_at_is_recognized(self, tmp_path):
        words = ["Orsk"] * 20_000
        write_nested_ner({"train": [{**RECORD, "tokens": words, "pos": []}]}, tmp_path, "json_lines")
        assert load_nested_ner(tmp_path)["train"]["tokens"][:] == [words]

    def test_two_types_of_one_span_are_kept_and_duplicates_dropped(self, tmp_path):
        entities = [{"start": 0, "end": 1, "type": kind} for kind in ("A", "B", "A")]
        (record,), check = read(write_json(tmp_path / "a.jsonl", {**RECORD, "entities": entities, "note": "x"}))
        assert record["entities"] == entities[:2]
        assert check.counts == {"duplicate entities dropped": 1, "field 'note' ignored": 1}

    def test_published_records_are_documents_with_context(self, tmp_path):
        file = write_json(tmp_path / "dev.json", PUBLISHED, {**PUBLISHED, "pos": None}, as_list=True)
        records, check = read(file)
        ids = [(record["id"], record["doc_id"], record["sent_id"]) for record in records]
        assert ids == [("dev:0", "dev:0", 0), ("dev:1", "dev:1", 0)]
        assert records[0]["left_tokens"] == ["It", "rained", "."]
        assert records[0]["right_tokens"] == records[1]["pos"] == []
        assert not check.counts
