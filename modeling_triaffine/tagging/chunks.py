"""The chunk: rows of an input on their way to the output."""

import dataclasses
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

Rejection = dict[str, Any]  # {"file", "row", "reason", "record"}
Place = tuple[str, int]  # a file, and the row in it, from 1


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Rows for one output.

    Args:
        output: The name of the output.
        rows: The rows that can be tagged: a table of Parquet, or records of JSON.
        places: Where each of them was.
        rejected: Those that cannot be tagged.
        entities: The number of entities by label, once they are found.
        failure: Why the rest of the input cannot be read; the chunk is then the last one of its output.
    """

    output: str
    rows: pa.Table | list[dict[str, Any]]
    places: Sequence[Place] = ()
    rejected: Sequence[Rejection] = ()
    entities: Mapping[str, int] = dataclasses.field(default_factory=dict)
    failure: str | None = None

    def pack(self) -> dict[str, bytes]:
        """The chunk as a row of a Ray Dataset; in bytes, because Ray would unify the schemas of tables."""
        return {"chunk": pickle.dumps(self)}

    @classmethod
    def unpack(cls, row: dict[str, bytes]) -> "Chunk":
        chunk: Chunk = pickle.loads(row["chunk"])
        return chunk

    @property
    def num_read(self) -> int:
        return len(self.places) + len(self.rejected)

    def texts(self, column: str) -> list[Any]:
        return self.rows[column].to_pylist() if isinstance(self.rows, pa.Table) else [row[column] for row in self.rows]

    def reject(self, reasons: Sequence[str | None]) -> "Chunk":
        """Moves the rows with a reason to the rejected ones."""
        good, bad = (
            [n for n, reason in enumerate(reasons) if (reason is None) == is_good] for is_good in (True, False)
        )
        records = _take(self.rows, bad)
        records = records.to_pylist() if isinstance(records, pa.Table) else records
        rejected = [rejection(*self.places[n], reasons[n], record) for n, record in zip(bad, records, strict=True)]
        places = [self.places[n] for n in good]
        return dataclasses.replace(
            self, rows=_take(self.rows, good), places=places, rejected=[*self.rejected, *rejected]
        )

    def with_entities(self, column: str, found: list[list[dict[str, Any]]], kind: pa.DataType) -> "Chunk":
        """The chunk with a column of entities."""
        counts = Counter(entity["entity_group"] for entities in found for entity in entities)
        if isinstance(self.rows, pa.Table):
            rows = self.rows.append_column(column, pa.array(found, kind))
        else:
            rows = [{**record, column: entities} for record, entities in zip(self.rows, found, strict=True)]
        return dataclasses.replace(self, rows=rows, entities=counts)


def _take(rows: Any, indices: list[int]) -> Any:
    return rows.take(pa.array(indices, pa.int64())) if isinstance(rows, pa.Table) else [rows[n] for n in indices]


def rejection(file: str, row: int | None, reason: str | None, record: Any) -> Rejection:
    """A line of `rejected.jsonl`; `row` is None for a whole file."""
    return {"file": file, "row": row, "reason": reason, "record": record}
