"""The model card, README.md of a repository, from what is known of a model and its run.

The text is in `card.md.jinja`, that of a recipe in `recipe_card.md.jinja`, the tables are in `card_tables.py`, the
facts come from a [`RunSummary`]. Values enter the text through `inline_code`, `code_block` and `Table` only, so that no
name can break it.

A card written by publishing ends with a comment, invisible on the Hub, with a digest of the text above it: so a card
that nobody has edited is recognized, and written anew.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from ..drawing import draw_entities
from ..drawing.safe_text import inline_code, markdown_text
from ..evaluation.scores import RATIOS, parts_note, parts_title, percent
from ..model.configuration_triaffine import TriaffineConfig
from ..nesting import nested_spans
from .card_tables import card_tables
from .run_summary import Example, RunSummary

CARD_NAME = "README.md"
TEMPLATE = Path(__file__).with_name("card.md.jinja")
RECIPE_TEMPLATE = Path(__file__).with_name("recipe_card.md.jinja")
TAGS = ("nested-ner", "named-entity-recognition", "span-classification", "triaffine")
UNNAMED_DATASET = "unnamed data set"
DRAWING_WIDTH = 88  # columns of a code block that the Hub shows without scrolling
# The names transformers gives to labels without names.
PLACEHOLDER_LABEL = re.compile(r"LABEL_\d+")
MARK = "<!-- Written by modeling_triaffine ({digest}): it writes this card anew, unless somebody has edited it. -->"
MARK_PATTERN = re.compile(re.escape(MARK).replace(re.escape("{digest}"), "([0-9a-f]{16})") + r"\s*\Z")
# The Hub's website writes a card of front matter only if the user chooses a license for a new repository.
FRONT_MATTER = re.compile(r"\A\s*---\s*\n(.*?\n)?---\s*(\n|\Z)", re.DOTALL)
# In the template that transformers pushes if there is no card.
TEMPLATE_PHRASE = (
    "This is the model card of a 🤗 transformers model that has been pushed on the Hub. This model card has been "
    "automatically generated."
)

ILLUSTRATION = Example(
    "The Bank of England raised its rate.",
    [
        {"entity_group": "ORG", "score": 0.0, "word": "Bank of England", "start": 4, "end": 19},
        {"entity_group": "GPE", "score": 0.0, "word": "England", "start": 12, "end": 19},
    ],
)
USAGE = """\
from transformers import pipeline

ner = pipeline("token-classification", model="{name}", trust_remote_code=True)
text = {text}
for entity in ner(text):
    print(entity["start"], entity["end"], entity["entity_group"], entity["word"])

ner([text, "Another text."], batch_size=32)  # also generators and data sets
ner(text, threshold=0.9)  # only entities of at least this probability
ner(text, overlap="nested")  # none that cross; "flat": none that overlap"""


def build_model_card(
    config: TriaffineConfig,
    *,
    model_name: str,
    summary: RunSummary | None = None,
    tags: Sequence[str] | str | None = None,
    purpose: str | None = None,
) -> ModelCard:
    """The card of one model repository.

    Args:
        config: the model's `TriaffineConfig`: labels and parts of the model.
        model_name: the repository's Hub id, `"user/name"`, for title, usage and results.
        summary: what is known of the run. Without one, the card says "Not known" instead of numbers.
        tags: further tags.
        purpose: for the short card of a recipe, what it is for, in Markdown. `summary` then has the recipe's name and
            settings.

    Raises:
        ValueError: the name of the model or the base model cannot be that of a Hub repository.
    """
    run = (summary or RunSummary()).of_model(config)
    labels = _named_labels(config, run)
    shown = _choose_example(run.examples)
    drawn = shown if shown.entities else ILLUSTRATION
    card: ModelCard = ModelCard.from_template(
        _metadata(model_name, run, [tags] if isinstance(tags, str) else tags or []),
        template_path=str(TEMPLATE if purpose is None else RECIPE_TEMPLATE),
        config=config,
        run=run,
        name=model_name,
        title=markdown_text(model_name.split("/")[-1]),
        purpose=(purpose or "").strip(),
        labels=labels,
        shown=shown,
        drawing=draw_entities(drawn.text, drawn.entities, DRAWING_WIDTH),
        usage=USAGE.format(name=model_name, text=_literal(shown.text)),
        printed="\n".join("{start} {end} {entity_group} {word}".format_map(entity) for entity in shown.entities),
        encoder=_describe_encoder(config),
        tables=card_tables(run, labels),
        code=inline_code,
        codes=lambda values: ", ".join(map(inline_code, values)),
        code_block=code_block,
        percent=percent,
        parts_title=parts_title(),
        parts_note=parts_note(),
    )
    return card


