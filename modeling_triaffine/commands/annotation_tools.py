"""Writes predictions for an annotation tool, optionally the least certain ones."""

import sys
from pathlib import Path
from typing import Any

from .options import check_new
from .texts import TextSource

FOLDERS = ("brat", "inception")
"""Tools that import a folder; the others import a file."""


def check_output(tool: str, output: Path | None) -> Path:
    """The output; ValueError unless it is a new folder, or a file, as the tool imports it."""
    kind = "new folder" if tool in FOLDERS else "file"
    if output is None or str(output) == "-" or (kind == "file" and output.is_dir()):
        raise ValueError(f"{tool} imports a {kind}. Give its name as --output.")
    if kind == "new folder":
        check_new(output)
    return output


def write_for_tool(
    tool: str, output: Path, source: TextSource, pipeline: Any, uncertain: int | None, **options: Any
) -> list[Any]:
    """Writes the predictions on the texts of `source`, and returns them as [`read_texts`] does.

    Args:
        uncertain: number of texts to write, the least certain ones first; None writes all, in their order.
        options: arguments of `read_texts`.
    """
    from ..data.formats.cas import make_cas
    from ..data.writing import check_file_name
    from ..data.writing_texts import PREDICTION_WRITERS, brat_type, label_studio_config
    from ..evaluation.prediction import read_texts
    from ..files import atomic_path
    from ..model.text_triaffine import clean_text

    named = [(name, record[source.text_column]) for name, record in source]
    if tool in FOLDERS:  # before the prediction, which can take hours
        for name, _ in named:
            check_file_name(name, tool)
    if tool == "inception":
        make_cas("", (), ())  # raises without the extra `cas`
    labels = pipeline.model.config.entity_labels
    types = {label: brat_type(label) if tool == "brat" else label for label in labels}
    with atomic_path(output) as unfinished:
        (unfinished.mkdir if tool in FOLDERS else unfinished.touch)()  # if it cannot be written, this is known before
        read = read_texts(pipeline, [text for _, text in named], **options)
        found = [(name, text) for (name, _), text in zip(named, read, strict=True) if any(text.sentences)]
        if uncertain:
            found = sorted(found, key=lambda named_text: -named_text[1].uncertainty)[:uncertain]
            if tool in FOLDERS:  # tools sort by name
                found = [(f"{place:05}-{name.replace('/', '-')}", text) for place, (name, text) in enumerate(found, 1)]
        documents = []
        for name, text in found:
            entities = [
                {"start": e["start"], "end": e["end"], "type": types[e["entity_group"]], "score": e["score"]}
                for e in text.entities
            ]
            document = {"doc_id": name, "text": clean_text(text.text), "entities": entities, "words": text.sentences}
            documents.append({**document, "fields": {"uncertainty": round(text.uncertainty, 6)}})
        PREDICTION_WRITERS[tool](documents, unfinished)
    print(f"{len(documents):,} of {len(named):,} texts written to {output}.", file=sys.stderr)
    if tool == "label_studio":
        print(f"Labelling configuration: {label_studio_config(labels)}", file=sys.stderr)
    return read
