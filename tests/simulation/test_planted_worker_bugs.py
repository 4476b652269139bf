"""Each planted bug is found: a checker that never fails proves nothing.

A bug is put into the membership of workers for one test, as another text in the place of a few of
its words, and worlds are played until one fails. The bugs are some of those that the tests of the
core find by themselves: 18 in the membership of the new protocol
(``tests/unit/connect/test_planted_bugs.py``), 19 in that of classic groups (``..classic_bugs.py``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest

from mock_coordinator.sim.invariants import Violation
from mock_coordinator.sim.verdict import Stuck
from mock_coordinator.sim.workers.world import WorkerWorld
from tests.simulation import planted
from tests.support.planting import plant
from tests.unit.connect.test_planted_bugs import BUGS

_SEEDS: Final = range(20)


class Found(NamedTuple):
    """How a bug shows itself, and in which worlds."""

    kind: type[Exception]
    said: str
    changes: dict[str, str]


_CUT_OFF: Final = {
    "partition_every_ms": "4000",
    "delay_max_ms": "0",
    "session_timeout_ms": "10000",
    "heartbeat_interval_ms": "2000",
    "act_every_ms": "100000",
    "stop_every_ms": "0",
    "move_every_ms": "0",
    "workers": "4",
}
_LONG_DELAY: Final = {"delay_max_ms": "60000", "workers": "4"}
_NEWS: Final = {"read_ms_max": "20000", "configure_every_ms": "5000", "workers": "4"}
_CUT_OFF_WITH_NEWS_UNREAD: Final = _CUT_OFF | {
    "partition_every_ms": "2000",
    "configure_every_ms": "6000",
    "read_ms_max": "60000",
    "compute_ms_max": "1",
}

FOUND: Final = {
    "a worker that cannot reach the coordinator goes on": Found(Violation, "RunsTwice", _CUT_OFF),
    "it begins to stop when its session ends": Found(Violation, "RunsTwice", _CUT_OFF),
    "items are started without their configuration": Found(Violation, "Unread", _NEWS),
    "what waits to start survives the end of the session": Found(
        Violation, "RunsTwice", _CUT_OFF_WITH_NEWS_UNREAD
    ),
    "a failed assignor is not tried again": Found(
        Stuck, "items rest", {"assignor_fails": "0.9", "initial_delay_ms": "0"}
    ),
    "the assignor gets no memory": Found(Stuck, "did not get back", _LONG_DELAY),
    "tasks of all generations are the same": Found(Stuck, "items rest", {}),
    "connectors themselves get lost among tasks": Found(Stuck, "items rest", {}),
}


@pytest.mark.parametrize(("name", "found"), FOUND.items(), ids=FOUND)
@pytest.mark.timeout(120)
def test_a_bug_is_found(monkeypatch: pytest.MonkeyPatch, name: str, found: Found) -> None:
    plant(monkeypatch, BUGS[name].plant)
    kind, said = found.kind.__name__, found.said
    heads = planted.found(WorkerWorld, _SEEDS, said, found.changes)
    assert heads, f"{name}: no seed of {_SEEDS} finds it"
    assert heads[0].startswith(f"{kind}: "), heads
    assert said in heads[0], heads
