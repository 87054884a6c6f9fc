"""`predict`, `tag` and `explain`: the entities of texts, of a large corpus, and why a span is one."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import tee
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from ..documents import REJECTED, Counts, Row, TextOptions, check_usable, with_progress
from ..errors import ending_plainly
from ..files import JSON_SUFFIXES, atomic_path, open_output, visible_files
from ..model.kinds_triaffine import TextEntity
from ..model.options_triaffine import PredictionOptions
from . import options as shared

TABLES = (".csv", ".tsv", ".parquet", ".xlsx")
DOCUMENTS = (".txt", ".pdf", ".doc", ".docx")  # of a folder; all but the first are rejected
STANDARD_INPUT = "-"
FOLDERS = ("brat", "inception")  # tools that import a folder; the others import a file
MOST_NAMED = 20
Found = tuple[Row, list[TextEntity]]


def predict(
    input: Annotated[str, Argument(help="File of texts, folder of .txt files, or - for standard input.")] = "-",
    model: shared.Model = None,
    text: Annotated[str | None, Option(help="A text to read in place of a file.")] = None,
    output: Annotated[
        Path | None, Option(help="File to write; for brat and inception, a new folder.  [default: standard output]")
    ] = None,
    html: Annotated[Path | None, Option(help="Page to write, with the drawn texts and their entities.")] = None,
    to: Annotated[
        Literal["json_lines", "label_studio", "brat", "doccano", "inception"],
        Option(help="JSON lines, or what an annotation tool imports."),
    ] = "json_lines",
    uncertain: Annotated[int | None, shared.count("With --to: write the N least certain texts, in this order.")] = None,
    text_column: shared.TextColumn = "text",
    entities_column: shared.EntitiesColumn = "entities",
    threshold: shared.Threshold = None,
    overlap: shared.Overlap = PredictionOptions.overlap,  # type: ignore[assignment]
    batch_size: shared.BatchSize = PredictionOptions.batch_size,
    device: shared.Device = None,
    bf16: shared.Bf16 = False,
) -> int:
    """Finds nested entities in texts, and writes them as JSON lines, as a page, or for an annotation tool.

        triaffine-ner predict texts.txt --model outputs/demo/model --output entities.jsonl
        triaffine-ner predict documents/ --model outputs/demo/model --html report.html
        triaffine-ner predict --model outputs/demo/model --text "The mayor of Port Velmar resigned."
        triaffine-ner predict texts.txt --model outputs/demo/model --to label_studio --output tasks.json

    A plain file has one text per line, a folder one in each .txt file. In JSON lines (.jsonl, .ndjson, .json), each
    line is an object with the text under "text"; its other fields are kept. The output is each of these objects with
    "entities": [{"entity_group", "score", "word", "start", "end"}], offsets in characters; on a terminal, texts are
    drawn. Without input in a terminal, each line that you type is answered. An output file appears when it is complete.
    In a pipe, results appear batch by batch; with --batch-size 1, as soon as a line has been read.

    Texts that cannot be read are named, counted and left out; the exit code is then 3. --to writes predictions for an
    annotation tool; `train`, `evaluate` and `convert` read the exports of these tools (docs/annotation_loop.md). The
    model may also be a folder that `triaffine-ner export` wrote.
    """
    if text is not None and input != STANDARD_INPUT:
        raise ValueError(f"There are two inputs, {input} and --text. Give one of them.")
    if to == "json_lines" and uncertain is not None:
        raise ValueError("--uncertain needs --to with an annotation tool.")
    check_outputs(input, output, html, to)
    options = TextOptions(text_column=text_column, entities_column=entities_column)
    is_standard, total = text is None and input == STANDARD_INPUT, None
    source = "standard input" if is_standard else input if text is None else "a text"
    inside = visible_files(Path(input)) if text is None and os.path.isdir(input) else []
    if others := [file.name for file in inside if file.suffix.lower() not in DOCUMENTS]:
        print(f"{input}: files of other kinds left out: {len(others)}, such as {others[0]}.", file=sys.stderr)
    if not is_standard and not Path(input).is_fifo():  # a pipe can be read only once
        check_usable(read_rows(input, text, options))
        total = sum(1 for _ in read_rows(input, text, options))
    counts, rejected = Counts(), list[str]()
    rows = accepted(read_rows(input, text, options), rejected)
    decoding: dict[str, Any] = {"threshold": threshold, "overlap": overlap, "batch_size": batch_size}
    pipeline = shared.open_model(model, device, bf16)
    if output is None or to == "json_lines":
        if is_standard and sys.stdin.isatty():
            decoding["batch_size"] = 1  # answers each line before it reads the next
        rows, read = tee(rows)
        found = zip(rows, pipeline((row.text for row in read), **decoding), strict=True)
        with open_output(html) as page:  # before the prediction: what cannot be written is known at once
            drawn = write_rows(found, total, output, html, entities_column, counts)
            if html is not None:
                from ..drawing.predictions_page import predictions_page

                texts, names = [(row.text, found) for row, found in drawn], [name_of(row) for row, _ in drawn]
                page.write(predictions_page(texts, f"Entities in {source}", rejected, names))
    else:
        for read_text in write_for_tool(to, output, rows, pipeline, uncertain, decoding):
            counts.add(read_text.entities)
    counts.rejected = len(rejected)
    written_to = [f"Written: {path}" for path in (output, html) if path and str(path) != "-"]
    print(counts, *written_to, sep="\n", file=sys.stderr)
    return REJECTED if rejected else 0


def check_outputs(input: str, output: Path | None, html: Path | None, to: str) -> None:
    """Raises ValueError for an output that is the input, or not what an annotation tool imports."""
    for written in filter(None, (output, html)):
        if written.is_file() and Path(input).is_file() and Path(input).samefile(written):
            raise ValueError(f"{written} is the input, which would be lost. Give another name.")
    if html is not None and (to != "json_lines" or html == output):
        raise ValueError("--html is written beside JSON lines. Give it a name of its own, and no --to.")
    if to in FOLDERS:
        shared.check_new(output)
    if to != "json_lines" and (output is None or str(output) == "-" or output.is_dir()):
        raise ValueError(f"{to} imports a {'new folder' if to in FOLDERS else 'file'}. Give its name as --output.")


def read_rows(name: str, text: str | None, options: TextOptions) -> Iterator[Row]:
    """Yields the rows of a text, of the lines of a file or of standard input, or of the .txt files of a folder."""
    path = Path(name)
    if text is not None:
        yield from options.read_lines([text.encode(errors="surrogateescape")], "text")
    elif name == STANDARD_INPUT:
        lines = iter(_read_typed, b"") if sys.stdin.isatty() else sys.stdin.buffer
        yield from options.read_lines(lines, "stdin", is_json=None)
    elif not os.path.exists(name):  # Path("") would be the working directory
        raise FileNotFoundError(f"There is no file {name!r}. Give a file of texts, a folder of .txt files, or --text.")
    elif path.is_dir():
        files = [file for file in visible_files(path) if file.suffix.lower() in DOCUMENTS]
        if not files:
            raise ValueError(f"{name} is a folder without .txt files. Save its documents as text, one in each file.")
        for file in files:
            yield options.read_document(str(file), file, file.relative_to(path).with_suffix("").as_posix())
    elif name.lower().endswith(TABLES):
        raise ValueError(f"{name} is a table, whose lines are not texts. Write its rows as JSON lines (.jsonl).")
    else:
        with open(path, "rb") as lines:
            yield from options.read_lines(lines, name, is_json=name.lower().endswith(JSON_SUFFIXES))


def _read_typed() -> bytes:
    print("> ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.buffer.readline()
    if not line:  # Ctrl-D
        print(file=sys.stderr)
    return line


def accepted(rows: Iterable[Row], rejected: list[str]) -> Iterator[Row]:
    """Yields the rows with a text, and names the others on standard error and in `rejected`."""
    from ..drawing.safe_text import clean

    for row in rows:
        if row.outcome is None:
            yield row
            continue
        rejected.append(clean(f"{row.where}: {row.outcome}"))
        if len(rejected) <= MOST_NAMED:
            print(f"rejected: {rejected[-1]}", file=sys.stderr)


def name_of(row: Row) -> str:
    """The `id` of a record, the path of a document in its folder, or the name of the file and the line's number."""
    given = row.record.get("id")
    return f"{Path(row.file).stem}-{row.number:05}" if given in (None, "") else str(given)


