"""The sections of a model card that say what a model is and how it is used. What it reached is in `card_results.py`.

A section is a function from facts to Markdown without its heading. Names come in through `markdown.py` only.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..data.statistics import nested_spans
from ..drawing import draw_entities
from .markdown import code_block, inline_code, inline_codes, table
from .run_summary import Example, RunSummary

DRAWING_WIDTH = 88  # columns that a code block of the Hub shows without scrolling
# What transformers calls labels that nobody has named.
PLACEHOLDER_LABEL = re.compile(r"LABEL_\d+")

NOT_TRAINED = "Not trained yet"

INTRODUCTION = """\
This model finds named entities in text, also those that lie inside other entities (*nested* NER). It scores spans of \
words for every label, so entities may contain or cross each other, and gives each its place in the text."""

NO_RECORD = """\
No training run is on record for this model: wherever numbers would stand, this card says "Not trained yet"."""

FOUND = "What it finds in a sentence that it was not trained on:"
ILLUSTRATION = Example(
    "The Bank of England raised its rate.",
    [
        {"entity_group": "ORG", "score": 0.0, "word": "Bank of England", "start": 4, "end": 19},
        {"entity_group": "GPE", "score": 0.0, "word": "England", "start": 12, "end": 19},
    ],
)
ILLUSTRATED = "What nested entities look like (an illustration, not an output of this model):"

PURPOSE = """\
**Made for** marking {kinds} in text of the kind it was trained on{where}: single sentences or whole documents, with \
the characters at which each entity starts and ends. Sentences longer than the encoder reads are read in overlapping \
windows; no text is left out.

**Not made for**

