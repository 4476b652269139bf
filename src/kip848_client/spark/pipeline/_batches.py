"""Directories of batches: one per batch of the query, complete or absent.

A batch is written to a staging directory, which is then renamed. Spark repeats a batch that a
crash has interrupted; the repetition replaces the first attempt. So the output always has the last
attempt of each batch. A member's batch may have fewer rows when it is repeated (another member then
reads the rest), which is correct, too.

``_batch.json`` in each directory has the offsets of the rows. If a process died before its offsets
were committed to the group, a member that comes back uses them to continue after what it has
written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from kip848_client.spark.pipeline._errors import OutputRefused
from kip848_client.spark.pipeline._taken_over import TakenOver
from kip848_client.spark.pipeline.core._guard import batch_name

__all__ = ["NOTE", "BatchNote", "BatchOutput", "Ranges"]

NOTE: Final = "_batch.json"
Ranges = Mapping[str, Mapping[str, tuple[int, int]]]
"""First offset, and the offset after the last one, by topic and partition."""


@dataclass(frozen=True, slots=True)
class BatchNote:
    """The content of a batch."""

    batch: int
    rows: int
    ranges: Ranges
    topics: Mapping[str, str]
    """The ids of the topics."""

    def to_json(self) -> str:
        """The text of the file."""
        said = {
            "batch": self.batch,
            "rows": self.rows,
            "ranges": self.ranges,
            "topics": self.topics,
        }
        return json.dumps(said, sort_keys=True) + "\n"

    @classmethod
    def of(cls, text: str, path: str) -> BatchNote:
        """Read the text of the file. Raises ``OutputRefused``."""
        try:
            said = cast("dict[str, Any]", json.loads(text))
            ranges = {
                str(topic): {str(number): (int(a), int(b)) for number, (a, b) in spans.items()}
                for topic, spans in said["ranges"].items()
            }
            return cls(int(said["batch"]), int(said["rows"]), ranges, dict(said["topics"]))
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise OutputRefused(f"{path} cannot be read: {err}; was it changed manually?") from err


class BatchOutput(TakenOver):
    """One output directory, written by one driver."""

    def publish(self, note: BatchNote) -> None:
        """Publish a batch from its staging directory; it replaces an earlier attempt. Raises
        ``DriverReplaced``."""
        self._files.write(f"{self.staged(note.batch)}/{NOTE}", note.to_json())
        self.check_driver()
        target = f"{self._path}/{batch_name(note.batch)}"
        self._files.remove(target)
        try:
            self._files.move(self.staged(note.batch), target)
        except FileExistsError:
            raise self.replaced_by("another process") from None

    def withdraw(self, number: int) -> None:
        """Remove a published batch, which has no rows any more. Raises ``DriverReplaced``."""
        self.check_driver()
        self._files.remove(f"{self._path}/{batch_name(number)}")
