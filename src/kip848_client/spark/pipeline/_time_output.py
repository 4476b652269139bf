"""Directories by time: files named by topic, partition and first offset.

The files of a batch are written to a staging directory. Then the index gets their names, the files
are renamed into their directories, and the index gets their ranges. A batch that is interrupted in
between has its files removed by the next driver, and its ranges are written again, in whichever
batches they come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kip848_client.spark.pipeline._errors import OutputRefused
from kip848_client.spark.pipeline._files import Files
from kip848_client.spark.pipeline._taken_over import TakenOver
from kip848_client.spark.pipeline.core._guard import visible
from kip848_client.spark.pipeline.core._written_index import (
    INDEX,
    Part,
    Spans,
    WrittenIndex,
    targets,
)

__all__ = ["TimeOutput"]

_EMPTY: Final = WrittenIndex()


class TimeOutput(TakenOver):
    """One output directory, written by one driver."""

    def __init__(self, files: Files, path: str) -> None:
        super().__init__(files, path)
        self._index = _EMPTY

    def take_over(self) -> None:
        """Also read the index, and remove the files of an interrupted batch. Raises
        ``OutputRefused`` if the index is missing or cannot be read."""
        super().take_over()
        file = f"{self._path}/{INDEX}"
        text = self._files.read(file)
        if text is None and visible(self._files.names(self._path)):
            raise OutputRefused(
                f"{file}, which lists the offsets in the output, is missing. Restore it, or write "
                "to a new directory (sink.path)"
            )
        self._index = _EMPTY if text is None else WrittenIndex.of(text, file)
        if self._index.pending:
            self._undo()

    def lacking(self, ranges: Spans, topics: Mapping[str, str]) -> list[Part]:
        """The parts of a batch that the output does not have. Raises ``OutputRefused``."""
        return self._index.lacking(ranges, topics, self._path)

    def publish(self, number: int, parts: Sequence[Part], topics: Mapping[str, str]) -> None:
        """Publish the staged files of a batch. Raises ``DriverReplaced``, and ``OSError`` if a file
        cannot be renamed: then the files of the batch are removed again."""
        staged = self.staged(number)
        moves = targets(self._files.files_below(staged), parts)
        self.check_driver()
        self._save(self._index.begun(moves.values()))
        try:
            for source, target in moves.items():
                self._files.replace(f"{staged}/{source}", f"{self._path}/{target}")
        except OSError:
            self.check_driver()
            self._undo()
            raise
        self.check_driver()
        self._save(self._index.done(parts, topics))
        self.discard(number)

    def _undo(self) -> None:
        """Remove the files of an interrupted batch."""
        for each in self._index.pending:
            self._files.remove(f"{self._path}/{each}")
        self._save(self._index.begun(()))

    def _save(self, index: WrittenIndex) -> None:
        self._files.write(f"{self._path}/{INDEX}", index.to_json())
        self._index = index
