"""Writers: what was written is read again as the same texts and records, and what a format cannot hold is told."""

from itertools import permutations

import pytest
from datasets import Dataset, DatasetDict
from hypothesis import given, settings
from hypothesis import strategies as st

from modeling_triaffine.data import FEATURES, load_nested_ner, load_texts, write_nested_ner
from modeling_triaffine.data.loading import read_parts
from modeling_triaffine.data.writing import PREDICTION_WRITERS, WRITERS
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import bare, conllu, entity, read, spelled, triples, write_files
from tests.helpers.format_cases import CASES

EXACTLY = {"word_splitter": word_splitter("whitespace"), "sentence_splitter": "lines"}
"""Options of reading by which texts have the words and sentences that were written."""
SUFFIXES = {"json_lines": ".jsonl", "brat": ""}


def record(tokens, *entities, number=0, doc_id="a", **fields):
    """A sentence; its entities are (start, end, type)."""
    return {
        "id": f"{doc_id}:{number}",
        "doc_id": doc_id,
        "sent_id": number,
        "tokens": tokens.split() if isinstance(tokens, str) else tokens,
        "pos": [],
        "entities": [entity(*one) for one in entities],
        "left_tokens": None,
        "right_tokens": None,
        **fields,
    }


def document(text, *entities, doc_id="a", borders=()):
    """A text; its entities are (start, end, type)."""
    return {"doc_id": doc_id, "text": text, "entities": [entity(*one) for one in entities], "borders": list(borders)}


def write(form, rows, folder):
    """Writes a training split; returns its path and what was lost."""
    lost = write_nested_ner({"train": rows}, folder, form)["train"]
    return folder / f"train{SUFFIXES[form]}", lost


def ordered(records):
    """Records whose entities are in one order, whatever order the columns had."""
    return sorted(({**one, "entities": sorted(triples(one))} for one in records), key=lambda one: one["id"])


# Characters that have broken readers elsewhere, and any other; the words of texts have no white space in them.
CHARACTERS = st.sampled_from('aB#-|"\\O😀é。\u200b') | st.characters(exclude_categories=["Cs", "Z", "Cc"])
WORDS = st.text(CHARACTERS, min_size=1, max_size=5).filter(lambda word: word[0] != "\ufeff")
SPACED_WORDS = st.text(CHARACTERS | st.sampled_from(" \u2028\x85\x1c"), min_size=1, max_size=5)
TOKENS = st.lists(WORDS, min_size=1, max_size=7)
SPACED_TOKENS = st.lists(SPACED_WORDS, min_size=1, max_size=7)
TYPES = st.sampled_from(["A", "B", "I-A", "o", "Person/Name", "Ⅳ"])


@st.composite
def corpora(draw, tokens=TOKENS, with_pos=False):
    """Sentences of some documents, numbered from 0, with entities that nest and cross."""
    records = []
    for doc_id in draw(st.lists(st.sampled_from(["a", "b.c", "d/e", "f g"]), unique=True, min_size=1)):
        for number in range(draw(st.integers(1, 3))):
            words = draw(tokens)
            ends = [(start, end) for end in range(1, len(words) + 1) for start in range(end)]
            visible = [(start, end) for start, end in ends if bare("".join(words[start:end]))]
            spans = st.lists(st.tuples(st.sampled_from(visible), TYPES), unique=True, max_size=6 if visible else 0)
            entities = [(start, end, kind) for (start, end), kind in draw(spans)]
            pos = draw(st.sampled_from([[], ["X", *["_"] * (len(words) - 1)]])) if with_pos else []
            records.append(record(words, *entities, number=number, doc_id=doc_id, pos=pos))
    return records


