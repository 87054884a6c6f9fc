"""Characters a second and memory of reading each format.

    PYTHONPATH=. python benchmarks/reading.py --output rows.jsonl

The sentence that all tests of formats read (`tests/helpers/format_cases.py`) is repeated until its files have
`--megabytes`. Seconds are processor time of `load_texts`; memory is what reading takes beyond what was in use before,
with the texts that it returns. A second row of a format has twice as much to read: seconds should double.
"""

import argparse
import re
import tempfile
import time
from pathlib import Path

from measuring import Rows, peak_extra_bytes

from modeling_triaffine.data import load_texts
from tests.helpers.format_cases import CASES, SAMPLES

DOCUMENT = re.compile(r"(?s)(.*?)(<(article|document)>.*</\3>\n?)(.*)")  # head, documents and end of XML


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=1.0, help="To read in the first row of each format.")
    parser.add_argument("--formats", nargs="+", choices=sorted(SAMPLES), default=sorted(SAMPLES))
    parser.add_argument("--output", type=Path, help="File to write the rows to.")
    given = parser.parse_args()
    rows = Rows("reading of corpora: processor time, one thread")
    for name in given.formats:
        for megabytes in (given.megabytes, 2 * given.megabytes):
            with tempfile.TemporaryDirectory() as folder:
                rows.add(format=name, **measure(Path(folder), name, int(megabytes * 1e6)))
    rows.write(given.output)


def measure(folder: Path, name: str, wanted: int) -> dict[str, float | None]:
    """Writes about so many characters in a format, and reads them."""
    files = SAMPLES[name]
    times = wanted // sum(map(len, files.values()))
    if len(files) == 1:
        ((file, content),) = files.items()
        (folder / file).write_text(repeated(str(content), times), encoding="utf-8")
    for number in range(times if len(files) > 1 else 0):
        for file, content in files.items():
            (folder / f"{number}-{file}").write_text(str(content), encoding="utf-8")
    characters = sum(file.stat().st_size for file in folder.iterdir())
    began = time.process_time()
    memory = peak_extra_bytes(lambda: load_texts(folder, name))
    seconds = time.process_time() - began
    return {
        "entities": times * len(CASES[name].entities),
        "megabytes": round(characters / 1e6, 2),
        "seconds": round(seconds, 2),
        "characters_a_second": round(characters / seconds),
        "megabytes_of_memory": memory and round(memory / 1e6),
    }


def repeated(content: str, times: int) -> str:
    """Many documents in one file, in the form of the one given."""
    if content.startswith("["):
        return f"[{','.join([content.strip()[1:-1]] * times)}]"
    if found := DOCUMENT.fullmatch(content):
        return found[1] + found[2] * times + found[4]
    return (content if content.startswith("{") else f"{content.rstrip()}\n\n") * times


if __name__ == "__main__":
    main()
