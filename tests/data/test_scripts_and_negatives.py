"""Chinese, Japanese and Korean text; sentences without entities in every form, in training and in scores."""

import json

import pytest
import torch

from modeling_triaffine import DataCollatorForNestedNER
from modeling_triaffine.evaluation import score_entities
from modeling_triaffine.evaluation.prediction import predict_words
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import (
    BIGBIO_RECORD,
    BIOC_DOCUMENT,
    PUBLISHED,
    RECORD,
    TEXT,
    TOKENS,
    conllu,
    read,
    task,
    write_files,
    write_json,
)
from tests.helpers.tiny import tiny_model, tiny_processor


def annotated(text, *entities):
    """A record of texts with spans; entities are (words, type), each where it first occurs."""
    spans = [[text.index(quote), text.index(quote) + len(quote), kind] for quote, kind in entities]
    return {"text": text, "label": spans}


@pytest.mark.parametrize(
    ("text", "entities", "splitter", "sentences"),
    [
        ("北京大学的王小明去了上海。他走了。", ["北京大学", "北京", "王小明", "上海"], None, 2),
        ("東京大学の山田太郎は京都に行った。そして", ["東京大学", "東京", "山田太郎", "京都"], None, 2),
        ("김민수는 서울대학교에서 일한다. 그는 산다.", ["김민수", "서울대학교", "서울"], "syllables", 2),
    ],
    ids=["Chinese", "Japanese", "Korean"],
)
def test_words_can_carry_nested_entities(tmp_path, text, entities, splitter, sentences):
    path = write_json(tmp_path / "a.jsonl", annotated(text, *((quote, "X") for quote in entities)))
    options = {} if splitter is None else {"word_splitter": word_splitter(splitter)}
    records, check = read(path, **options)
    found = ["".join(one["tokens"][e["start"] : e["end"]]) for one in records for e in one["entities"]]
    assert (sorted(found), len(records), check.report()) == (sorted(entities), sentences, "")


def test_korean_particles_are_part_of_words_by_default_and_what_is_lost_is_counted(tmp_path):
    records, check = read(
        write_json(tmp_path / "a.jsonl", annotated("김민수는 서울 산다", ("김민수", "X"), ("서울", "Y")))
    )
    assert [entity["type"] for entity in records[0]["entities"]] == ["Y"]
    assert check.counts == {"entities with a boundary inside a word dropped": 1}


NOTHING = {
    "json_lines": {"a.jsonl": json.dumps({**RECORD, "entities": []})},
    "published_json": {"a.json": json.dumps([{**PUBLISHED, "entities": []}])},
    "text_spans": {"a.jsonl": json.dumps({"text": TEXT, "label": []})},
    "label_studio": {"a.json": json.dumps([task()])},
    "bigbio_kb": {"a.jsonl": json.dumps({**BIGBIO_RECORD, "entities": []})},
    "bioc": {"a.json": json.dumps({**BIOC_DOCUMENT, "passages": [{"offset": 0, "text": TEXT}]})},
    "pubtator": {"a.pubtator": f"7|t|{TEXT}\n7|a|\n"},
    "brat": {"a.txt": TEXT, "a.ann": ""},
    "iob2": {"a.conll": "".join(f"{token}\tO\n" for token in TOKENS)},
    "conllu": {"a.conllu": conllu(*[""] * 6, words=TOKENS)},
}


@pytest.mark.parametrize("format", NOTHING)
def test_a_file_without_entities_is_no_error(tmp_path, format):
    (record,), check = read(write_files(tmp_path, NOTHING[format]), format)
    assert (record["tokens"], record["entities"]) == (TOKENS, [])
    assert not check.entities_dropped


@pytest.mark.parametrize("multi_label", [False, True])
def test_sentences_without_entities_train_and_are_scored(encoder, multi_label):
    model, processor = tiny_model(encoder, seed=1, multi_label=multi_label), tiny_processor(encoder)
    collate = DataCollatorForNestedNER(processor, model.config.label2id, multi_label=multi_label)
    records = [{"tokens": ["The", "gene"], "entities": []}, {"tokens": ["It", "binds", "DNA"], "entities": []}]
    features = processor.encode([record["tokens"] for record in records])
    for feature, record in zip(features, records, strict=True):
        feature["entities"] = record["entities"]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = model(**collate([dict(feature) for feature in features])).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 2
    assert predict_words(model, processor, records) == [[], []]
    spurious = [[], [{"start": 2, "end": 3, "type": "DNA"}]]
    scores = score_entities(spurious, [record["entities"] for record in records])
    assert (scores["predicted"], scores["correct"], scores["gold"], scores["precision"]) == (1, 0, 0, 0)