def write_rows(
    found: Iterable[Found], total: int | None, output: Path | None, html: Path | None, column: str, counts: Counts
) -> list[Found]:
    """Writes or draws rows with their entities, and counts them; returns them if they are for a page."""
    from ..drawing import draw_entities
    from ..drawing.safe_text import visible_json

    is_drawn = output is None and html is None and sys.stdout.isatty()
    kept = []
    with open_output(output) as written:
        for row, entities in found if is_drawn else with_progress(found, total):
            counts.add(entities)
            if html is not None:
                kept.append((row, entities))
            if is_drawn:
                print(draw_entities(row.text, entities), end="\n\n", flush=True)
            elif output is not None or html is None:
                line = visible_json(json.dumps({**row.record, column: entities}, ensure_ascii=False))
                print(line, file=written, flush=written is sys.stdout)
    return kept


def write_for_tool(
    tool: str, output: Path, rows: Iterable[Row], pipeline: Any, uncertain: int | None, decoding: dict[str, Any]
) -> list[Any]:
    """Writes predictions for an annotation tool, all or the `uncertain` least certain; returns all that were read."""
    from ..data.formats.extras import make_cas
    from ..data.writing import PREDICTION_WRITERS, check_file_name, label_studio_config
    from ..evaluation.prediction import read_texts
    from ..model.text_triaffine import clean_text

    named = [(name_of(row), row.text) for row in rows]
    if tool in FOLDERS:  # before the prediction, which can take hours
        times = Counter(check_file_name(name, tool) for name, _ in named)
        more = [name for name, number in times.items() if number > 1]
        if more and uncertain is None:  # else the names begin with a number
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
    print(f"{len(documents):,} of {len(named):,} texts written.", file=sys.stderr)
    if tool == "label_studio":
        print(f"Labeling configuration: {label_studio_config(pipeline.model.config.entity_labels)}", file=sys.stderr)
    return read


