"""Ids of sentences: those that the comments of CoNLL's formats give, or numbers."""

from itertools import count
from typing import Any


def comment_field(line: str) -> tuple[str, str]:
    """Name and value of a comment: "# newdoc id = a" → ("newdoc id", "a"); without "=" the value is empty."""
    name, _, value = line.removeprefix("#").partition("=")
    return " ".join(name.split()), value.strip()


class SentenceIds:
    """Gives sentences the ids in the comments before them, and numbers them where there are none.

    Ids that are numbers, which may begin anew in each document, follow its name.
    Before the first document begins, every sentence is a document of its own, unless the file is one.
    """

    def __init__(self, stem: str, is_document: bool):
        self.unnamed = (f"{stem}:{number}" for number in count())
        self.doc_id, self.id = stem if is_document else "", ""
        self.sent_id = 0

    def start(self, doc_id: str = "") -> None:
        """Begins a document."""
        self.doc_id = doc_id or next(self.unnamed)
        self.sent_id = 0

    def read_comment(self, line: str) -> tuple[str, str]:
        """Reads `# newdoc id = …`, for the following sentences, or `# sent_id = …`, for the next one.

        Returns name and value of any comment.
        """
        name, value = comment_field(line)
        if name in ("newdoc", "newdoc id"):
            self.start(value)
        elif name == "sent_id":
            self.id = value
        return name, value

    def next_sentence(self) -> dict[str, Any]:
        """`id`, `doc_id` and `sent_id` of the next sentence."""
        doc_id, sent_id = (self.doc_id, self.sent_id) if self.doc_id else (next(self.unnamed), 0)
        identifier = f"{doc_id}:{self.id or sent_id}" if not self.id or self.id.isdecimal() else self.id
        self.id = ""
        self.sent_id += 1
        return {"id": identifier, "doc_id": doc_id, "sent_id": sent_id}
