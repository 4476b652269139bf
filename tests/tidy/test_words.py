"""Turns of phrase that an American or British engineer has to read twice: a budget that only falls.

Docstrings, texts and comments of the product, and the pages. Decision pages stay as they were
written, and Kafka's own texts (``mock_coordinator/core``) are Kafka's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.tidy.source_tree import ROOT

TURNS = re.compile(
    r"""\b(?: whoever | nobody | somebody | anybody | so_many | so_much | but_for | as_ever
    | likewise | anew | shall | time-outs? | of_which | for_ever | all_the_same
    | puts?_out | mend(?:s|ed|ing)? | (?:is|are|was|were|be|been|being)_told | told_of | tells?_of
    | (?<!there\s)(?:is|are|was|were)_no_(?!longer|more|such|less)[a-z]+
    | who_(?:asks?|reads?|wants?|waits?)
    )\b""".replace(
        "_", r"\s+(?:\#\s)?"
    ),  # words of a turn stand in one line or in two, of a comment too
    re.IGNORECASE | re.VERBOSE,
)
BUDGET = {
    "README.md": 0,
    "docs": 3,
    "src/kip848_client": 21,
    "mock_coordinator": 20,
}
"""Most turns in each place. Lower the number when you rewrite a text; never raise it."""


def _texts(place: str) -> Iterator[tuple[str, str]]:
    root = ROOT / place
    for path in [root] if root.is_file() else sorted((*root.rglob("*.md"), *root.rglob("*.py"))):
        if "decisions" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


@pytest.mark.parametrize("place", BUDGET)
def test_few_texts_have_to_be_read_twice(place: str) -> None:
    found = [
        f"{name}:{1 + text.count(chr(10), 0, turn.start())}: {' '.join(turn[0].split())}"
        for name, text in _texts(place)
        for turn in TURNS.finditer(text)
    ]
    assert len(found) <= BUDGET[place], "\n".join([f"{len(found)} turns in {place}:", *found])


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ("a future that nobody looks at", "nobody"),
        ("the commit is told of it", "is told"),
        ("it is no member", "is no member"),
        ("but for the first one", "but for"),
        ("the member is fenced and joins again", None),
        ("it is no longer a member", None),
    ],
)
def test_a_turn_is_seen(text: str, turn: str | None) -> None:
    found = TURNS.search(text)
    assert (found[0] if found else None) == turn
