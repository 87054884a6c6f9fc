"""Reading small corpora in tests: straight through a format's reader, without the cache of `load_nested_ner`."""

from modeling_triaffine.data import FORMATS, RecordChecker, detect_format


def read(path, format=None, labels=None, **options):
    """The records of a file or folder, and the checker, which has counted."""
    check = RecordChecker(path, labels)
    known = detect_format(path) if format is None else FORMATS[format]
    return list(known.read(path, check, **options)), check


def triples(record):
    return [(entity["start"], entity["end"], entity["type"]) for entity in record["entities"]]


def spelled(record):
    """The record's entities as (words, type)."""
    return [(" ".join(record["tokens"][start:end]), kind) for start, end, kind in triples(record)]