class TestSentences:
    @pytest.mark.parametrize("form", WRITERS)
    @given(data=st.data())
    def test_are_read_again(self, tmp_path_factory, form, data):
        """From brat as words without white space, separated by spaces, with ids that count them."""
        records = data.draw(corpora() if form == "brat" else corpora(SPACED_TOKENS, with_pos=True))
        records = [one if form == "brat" else {**one, "id": f"id {one['id']}"} for one in records]
        path, lost = write(form, records, tmp_path_factory.mktemp("written") / "new")
        again, check = read(path, **(EXACTLY if form == "brat" else {}))
        assert ordered(again) == ordered(records)
        assert not lost
        assert not check.report()

    @pytest.mark.parametrize("format", WRITERS)
    def test_of_splits(self, tmp_path, monkeypatch, format):
        """Of a data set in any format, to the home folder."""
        monkeypatch.setenv("HOME", str(tmp_path))
        nested = record("the mayor é😀 < of & Orsk", (0, 7, "P<&"), (6, 7, "City"))
        splits = {"train": [nested, record("slept", number=1)], "validation": [nested], "test": [nested]}
        corpus = {s: Dataset.from_list(rows, features=FEATURES).with_format("numpy") for s, rows in splits.items()}
        assert not any(write_nested_ner(DatasetDict(corpus), "~/new/corpus", format).values())
        again = load_nested_ner(tmp_path / "new" / "corpus", **(EXACTLY if format == "brat" else {}))
        assert {split: ordered(rows) for split, rows in again.items()} == {s: ordered(r) for s, r in splits.items()}

    def test_what_brat_cannot_hold(self, tmp_path):
        with pytest.raises(ValueError, match="cannot represent"):
            write("brat", [record("fine", doc_id="z"), record("a", (0, 1, "two words"))], tmp_path / "b")
        assert not (tmp_path / "b").exists()

    @pytest.mark.parametrize("doc_id", ["", "..", "../a", "/a", "a//b", "a/", "./a", "b/.a", "a\0"])
    def test_document_names_stay_in_the_folder(self, tmp_path, doc_id):
        with pytest.raises(ValueError, match="not a valid file name, which brat"):
            write("brat", [record("a", doc_id=doc_id)], tmp_path / "b")

    @pytest.mark.parametrize("broken", [record([], number=1), record("a", (0, 2, "X"), number=1), {"text": "a"}])
    def test_what_no_reader_takes(self, tmp_path, broken):
        with pytest.raises(ValueError, match=r"^split 'train', row 1: "):
            write_nested_ner({"train": [record("a"), broken]}, tmp_path / "new", "json_lines")


# Byte order marks, line ends, decomposed letters, emoji (two UTF-16 units), words without spaces between them.
WRITTEN = st.text(st.sampled_from('aB\r\n\t  .#|\\"<&e\u0301é😀市长\u200b\ufeff\x85\u2028'), min_size=1, max_size=12)


@st.composite
def texts(draw):
    """Texts with entities that begin and end with a visible character."""
    documents = []
    for doc_id in draw(st.lists(st.sampled_from(["a", "b.c", "d/e", "f g"]), unique=True, min_size=1, max_size=2)):
        text = draw(WRITTEN)
        spans = [(start, end) for end in range(1, len(text) + 1) for start in range(end)]
        # White space at the boundaries of an entity is no part of it.
        visible = [(start, end) for start, end in spans if bare(text[start]) and bare(text[end - 1])]
        chosen = draw(st.lists(st.tuples(st.sampled_from(visible), TYPES), max_size=4)) if visible else []
        documents.append(document(text, *((*span, kind) for span, kind in chosen), doc_id=doc_id))
    return documents


class TestTexts:
    @pytest.mark.parametrize(("first", "second"), permutations(["json_lines", "brat"]))
    @settings(max_examples=10)
    @given(documents=texts())
    def test_stay_as_they_are_from_form_to_form(self, tmp_path_factory, first, second, documents):
        folder = tmp_path_factory.mktemp("written")
        path, lost = write(first, documents, folder / "one")
        again = load_texts(path)["train"]
        path, lost_again = write(second, again, folder / "two")
        (found,) = load_texts(path).values()
        expected = {one["doc_id"]: (one["text"], sorted(map(str, one["entities"]))) for one in documents}
        assert {one["doc_id"]: (one["text"], sorted(map(str, one["entities"]))) for one in found} == expected
        assert not lost + lost_again

    @pytest.mark.parametrize("format", CASES)
    def test_of_every_format_are_read_again(self, tmp_path, format):
        """With their words, sentences, ids and parts of speech from JSON, with their offsets from brat."""
        path = write_files(tmp_path / "in", CASES[format].sample())
        texts = load_texts(path, format)["train"]
        write_nested_ner({"train": texts}, tmp_path / "json", "json_lines")
        assert load_texts(tmp_path / "json")["train"] == [
            {name: value for name, value in text.items() if name != "split"} for text in texts
        ]
        rows, again = (load_nested_ner(*of)["train"] for of in ((path, format), (tmp_path / "json",)))
        assert list(again) == list(rows)
        (before,), (after,) = read_parts(path, format), read_parts(tmp_path / "json")
        assert (after.is_written, after.has_words) == (before.is_written, before.has_words)
        write_nested_ner({"train": texts}, tmp_path / "brat", "brat")
        for before, after in zip(texts, load_texts(tmp_path / "brat")["train"], strict=True):
            assert (after["text"], sorted(triples(after))) == (before["text"], sorted(triples(before)))

    def test_words_that_share_characters_stay(self, tmp_path):
        """Of a multi-word token, each word has its form and its entities."""
        rows = (
            "# text = du Maire\n1-2\tdu" + "\t_" * 8 + "\n" + conllu("", "(1-City", "1)", words=["de", "le", "Maire"])
        )
        path = write_files(tmp_path, {"a.conllu": rows})
        write_nested_ner(load_texts(path), tmp_path / "out", "json_lines")
        (row,) = load_nested_ner(tmp_path / "out")["train"]
        assert (row["tokens"], spelled(row)) == (["de", "le", "Maire"], [("le Maire", "City")])

    def test_what_forms_change_is_counted(self, tmp_path):
        text = document("a\r\nb", (0, 3, "X"), borders=[3])
        _, lost = write("json_lines", [text], tmp_path / "a")
        (again,) = load_texts(tmp_path / "a")["train"]
        assert (again["text"], again["borders"], lost) == ("a\r\nb", [3], {})
        path, lost = write("brat", [text], tmp_path / "b")
        assert lost == {"values of borders": 1, "line ends at the boundaries of entities": 1}
        assert (path / "a.txt").read_bytes() == b"a\r\nb"
        assert (path / "a.ann").read_text() == "T1\tX 0 1\ta\n"

    def test_line_ends_are_one_character_in_predictions_for_brat(self, tmp_path):
        """Programs that translate line ends and those that do not find the same characters at an offset."""
        predicted = document("mayor\r\nof Orsk\rnow", (0, 14, "X"))
        predicted["entities"][0]["score"] = 0.5
        PREDICTION_WRITERS["brat"]([predicted], tmp_path / "b")
        assert (tmp_path / "b" / "a.txt").read_bytes() == b"mayor \nof Orsk\nnow"
        assert (tmp_path / "b" / "a.ann").read_bytes() == (
            b"T1\tX 0 6;7 14\tmayor  of Orsk\n#1\tAnnotatorNotes T1\tscore 0.5000\n"
        )

    @pytest.mark.parametrize("form", WRITERS)
    def test_of_another_text_are_refused(self, tmp_path, form):
        with pytest.raises(ValueError, match=r"row 0: the entity .* is outside of its text"):
            write(form, [document("a", (0, 2, "X"))], tmp_path / "a")


