"""The model card of a trained (or not yet trained) nested-NER model: metadata and text, from what is known about it.

What is not known is left out or said to be missing; no number is made up. Not here: drawings of entities
(`drawing.py`), measuring the scores, and the upload.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

CARD_NAME = "README.md"
TAGS = ("nested-ner", "named-entity-recognition", "span-classification", "triaffine")
METRICS = ("precision", "recall", "f1")
COUNTS = ("correct", "predicted", "gold")

INTRODUCTION = """\
This model finds named entities in text, also those that lie inside other entities (*nested* NER). It classifies \
spans: spans of words are scored for every label, so that entities may contain or overlap each other; only two \
entities with the same first and the same last word cannot both be found. How a span's boundaries, its inside words, \
the labels and related spans are brought together follows the triaffine mechanism of \
[Yuan et al., Findings of ACL 2022](https://arxiv.org/abs/2110.07480); the table says which parts of it are used."""

LOADING = """\
The code of the model lies in this repository, hence `trust_remote_code=True`: it runs the Python files found here, \
so read them first and pin `revision` to the commit you have read.

```python
from transformers import AutoModel, AutoProcessor, pipeline

ner = pipeline("token-classification", model="{name}", trust_remote_code=True)

# or the parts:
processor = AutoProcessor.from_pretrained("{name}", trust_remote_code=True)
model = AutoModel.from_pretrained("{name}", trust_remote_code=True)
```"""

ILLUSTRATION = """\
An answer has this form, nested entities included (an illustration, not an output of this model):

```python
>>> ner("The Bank of England raised its rate.")
[{'entity_group': 'ORG', 'score': ..., 'word': 'Bank of England', 'start': 4, 'end': 19},
 {'entity_group': 'GPE', 'score': ..., 'word': 'England', 'start': 12, 'end': 19}]
```"""

POSITIONS = "`start` and `end` are characters of the text, `end` exclusive; `word` is the text between them."

WIDGET_NOTE = """\
The Hub's hosted inference widget does not run repositories with custom code, and this is one. `widget` entries in \
a card's metadata are example sentences, not a live demo: run the code above instead."""

SCORES_NOTE = """\
In percent. A predicted entity is correct if a gold entity has the same first word, last word and label. *Nested* are \
entities that contain or lie inside another one, *flat* are all others, seen among the predictions for precision and \
among the gold entities for recall: in these two rows recall need not be correct/gold."""

CITATION = """\
```bibtex
@inproceedings{yuan-etal-2022-fusing,
    title = "Fusing Heterogeneous Factors with Triaffine Mechanism for Nested Named Entity Recognition",
    author = "Yuan, Zheng and Tan, Chuanqi and Huang, Songfang and Huang, Fei",
    booktitle = "Findings of the Association for Computational Linguistics: ACL 2022",
    year = "2022",
    eprint = "2110.07480",
    archivePrefix = "arXiv",
}
```"""


def build_model_card(
    config: Any,
    *,
    model_name: str,
    base_model: str | None = None,
    dataset_name: str | None = None,
    language: str | list[str] | None = None,
    license: str | None = None,
    scores: Mapping[str, Any] | None = None,
    examples: Sequence[Mapping[str, Any]] = (),
    training: Mapping[str, Any] | None = None,
) -> ModelCard:
    """The card of one model repository.

    Args:
        config: the model's `TriaffineConfig`; labels and the kind of model are read from it.
        model_name: the repository's id on the Hub, `"user/name"`: title, loading code, name in the results.
        base_model: id on the Hub of the pretrained encoder.
        dataset_name: data set of training and scores, an id on the Hub where it has one.
        language: ISO 639 code(s) of the texts.
        license: the Hub's identifier of the license, for instance `"apache-2.0"`.
        scores: `{"precision", "recall", "f1"}` in [0, 1] and counts `{"correct", "predicted", "gold"}` of all
            entities, beside them the same six for each label under `"by_label"`, and under `"flat"` and `"nested"`.
            Without scores the card says "Not trained yet".
        examples: sentences as `{"text": str}`; with the model's predictions under `"entities"` (the pipeline's form)
            one of them, nested if there is such a one, is shown as output.
        training: hyper-parameters by name.

    Raises:
        ValueError: an id that is none, an example without text, scores without a data set, incomplete or outside
            [0, 1].
    """
    _check_repo_id("model_name", model_name)
    if base_model is not None:
        _check_repo_id("base_model", base_model)
    _check_examples(examples)
    metadata = ModelCardData(
        language=language,
        license=license,
        library_name="transformers",
        pipeline_tag="token-classification",
        tags=list(TAGS),
        base_model=base_model,
        datasets=[_one_line(dataset_name)] if dataset_name else None,
        metrics=list(METRICS),
        widget=[{"text": _one_line(example["text"])} for example in examples] or None,
        model_name=model_name if scores is not None else None,
        eval_results=_eval_results(scores, dataset_name) if scores is not None else None,
    )
    sections = {
        "Model": _describe_model(config, base_model),
        "Labels": _describe_labels(config),
        "Scores": _describe_scores(scores, dataset_name),
        "Use": _describe_use(model_name, examples),
        "Training": _table(("Setting", "Value"), _code_rows(training)) if training else "",
        "Hosted widget": WIDGET_NOTE,
        "Citation": CITATION,
    }
    return ModelCard(f"---\n{metadata.to_yaml()}\n---\n\n{_body(model_name, sections)}\n")


