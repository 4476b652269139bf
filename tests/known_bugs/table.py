"""The whole table, and the page that shows it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from mock_coordinator.sim.fetching import delivery_checks, request_checks, state_checks
from tests.known_bugs.of_leaders import LEADERS, REPLICAS, TRUNCATION
from tests.known_bugs.of_positions import PAUSES, POSITIONS
from tests.known_bugs.of_records import PACE, RECORDS
from tests.known_bugs.of_sessions import CLUSTERS, SESSIONS, TOPICS
from tests.known_bugs.rows import KnownBug, Test, module_of, name_of
from tests.simulation.test_planted_fetch_bugs import BUGS

__all__ = ["ALL", "TABLE", "page"]

TABLE: Final[Mapping[str, tuple[KnownBug, ...]]] = {
    "Fetch sessions": SESSIONS,
    "Topics that are created, deleted and created again": TOPICS,
    "Leaders": LEADERS,
    "Logs that were cut": TRUNCATION,
    "Replicas": REPLICAS,
    "Pauses": PAUSES,
    "Positions": POSITIONS,
    "Batches and records": RECORDS,
    "Pace and memory": PACE,
    "Another beginning": CLUSTERS,
}

ALL: Final = tuple(bug for bugs in TABLE.values() for bug in bugs)

_HEAD: Final = """\
# Bugs of fetching that are known, and the tests that would see them

Reading records from Kafka goes wrong in ways that repeat themselves from client to client. Here is
what others have met, where one can read of it, what this client does instead, and the tests that
fail if it had the bug. That they do is itself tested: `tests/known_bugs` puts each bug into the
code and runs them. The tests name the issue, so `grep -r KAFKA-17182 tests` finds them, too.

What must hold whatever happens is checked by the simulation; the last table has its checkers, and
the bugs that are planted there to see that each of them finds something.

This page is printed by `python -m tools.docs`, and a test compares them.
"""


def page() -> str:
    """The text of ``docs/reference/known-bugs.md``."""
    return "\n".join([_HEAD, *_sections(), *_checkers()]) + "\n"


def _sections() -> Iterator[str]:
    for number, (title, bugs) in enumerate(TABLE.items()):
        yield f"{'' if not number else chr(10)}## {title}\n"
        yield "| seen in | what goes wrong | what this client does | tests |"
        yield "|---|---|---|---|"
        for bug in bugs:
            tests = dict.fromkeys([proof.test for proof in bug.proofs] + list(bug.of_the_broker))
            cells = (bug.seen_in.replace(";", ","), bug.wrong, bug.right, _shown(tests))
            yield f"| {' | '.join(cells)} |"


def _shown(tests: Mapping[Test, None]) -> str:
    links: dict[str, None] = {}
    for test in tests:
        path = PurePosixPath(*module_of(test).split(".")).with_suffix(".py")
        links[f"[{name_of(test)}](../../{path})"] = None
    return "; ".join(links)


_SIMULATED: Final = """
## What is checked after every step of the simulation

`python -m mock_coordinator.sim --fetching` plays fetching against brokers that stop, lie, lag
behind, and cut, compact and retain their logs. The planted bugs are in
[test_planted_fetch_bugs.py](../../tests/simulation/test_planted_fetch_bugs.py). That the same
events lead to the same commands is a test of its own in
[test_fetch_core.py](../../tests/properties/test_fetch_core.py).

| checker | what must hold | found by it |
|---|---|---|"""


def _checkers() -> Iterator[str]:
    yield _SIMULATED
    found: dict[str, list[str]] = {}
    for bug in BUGS:
        found.setdefault(bug.said.removeprefix("Violation: "), []).append(bug.name)
    for checker, holds in _what_holds():
        yield f"| {checker} | {holds} | {'; '.join(found[checker])} |"


def _what_holds() -> Iterator[tuple[str, str]]:
    """Each checker, and what its module says of it."""
    for module in (delivery_checks, request_checks, state_checks):
        said = re.split(r"\n- ``(\w+)``: ", "\n" + (inspect.getdoc(module) or ""))[1:]
        for checker, text in zip(said[::2], said[1::2], strict=True):
            yield checker, " ".join(text.split()).replace("``", "`").rstrip(".")
    yield (
        "Stuck",
        "when the faults have ended, everything is read, and nobody asks more than he must",
    )
