"""Shows a pipeline at work: one line redrawn in place on a terminal, a line for each batch anywhere
else, or JSON.

Pure text in, pure text out; only ``Board`` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TextIO

from kip848_client.spark.pipeline import PipelineStatus

__all__ = ["Board", "line_of"]


def line_of(said: Mapping[str, Any]) -> str:
    """What a line shows of ``PipelineStatus.to_json()``."""
    rows = "" if said["rows"] is None else f"  rows {said['rows']:,}"
    bad = f"  undecodable {said['bad']:,}" if said["bad"] else ""
    leaving = f" ({said['leaving']} leaving)" if said["leaving"] else ""
    return (
        f"{said['state']:<9} batch {_or_dash(said['last_batch'])}"
        f" ({_or_dash(said['last_batch_ms'])} ms)"
        f"  records {said['records']:,}{rows}{bad}"
        f"  {said['records_per_second']:,.0f}/s"
        f"  lag {_or_dash(said['lag'])}"
        f"  partitions {_or_dash(said['partitions'])}{leaving}"
    )


def _or_dash(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


class Board:
    """Where a pipeline is shown."""

    def __init__(self, out: TextIO, *, is_json: bool) -> None:
        self._out = out
        self._is_json = is_json
        self._is_live = not is_json and out.isatty()
        self._last: dict[str, Any] | None = None

    def show(self, status: PipelineStatus) -> None:
        """Show it, if it is news: a batch, a state, partitions. On a terminal, always."""
        said = status.to_json()
        if self._is_live:
            self._write(f"\r\x1b[2K{line_of(said)}")
        elif self._is_news(said):
            self._write((json.dumps(said) if self._is_json else line_of(said)) + "\n")
        self._last = said

    def close(self, text: str) -> None:
        """A last line below."""
        if self._is_json:
            self._write(json.dumps({"end": text}) + "\n")
        else:
            self._write(("\n" if self._is_live else "") + text + "\n")

    def _is_news(self, said: Mapping[str, Any]) -> bool:
        last = self._last
        return last is None or any(
            last[name] != said[name] for name in ("state", "batches", "partitions", "leaving")
        )

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