def renew_card(own: str, config: TriaffineConfig, **facts: Any) -> str:
    """The marked text of [`build_model_card`], with what was chosen in `own` (see `merge_cards`), a card of the model.

    Without `tags`, those of `own` stay.
    """
    facts["tags"] = facts.get("tags") or (_front_matter(own).get("tags") if is_ours(own) else None)
    return merge_cards(mark_card(str(build_model_card(config, **facts))), own)


def repository_name(folder: str | Path) -> str:
    """The name of a model that is not on the Hub: that of its folder, in characters that the Hub allows."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", Path(folder).resolve().name).strip("-")
    return name[:96].strip("-") or "model"


def check_repo_id(argument: str, value: str) -> None:
    """Raises ValueError if no Hub repository can have the name `value`."""
    try:
        validate_repo_id(value)
    except HFValidationError as error:
        raise ValueError(
            f"`{argument}` is {value!r}, which cannot be a repository on the Hub ({error}). Give an id such as "
            "'user/name', not a folder."
        ) from error


def code_block(content: str, language: str = "") -> str:
    """A fenced code block, with a fence longer than any run of backticks in the content."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{content}\n{fence}"


def _metadata(model_name: str, run: RunSummary, tags: Sequence[str]) -> ModelCardData:
    """The front matter, which the Hub reads and shows beside the text."""
    check_repo_id("model_name", model_name)
    if run.base_model is not None:
        check_repo_id("base_model", run.base_model)
    return ModelCardData(
        language=run.language,
        license=run.license,
        library_name="transformers",
        pipeline_tag="token-classification",
        tags=list(dict.fromkeys([*TAGS, *tags])),
        base_model=run.base_model,
        # The Hub links these, which a title must not be; an id has an owner.
        datasets=[run.dataset] if run.dataset and "/" in run.dataset and _is_repo_id(run.dataset) else None,
        metrics=list(RATIOS),
        widget=[{"text": _one_line(example.text)} for example in run.examples] or None,
        model_name=model_name if run.evaluation else None,
        eval_results=_eval_results(run),
    )


def _eval_results(run: RunSummary) -> list[EvalResult] | None:
    """The scores of all entities, for the Hub's comparison of models."""
    if run.evaluation is None:
        return None
    dataset = _one_line(run.dataset or "") or UNNAMED_DATASET
    return [
        EvalResult(
            task_type="token-classification",
            task_name="Nested named entity recognition",
            dataset_type=dataset,
            dataset_name=dataset,
            dataset_split=_one_line(run.evaluation.split),
            metric_type=ratio,
            metric_value=float(run.evaluation.scores[ratio]),
        )
        for ratio in RATIOS
    ]


def _is_repo_id(name: str) -> bool:
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _one_line(text: str) -> str:
    """`text` with single spaces as white space: YAML silently drops some line ends of Unicode."""
    return " ".join(text.split())


def _named_labels(config: TriaffineConfig, run: RunSummary) -> list[str]:
    """The entity labels; empty as long as they have no names."""
    labels: list[str] = config.entity_labels
    are_placeholders = not run.is_trained and all(PLACEHOLDER_LABEL.fullmatch(label) for label in labels)
    return [] if are_placeholders else labels


