"""Redraws a picture in place on a terminal, at any size and after a resize.

It draws on the terminal's alternate screen, line by line from the upper left corner. Terminals do
not rewrap the alternate screen when the size changes, and the old cursor position does not matter.
At the end the last picture is printed where the command was typed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Final, TextIO

from kip848_client.cli._output import Unwritable, size_of
from kip848_client.cli.core._cells import cropped
from kip848_client.core.visible import visible

__all__ = ["Live", "Picture", "can_be_live", "cut"]

Picture = Callable[[int, int | None], list[str]]
"""Returns the lines for a number of columns and rows; ``None``: unlimited rows."""

# alternate screen, hidden cursor, no line wrap
_ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l"
# clear a terminal without an alternate screen, rather than leave half of a picture
_LEAVE: Final = "\x1b[H\x1b[J\x1b[?7h\x1b[?25h\x1b[?1049l"
_CORNER: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[2K"
_CLEAR_BELOW: Final = "\x1b[J"


def can_be_live(out: TextIO) -> bool:
    """Whether this is a terminal that can redraw in place."""
    return out.isatty() and os.name != "nt" and os.environ.get("TERM", "dumb") != "dumb"


def cut(lines: list[str], height: int) -> list[str]:
    """At most this many lines; the last one says how many were cut."""
    if len(lines) <= height:
        return lines
    kept = max(height - 1, 0)
    return [*lines[:kept], f"... {len(lines) - kept} more lines"][:height]


class Live:
    """Use it as ``with``; ``show`` draws. Raises ``Unwritable``."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._picture: Picture | None = None

    def __enter__(self) -> Live:
        self._write(_ENTER)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(Unwritable):  # a terminal that is gone
            self._write(_LEAVE)
            size = size_of(self._out)
            if self._picture is not None and size is not None:
                lines = self._picture(size.columns, None)
                self._write("".join(f"{visible(line)}\n" for line in lines))

    def show(self, picture: Picture) -> None:
        """Draw this picture now, and again when the size changes (``redrawn_on_resize``)."""
        self._picture = picture
        self.redraw()

    def redraw(self) -> None:
        """Draw the last picture at the terminal's current size."""
        size = size_of(self._out)
        if self._picture is None or size is None:
            return
        lines = self._picture(size.columns, size.lines)[: size.lines]
        rows = [f"{_CLEAR_LINE}{cropped(visible(line), size.columns)}" for line in lines]
        below = f"\n{_CLEAR_BELOW}" if len(rows) < size.lines else ""
        self._write(_CORNER + "\n".join(rows) + below)

    @contextmanager
    def redrawn_on_resize(self) -> Generator[None]:
        """In an asyncio loop: redraw on a resize. For pictures that are drawn rarely."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not in this thread
            loop.add_signal_handler(signal.SIGWINCH, self.redraw)
        try:
            yield
        finally:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(signal.SIGWINCH)

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except OSError as err:
            raise Unwritable from err
