"""Shows a running pipeline: one line redrawn in place on a terminal, one line per batch elsewhere,
or JSON.

Pure text in, pure text out; only ``Display`` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TextIO

from kip848_client.cli._live import can_be_live
from kip848_client.cli._output import size_of
from kip848_client.cli.core._cells import cropped
from kip848_client.core.visible import visible
from kip848_client.spark.pipeline import PipelineStatus

__all__ = ["Display", "line_of"]


def line_of(said: Mapping[str, Any]) -> str:
    """Format ``PipelineStatus.to_json()`` as a line."""
    rows = "" if said["rows"] is None else f"  rows {said['rows']:,}"
    bad = f"  undecodable {said['bad']:,}" if said["bad"] else ""
    leaving = f" ({said['leaving']} leaving)" if said["leaving"] else ""
    lag = "" if said["lag"] is None else f"  lag {said['lag']:,}"
    partitions = "" if said["partitions"] is None else f"  partitions {said['partitions']:,}"
    return (
        f"{said['state']:<9} {_batch(said)}  records {said['records']:,}{rows}{bad}"
        f"  {said['records_per_second']:,.0f}/s{lag}{partitions}{leaving}"
    )


def _batch(said: Mapping[str, Any]) -> str:
    if said["last_batch"] is None:
        return "no batch yet"
    took = "" if said["last_batch_ms"] is None else f" ({said['last_batch_ms']:,} ms)"
    return f"batch {said['last_batch']:,}{took}"


class Display:
    """The output for a pipeline."""

    def __init__(self, out: TextIO, *, is_json: bool) -> None:
        self._out = out
        self._is_json = is_json
        self._is_live = not is_json and can_be_live(out)
        self._last: dict[str, Any] | None = None
        self._width = 0
        """The terminal's width when the line was last drawn."""

    def show(self, status: PipelineStatus) -> None:
        """Show the status if it has changed: a batch, a state, partitions. On a terminal,
        always."""
        said = status.to_json()
        if self._is_live:
            self._redraw(line_of(said))
        elif self._is_news(said):
            self._write((json.dumps(said) if self._is_json else line_of(said)) + "\n")
        self._last = said

    def close(self, text: str) -> None:
        """Print a last line."""
        if self._is_json:
            self._write(json.dumps({"end": text}) + "\n")
        else:
            self._write(("\n" if self._is_live else "") + visible(text) + "\n")

    def _redraw(self, line: str) -> None:
        """Redraw in place, between Spark's log lines. If the terminal became narrower, the old,
        wrapped line stays."""
        size = size_of(self._out)
        width = 0 if size is None else size.columns
        begin = "\n" if width < self._width else "\r"
        self._width = width
        self._write(f"{begin}\x1b[2K{cropped(line, width - 1)}")

    def _is_news(self, said: Mapping[str, Any]) -> bool:
        last = self._last
        return last is None or any(
            last[name] != said[name] for name in ("state", "batches", "partitions", "leaving")
        )

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