def _choose_example(examples: Sequence[Example]) -> Example:
    """The first example with nested entities, else with any; without any, a placeholder."""

    def has_nested(example: Example) -> bool:
        return bool(nested_spans((entity["start"], entity["end"]) for entity in example.entities))

    with_entities = [example for example in examples if example.entities]
    return max(with_entities, key=has_nested, default=Example("One sentence, or a long text."))


def _describe_encoder(config: Any) -> str:
    encoder = config.encoder_config
    sizes = (("layers", getattr(encoder, "num_hidden_layers", None)), ("wide", getattr(encoder, "hidden_size", None)))
    return ", ".join([inline_code(encoder.model_type), *(f"{size} {name}" for name, size in sizes if size is not None)])


def _literal(text: str) -> str:
    """The text as a Python literal, quoted as a formatter would."""
    return repr(text) if '"' in text else f'"{repr(text)[1:-1]}"'


# ---- Cards that publishing may replace: its own unless edited, and drafts without text ----


def card_text(content: bytes) -> str:
    """The text of a card's file; one that is not UTF-8 was written by somebody else, and so counts as edited."""
    return content.decode("utf-8", "replace")


def mark_card(text: str) -> str:
    """The card with its mark."""
    text = text.rstrip()
    return f"{text}\n\n{MARK.format(digest=_digest(text))}\n"


def is_ours(text: str) -> bool:
    """Whether publishing wrote the card, and nobody has edited it since."""
    mark = MARK_PATTERN.search(text)
    return mark is not None and mark[1] == _digest(text[: mark.start()])


def is_edited(text: str) -> bool:
    """Whether somebody wrote or edited the card: it is neither an unchanged one of publishing nor a draft."""
    return not is_ours(text) and not is_draft(text)


def is_draft(text: str) -> bool:
    """Whether the card has no text of its own: front matter only, or the template of transformers, not filled in."""
    template = ModelCard.from_template(ModelCardData(), model_description=TEMPLATE_PHRASE).text
    return FRONT_MATTER.sub("", text).split() in ([], template.split())


def merge_cards(card: str, earlier: str) -> str:
    """A marked card with what somebody chose in the front matter of the earlier one, marked again.

    The Hub's website writes such a draft with the license chosen there.

    Lists are concatenated; other fields of a draft override those of the card. An earlier card of ours gives what it
    has of a draft: its license, if the card has none, and fields that publishing does not write, such as the terms of a
    gated model. Of a card that somebody wrote, nothing is taken.
    """
    fields = {name: value for name, value in _front_matter(earlier).items() if value}
    merged = ModelCard(MARK_PATTERN.sub("", card))
    if not is_draft(earlier):
        written = {*vars(_metadata("owner/name", RunSummary(), [])), "model-index"}
        has_license = merged.data.get("license") is not None
        of_draft = (n for n in fields if (not has_license if n.startswith("license") else n not in written))
        fields = {name: fields[name] for name in of_draft} if is_ours(earlier) else {}
    if not fields:
        return card
    for name, value in fields.items():
        own = merged.data.get(name)
        if isinstance(own, list):
            items = value if isinstance(value, list) else [value]
            merged.data[name] = own + [item for item in items if item and item not in own]
        else:
            merged.data[name] = value
    return mark_card(str(merged))


def _front_matter(text: str) -> dict[str, Any]:
    """The fields of a card's front matter; empty if it has none that can be parsed."""
    block = FRONT_MATTER.match(text)
    try:
        fields = yaml.safe_load(block[1] or "") if block else None
    except yaml.YAMLError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _digest(text: str) -> str:
    plain = "\n".join(text.split("\r\n")).strip()
    return hashlib.sha256(plain.encode("utf-8")).hexdigest()[:16]