def tag(
    inputs: Annotated[list[str], Argument(help="Folders, files and patterns of .parquet, .jsonl and .txt.")],
    output_dir: Annotated[Path, Option(help="New folder, or that of a run to continue.")],
    model: shared.Model = None,
    text_column: shared.TextColumn = "text",
    entities_column: shared.EntitiesColumn = "entities",
    threshold: shared.Threshold = None,
    overlap: shared.Overlap = PredictionOptions.overlap,  # type: ignore[assignment]
    batch_size: shared.BatchSize = PredictionOptions.batch_size,
    bf16: shared.Bf16 = False,
    actors: Annotated[int | None, shared.count("Processes with a model and a CPU.  [default: as many as fit]")] = None,
    gpus_per_actor: Annotated[
        float | None, Option(min=0, metavar="NUMBER", help="GPUs of an actor; 0.5: two share one.  [default: 1 if any]")
    ] = None,
) -> int:
    """Tags a corpus of many files, on one machine or on a Ray cluster.

        triaffine-ner tag corpus/ --model outputs/demo/model --output-dir tagged

    Reads Parquet and JSON lines with one text per row, and .txt files with one document each. For each file, it writes
    one of the same name and form to the output folder, with "entities": [{"start", "end", "entity_group", "score",
    "word"}]; documents go to texts-00000.jsonl and so on. Rows that cannot be tagged are listed in rejected.jsonl, with
    file, row (from 1) and reason. After an interruption, the same command continues with what has no output yet.

    Runs on the Ray cluster that RAY_ADDRESS names or that this machine belongs to, otherwise on this machine alone. The
    exit code is 0 if every row is tagged, 3 if some are rejected, and 2 if the run cannot start or continue.
    """
    from ..tagging import TagOptions, find_files, tag_corpus

    columns: dict[str, Any] = {"text_column": text_column, "entities_column": entities_column}
    decoding: dict[str, Any] = {"threshold": threshold, "overlap": overlap, "batch_size": batch_size, "bf16": bf16}
    options = TagOptions(model, actors=actors, gpus_per_actor=gpus_per_actor, **columns, **decoding)
    with ending_plainly(RuntimeError):  # of Ray or the model
        output = tag_corpus(find_files(inputs, output_dir), output_dir, options)
    print(output.describe())  # which counts the rejected rows of all runs
    print(f"{output_dir} has the outputs{', and rejected.jsonl' if output.counts.rejected else ''}.")
    return REJECTED if output.counts.rejected else 0


def explain(
    text: Annotated[str, Option(help="The text, with the sentences around the span as its context.")],
    span: Annotated[str | None, Option(help="The span as written, which must occur once in the text.")] = None,
    offsets: Annotated[
        tuple[int, int] | None,
        Option(help="Instead of --span: its character offsets, end exclusive.", metavar="START END"),
    ] = None,
    model: shared.Model = None,
    device: shared.Device = None,
) -> None:
    """Explains the scores of a span by the model's attention: which words and candidates contribute to them, by label.

        triaffine-ner explain --model outputs/demo/model --text "The mayor of Velmar resigned." --span "Velmar"

    Prints tables whose columns add up: the contributions of the inside words and the label's bias to the logit before
    the cross-span stage, those of the candidates and the bias to the logit after it (with `cross_span_residual`, plus
    the logit before it). Each contribution has its attention weight. `triaffine-ner page` shows them, too.
    """
    if span is not None and offsets is None:
        if text.count(span) != 1:
            raise ValueError(f"--span {span!r} occurs {text.count(span)} times in the text. Copy it or use --offsets.")
        offsets = text.index(span), text.index(span) + len(span)
    elif span is not None or offsets is None:
        raise ValueError("Give the span either as --span, as it is written, or as --offsets START END.")
    from .. import explanation

    print(explanation.format_explanation(explanation.explain(shared.open_model(model, device), text, offsets)))
