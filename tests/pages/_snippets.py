"""Finds the snippets of a page, and plays them one after the other in one namespace, as whoever
pastes them into ``python -m asyncio`` does. ``localhost:9092`` is the bundled coordinator then."""

from __future__ import annotations

import ast
import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("*.md")))
_SNIPPET: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND: Final = re.compile(r"`kip848 ((?:groups|topics) \S[^`]* [^`]+)`")
_LIMIT_S: Final = 30

Until = Callable[[], Awaitable[bool]]


def snippets(page: Path) -> list[str]:
    """The Python of a page, in its order."""
    return _SNIPPET.findall(page.read_text(encoding="utf-8"))


def commands(page: Path) -> list[list[str]]:
    """Commands that a page names in a sentence, with their options, as words."""
    return [shlex.split(each) for each in _COMMAND.findall(page.read_text(encoding="utf-8"))]


def name_of(page: Path) -> str:
    """As the tables of the tests say it."""
    return page.stem


async def play(
    source: str,
    names: dict[str, Any],
    replaced: Mapping[str, str],
    until: Until | None = None,
) -> None:
    """Run a snippet to its end. One that has none is cancelled when ``until`` is true."""
    for old, new in replaced.items():
        source = source.replace(old, new)
    code = compile(source, "<page>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    awaited = eval(code, names)
    if awaited is None:
        return
    task = asyncio.ensure_future(awaited)
    try:
        async with asyncio.timeout(_LIMIT_S):
            if until is None:
                await task
                return
            while not task.done() and not await until():
                await asyncio.wait([task], timeout=0.02)
    finally:
        ended_by_itself = task.done()
        if not ended_by_itself:
            task.cancel()
        await asyncio.wait([task])
    if ended_by_itself:
        task.result()
    assert not ended_by_itself, "it says that it goes on until it is stopped"