- other kinds of text, other languages, other labels: scores say nothing about them;
- two labels on exactly the same words: of these one is found at most;
- entities that run from one sentence into the next, entities with gaps, relations, or links to a knowledge base;
- decisions about people that nobody looks at again: it misses entities and invents some, as often as its scores say."""

OWN_CODE = """\
The code of the model lies beside its weights, hence `trust_remote_code=True`: it runs the Python files of this \
repository, so read them first and pin `revision` to the commit you have read. Nothing but `transformers` and \
`torch` is needed."""

SHARED_CODE = """\
The code of the model lies in [{repository}](https://huggingface.co/{repository}), hence `trust_remote_code=True`: it \
runs the Python files found there, so read them first and pin `code_revision` to the commit you have read. Nothing but \
`transformers` and `torch` is needed."""

CODE = """\
from transformers import pipeline

ner = pipeline("token-classification", model="{name}", trust_remote_code=True)
text = {text}
for entity in ner(text):
    print(entity["start"], entity["end"], entity["entity_group"], entity["word"])

ner([text, "Another text."], batch_size=32)  # also generators and data sets
ner(text, threshold=0.9)  # only what is at least so likely
ner(text, overlap="nested")  # none that cross; "flat": none that overlap"""
ANY_TEXT = "One sentence, or a long text."

ENTITIES = """\
An entity has an `entity_group` (its label), a `score` (its probability), the `word` (its text), `start` and `end` \
(characters of the text, `end` exclusive). Entities come sorted by start, the longest first. The parts load on their \
own, too: `AutoModel.from_pretrained` and `AutoProcessor.from_pretrained`, with the same name and \
`trust_remote_code=True`."""

TRAIN = """\
```bash
python examples/train.py --recipe {recipe} --train_file CORPUS --output_dir {name}
```

`CORPUS` is a folder with `train.jsonl`, `dev.jsonl` and, if there is one, `test.jsonl`, or a corpus file that brings \
its splits. Options on the command line win over the recipe; `--help` lists them all. What the run reached is written \
into the card beside the trained model."""

HOSTING = """\
The Hub's hosted inference widget does not run repositories with custom code, and this is one{widget}. To try the \
model in the browser, start its page with the package `modeling_triaffine` (in a checkout of its sources: \
`pip install '.[demo]'`):

```bash
triaffine-ner demo --model {name}
```

The same page can be pushed to the Hub as a Space (`examples/space` in the package's sources). {endpoint}"""

ENDPOINT = """\
For a production endpoint, the repository brings its `handler.py`: deploy it on Inference Endpoints and send \
`{"inputs": "A text."}`."""
NO_ENDPOINT = """\
An endpoint needs `handler.py` beside the weights, which stand without code here: publish the model with its code \
first."""

WIDGET_EXAMPLES = ": the `widget` entries in this card's metadata are example sentences, not a live demo"

CITATION = """\
The model is an implementation of the triaffine mechanism; please cite its paper:

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


def introduce(summary: RunSummary, purpose: str | None) -> str:
    if purpose is not None:
        return f"{purpose.strip()}\n\n{NOT_TRAINED}: this is a recipe to train with."
    return INTRODUCTION if summary.is_trained else f"{INTRODUCTION}\n\n{NO_RECORD}"


def draw_example(examples: Sequence[Example]) -> str:
    """A sentence with its nested entities drawn under it, from the model's own output where there is any."""
    example, title = (_choose_example(examples), FOUND) if _with_entities(examples) else (ILLUSTRATION, ILLUSTRATED)
    return f"{title}\n\n{code_block(draw_entities(example.text, example.entities, DRAWING_WIDTH), 'text')}"


def describe_purpose(config: Any, summary: RunSummary) -> str:
    labels = _named_labels(config, summary)
    number = "one kind" if len(labels) == 1 else f"{len(labels)} kinds"
    kinds = f"entities of {number} ({inline_codes(labels)})" if labels else "entities"
    facts = [f"language {inline_codes(_as_list(summary.language))}"] if summary.language else []
    facts += [f"data set {inline_code(summary.dataset)}"] if summary.dataset else []
    return PURPOSE.format(kinds=kinds, where=f" ({', '.join(facts)})" if facts else "")


def describe_use(config: Any, model_name: str, examples: Sequence[Example]) -> str:
    shown = _choose_example(examples) if _with_entities(examples) else Example(ANY_TEXT)
    code = SHARED_CODE.format(repository=config.code_repository) if config.code_repository else OWN_CODE
    blocks = [code, code_block(CODE.format(name=model_name, text=_literal(shown.text)), "python")]
    if shown.entities:
        printed = "\n".join(map(_printed, shown.entities))
        blocks += ["The loop prints:", code_block(printed, "text")]
    return "\n\n".join([*blocks, ENTITIES])


def describe_command(model_name: str, recipe: str | None) -> str:
    """How to train with a recipe; nothing where its name is not known."""
    return TRAIN.format(name=model_name, recipe=recipe) if recipe else ""


def describe_labels(config: Any, summary: RunSummary) -> str:
    labels = _named_labels(config, summary)
    if not labels:
        return f"{NOT_TRAINED}: the labels will be those of the training data."
    if not summary.labels:
        return f"{len(labels)}: {inline_codes(labels)}"
    has_examples = any(label.examples for label in summary.labels.values())
    rows = []
    for name in labels:
        known = summary.labels.get(name)
        row = [inline_code(name), f"{known.count:,}" if known else "–"]
        rows.append([*row, inline_codes(known.examples) if known else ""] if has_examples else row)
    counted = "" if summary.training_sentences is None else f"{summary.training_sentences:,} "
    header = ["Label", f"In the {counted}training sentences", *(["For instance"] if has_examples else [])]
    return table(header, rows)


def describe_model(config: Any, summary: RunSummary) -> str:
    related = f"the {config.max_candidates} best spans of a sentence" if config.cross_span else "not used"
    rank = "full tensors" if config.triaffine_rank is None else f"rank {config.triaffine_rank}"
    rows = {
        "Encoder": _describe_encoder(config, summary),
        "Attention over a span's words": inline_code(config.attention),
        "Scoring of a span": inline_code(config.scoring),
        "Attention over related spans": related,
        "Triaffine transformations": f"width {config.triaffine_dim}, {rank}",
    }
    if config.max_span_width is not None:
        rows["Widest span"] = f"{config.max_span_width} words"
    if summary.parameters is not None:
        rows["Size"] = f"{summary.parameters:,} parameters"
    text = (
        "How a span's boundaries, its inside words, the labels and related spans are brought together follows the "
        "triaffine mechanism of [Yuan et al., Findings of ACL 2022](https://arxiv.org/abs/2110.07480). Which parts of "
        "it are used here:"
    )
    return f"{text}\n\n{table(('Part', 'Here'), rows.items())}"


def describe_hosting(config: Any, model_name: str, examples: Sequence[Example]) -> str:
    return HOSTING.format(
        name=model_name,
        widget=WIDGET_EXAMPLES if examples else "",
        endpoint=NO_ENDPOINT if config.code_repository else ENDPOINT,
    )


def _named_labels(config: Any, summary: RunSummary) -> list[str]:
    """All labels but the last, which is "no entity"; none where they have no names yet."""
    labels = [config.id2label[number] for number in range(len(config.id2label) - 1)]
    are_placeholders = not summary.is_trained and all(PLACEHOLDER_LABEL.fullmatch(label) for label in labels)
    return [] if are_placeholders else labels


def _describe_encoder(config: Any, summary: RunSummary) -> str:
    encoder = getattr(config, "encoder_config", None)
    sizes = {"layers": getattr(encoder, "num_hidden_layers", None), "wide": getattr(encoder, "hidden_size", None)}
    kind = ", ".join(
        [
            *([inline_code(encoder.model_type)] if encoder is not None else []),
            *(f"{size} {name}" for name, size in sizes.items() if size is not None),
        ]
    )
    if summary.base_model:
        link = f"[{inline_code(summary.base_model)}](https://huggingface.co/{summary.base_model})"
        return f"{link} ({kind})" if kind else link
    return f"{kind}, trained from scratch" if summary.from_scratch else kind


def _with_entities(examples: Sequence[Example]) -> list[Example]:
    return [example for example in examples if example.entities]


def _choose_example(examples: Sequence[Example]) -> Example:
    """The first with nested entities, else the first with any."""
    return max(_with_entities(examples), key=_has_nested)


def _has_nested(example: Example) -> bool:
    return bool(nested_spans((entity["start"], entity["end"]) for entity in example.entities))


def _literal(text: str) -> str:
    """The text as a Python literal, quoted as a formatter would."""
    return repr(text) if '"' in text else f'"{repr(text)[1:-1]}"'


def _printed(entity: Mapping[str, Any]) -> str:
    return " ".join(str(entity[name]) for name in ("start", "end", "entity_group", "word"))


def _as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
