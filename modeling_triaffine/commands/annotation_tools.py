"""Writes predictions for an annotation tool, optionally the least certain ones."""

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..documents import Counts

FOLDERS = ("brat", "inception")
"""Tools that import a folder; the others import a file."""


def write_for_tool(
    tool: str,
    output: Path,
    texts: Iterable[tuple[str, str]],
    pipeline: Any,
    counts: Counts,
    uncertain: int | None,
    decoding: dict[str, Any],
) -> None:
    """Writes predictions for texts with names, as an annotation tool imports them.

    `uncertain` is the number of texts to write, the least certain ones first; None writes all, in their order.
    """
    from ..data.formats.cas import make_cas
    from ..data.writing import PREDICTION_WRITERS, check_file_name, label_studio_config
    from ..evaluation.prediction import read_texts
    from ..files import atomic_path
    from ..model.text_triaffine import clean_text

    named = [*texts]
    if tool in FOLDERS:  # before the prediction, which can take hours
        times = Counter(check_file_name(name, tool) for name, _ in named)
        if more := [name for name, number in times.items() if number > 1]:
            raise ValueError(f"Several texts have the id {more[0]!r}, which {tool} needs for a file. Change the ids.")
    if tool == "inception":
        make_cas("", (), ())  # raises without the extra `cas`
    with atomic_path(output) as unfinished:
        (unfinished.mkdir if tool in FOLDERS else unfinished.touch)()  # if it cannot be written, this is known before
        read = read_texts(pipeline, [text for _, text in named], **decoding)
        found = [(name, text) for (name, _), text in zip(named, read, strict=True) if any(text.sentences)]
        if uncertain:
            found = sorted(found, key=lambda named_text: -named_text[1].uncertainty)[:uncertain]
            if tool in FOLDERS:  # tools sort by name
                found = [(f"{place:05}-{name.replace('/', '-')}", text) for place, (name, text) in enumerate(found, 1)]
        documents = []
        for name, text in found:
            entities = [{**entity, "type": entity["entity_group"]} for entity in text.entities]
            document = {"doc_id": name, "text": clean_text(text.text), "entities": entities, "words": text.sentences}
            documents.append({**document, "fields": {"uncertainty": round(text.uncertainty, 6)}})
        PREDICTION_WRITERS[tool](documents, unfinished)
    for text in read:
        counts.add(text.entities)
    print(f"{len(documents):,} of {len(named):,} texts written to {output}.", file=sys.stderr)
    if tool == "label_studio":
        print(f"Labelling configuration: {label_studio_config(pipeline.model.config.entity_labels)}", file=sys.stderr)
