"""The chunk: rows of an input file on their way to the output."""

import dataclasses
import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

Rejection = dict[str, Any]  # {"file", "row", "reason", "record"}


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Rows of a file.

    Args:
        table: the rows that can be tagged; all chunks of a file have the same schema.
        rows: their numbers in the file, from 1.
        rejected: the rows that cannot be tagged.
        failure: why the rest of the file cannot be read; the chunk is then the last one of the file.
    """

    file: str
    table: pa.Table
    rows: Sequence[int] = ()
    rejected: Sequence[Rejection] = ()
    failure: str | None = None

    def pack(self) -> dict[str, Any]:
        """Serializes the chunk as a row of a Ray Dataset, in bytes because Ray would unify the schemas of tables."""
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        others = {"file": self.file, "rows": list(self.rows), "rejected": list(self.rejected), "failure": self.failure}
        return {"table": sink.getvalue(), "others": json.dumps(others, default=str)}

    @classmethod
    def unpack(cls, row: dict[str, Any]) -> "Chunk":
        return cls(table=pa.ipc.open_stream(row["table"]).read_all(), **json.loads(row["others"]))

    def reject(self, reasons: Sequence[str | None]) -> "Chunk":
        """Moves the rows with a reason to the rejected ones."""
        bad = [index for index, reason in enumerate(reasons) if reason is not None]
        records = self.table.take(pa.array(bad, pa.int64())).to_pylist()
        rejected = [
            rejection(self.file, self.rows[index], reasons[index], record)
            for index, record in zip(bad, records, strict=True)
        ]
        return dataclasses.replace(
            self,
            table=self.table.filter(pa.array([reason is None for reason in reasons], pa.bool_())),
            rows=[row for row, reason in zip(self.rows, reasons, strict=True) if reason is None],
            rejected=sorted([*self.rejected, *rejected], key=lambda rejection: rejection["row"]),
        )


def rejection(file: str, row: int | None, reason: str | None, record: Any) -> Rejection:
    """A line of `rejected.jsonl`; `row` is None for a whole file."""
    return {"file": file, "row": row, "reason": reason, "record": record}