def save_model_card(folder: str | Path, card: ModelCard) -> Path:
    """Writes the card as `README.md` into `folder`, in one step: a reader sees the old card or the whole new one."""
    path = Path(folder) / CARD_NAME
    temporary = path.with_name(f".{CARD_NAME}.{os.getpid()}")
    try:
        card.save(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _body(model_name: str, sections: Mapping[str, str]) -> str:
    title = model_name.split("/")[-1].replace("_", r"\_")
    headed = [f"## {name}\n\n{text}" for name, text in sections.items() if text]
    return "\n\n".join([f"# {title}", INTRODUCTION, *headed])


def _describe_model(config: Any, base_model: str | None) -> str:
    encoder = {"Encoder": f"[{_code(base_model)}](https://huggingface.co/{base_model})"} if base_model else {}
    related = f"the {config.max_candidates} best spans of a sentence" if config.cross_span else "not used"
    rank = "full tensors" if config.triaffine_rank is None else f"rank {config.triaffine_rank}"
    rows = {
        **encoder,
        "Attention over a span's words": _code(config.attention),
        "Scoring of a span": _code(config.scoring),
        "Attention over related spans": related,
        "Triaffine transformations": f"width {config.triaffine_dim}, {rank}",
    }
    return _table(("Part", "Here"), rows.items())


def _describe_labels(config: Any) -> str:
    labels = _entity_labels(config)
    return f"{len(labels)}: {', '.join(map(_code, labels))}"


def _describe_scores(scores: Mapping[str, Any] | None, dataset_name: str | None) -> str:
    if scores is None:
        return "Not trained yet: there are no scores to show."
    named = [("all", scores), *((_code(label), row) for label, row in scores["by_label"].items())]
    named += [("flat", scores["flat"]), ("nested", scores["nested"])]
    rows = [
        (name, *(f"{100 * row[metric]:.2f}" for metric in METRICS), *(str(row[count]) for count in COUNTS))
        for name, row in named
    ]
    table = _table(("Entities", "Precision", "Recall", "F1", "Correct", "Predicted", "Gold"), rows)
    return f"On {_code(dataset_name)}. {SCORES_NOTE}\n\n{table}"


def _describe_use(model_name: str, examples: Sequence[Mapping[str, Any]]) -> str:
    predicted = [example for example in examples if example.get("entities")]
    if not predicted:
        return f"{LOADING.format(name=model_name)}\n\n{ILLUSTRATION}\n\n{POSITIONS}"
    shown = max(predicted, key=lambda example: _has_nested(example["entities"]))  # the first of the best
    entities = ",\n ".join(map(_prediction, shown["entities"]))
    output = f"```python\n>>> ner({shown['text']!r})\n[{entities}]\n```"
    return f"{LOADING.format(name=model_name)}\n\n{output}\n\n{POSITIONS}"


def _prediction(entity: Mapping[str, Any]) -> str:
    return repr({**entity, "score": round(float(entity["score"]), 4)})


def _has_nested(entities: Sequence[Mapping[str, Any]]) -> bool:
    spans = [(entity["start"], entity["end"]) for entity in entities]
    return any(a != b and a[0] <= b[0] and b[1] <= a[1] for a in spans for b in spans)


def _eval_results(scores: Mapping[str, Any], dataset_name: str | None) -> list[EvalResult]:
    if not dataset_name:
        raise ValueError("`scores` are given without `dataset_name`; name the data set they were measured on.")
    _check_scores(scores)
    return [
        EvalResult(
            task_type="token-classification",
            task_name="Nested named entity recognition",
            dataset_type=_one_line(dataset_name),
            dataset_name=_one_line(dataset_name),
            metric_type=metric,
            metric_value=float(scores[metric]),
        )
        for metric in METRICS
    ]


def _check_scores(scores: Mapping[str, Any]) -> None:
    for group in ("by_label", "flat", "nested"):
        if group not in scores:
            raise ValueError(f"`scores` lack {group!r}; give what the evaluation returned, whole.")
    parts = {"": scores, "['flat']": scores["flat"], "['nested']": scores["nested"]}
    parts |= {f"['by_label'][{label!r}]": row for label, row in scores["by_label"].items()}
    for where, row in parts.items():
        missing = [name for name in (*METRICS, *COUNTS) if name not in row]
        if missing:
            raise ValueError(f"`scores{where}` lack {', '.join(missing)}; give what the evaluation returned, whole.")
        for metric in METRICS:
            if not 0.0 <= row[metric] <= 1.0:
                raise ValueError(
                    f"`scores{where}` has {metric} = {row[metric]}; give fractions in [0, 1], the card shows percent."
                )


def _check_examples(examples: Sequence[Mapping[str, Any]]) -> None:
    for number, example in enumerate(examples):
        if not isinstance(example.get("text"), str):
            raise ValueError(f'`examples[{number}]` has no text; give each example as {{"text": "a sentence"}}.')


def _check_repo_id(argument: str, value: str) -> None:
    try:
        validate_repo_id(value)
    except HFValidationError as error:
        raise ValueError(
            f"`{argument}` is {value!r}, which cannot be a repository on the Hub ({error}). Give an id such as "
            "'user/name'; a folder on this machine means nothing to the card's readers."
        ) from error


def _entity_labels(config: Any) -> list[str]:
    """All labels but the last, which is "no entity"."""
    return [config.id2label[i] for i in range(len(config.id2label) - 1)]


def _code_rows(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(_code(name), _code(value)) for name, value in values.items()]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(value: Any) -> str:
    """`value` as inline code that no character in it can end: neither the code, nor a table cell, nor a line.

    Ordinary names stay readable in the source; in all others, punctuation is written as character references.
    """
    text = _one_line(str(value))
    if re.fullmatch(r"[\w .,:/+-]+", text):
        return f"`{text}`"
    return "<code>" + re.sub(r"[^\w ]|_", lambda match: f"&#{ord(match[0])};", text) + "</code>"


def _one_line(text: str) -> str:
    """`text` with single spaces for all white space: YAML would fold some of Unicode's line ends away, silently."""
    return " ".join(text.split())