class TestFolder:
    def test_must_be_new_or_empty_and_stays_so_after_an_error(self, tmp_path):
        with pytest.raises(ValueError, match="'tokens' is"):
            write_nested_ner({"train": [record("a")], "test": [record([])]}, tmp_path)
        write_nested_ner({"train": [record("a")]}, tmp_path)
        with pytest.raises(FileExistsError, match="is not empty"):
            write_nested_ner({"train": [record("a")]}, tmp_path, "json_lines")

    def test_duplicates_and_other_fields_are_counted(self, tmp_path):
        lost = write("json_lines", [record("a", (0, 1, "X"), (0, 1, "X"), note="b")], tmp_path / "new")[1]
        assert lost == {"duplicate entities dropped": 1, "field 'note' ignored": 1}

    def test_wrong_arguments(self, tmp_path):
        with pytest.raises(TypeError, match=r'type Dataset\. Give \{"train": data\}'):
            write_nested_ner(Dataset.from_list([record("a")], features=FEATURES), tmp_path / "new", "json_lines")
        with pytest.raises(ValueError, match=r"'nonesuch'.*json_lines, brat"):
            write_nested_ner({"train": []}, tmp_path / "new", "nonesuch")


class TestConvert:
    def test_texts_stay_byte_for_byte_and_words_get_a_line(self, tmp_path, command):
        """Entities that no words could hold, and line ends, too."""
        text = "Somatic-cell\r\n😀 市长 CD28-positive \n".encode()
        annotations = "T1\tX 0 7\tSomatic\nT2\tX 16 17\t市\nT3\tX 19 21\tCD\nT4\tX 19 24\tCD28-\n"
        write_files(tmp_path / "in" / "train", {"a/b.txt": text, "a/b.ann": annotations})
        assert "train: texts 1, entities 4.\n" in command("convert", tmp_path / "in", tmp_path / "1").err
        command("convert", tmp_path / "1", tmp_path / "2")
        command("convert", tmp_path / "2", tmp_path / "3", "--to", "brat")
        for suffix in (".txt", ".ann"):
            again, first = ((tmp_path / folder / "train" / "a" / f"b{suffix}").read_bytes() for folder in ("3", "in"))
            assert again == first

    def test_what_is_not_kept_is_told(self, tmp_path, command):
        (tmp_path / "a.conll").write_text("Orsk NNP B-NP B-City\n")
        columns = "tokens=0 pos=1 entities=3"
        result = command("convert", tmp_path / "a.conll", tmp_path / "out", "--to", "brat", "--columns", columns)
        assert "entities 1; values of pos not kept: 1." in result.err

    @pytest.mark.parametrize("column", ["entities", "entities=", "entities=a", "tokens=a", "=1", "entities=1,a"])
    def test_wrong_columns(self, command, tmp_path, column):
        (tmp_path / "a.conll").write_text("Orsk B-City\n")
        assert command("convert", tmp_path / "a.conll", tmp_path / "out", "--columns", column).code == 2
