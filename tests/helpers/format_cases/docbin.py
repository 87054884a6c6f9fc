"""spaCy's DocBin."""

from ..corpora import TEXT, TEXT_RECORD
from . import FormatCase


def make() -> dict[str, bytes]:
    import spacy

    doc = spacy.blank("en")(TEXT)
    doc.spans["sc"] = [doc.char_span(start, end, label) for start, end, label in TEXT_RECORD["label"]]
    return {"a.spacy": spacy.tokens.DocBin(docs=[doc]).to_bytes()}


CASE = FormatCase(make, needs="spacy")
