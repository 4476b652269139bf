"""Each planted bug is found: a checker that never fails proves nothing.

A bug is put into the fetch core for one test, as another text in the place of a few of its words,
and worlds are played until one fails.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

import pytest

from kip848_client.core.cluster import Leaders, MetadataQuestions
from kip848_client.core.fetch._answers import Answers
from kip848_client.core.fetch._core import FetchCore
from kip848_client.core.fetch._partition import Partition
from kip848_client.core.fetch._planner import Planner
from kip848_client.core.fetch._position_changes import PositionChanges
from kip848_client.core.fetch._sessions import FetchSession
from kip848_client.core.fetch._topics import Topics
from kip848_client.core.fetch._unread_slices import UnreadSlices
from mock_coordinator.sim.fetching import delivery_checks, request_checks, state_checks
from mock_coordinator.sim.fetching.delivery_checks import Closed, Delivered, Moved
from mock_coordinator.sim.fetching.request_checks import (
    NoStarvation,
    NoStorm,
    OneRequest,
    Sane,
    Session,
)
from mock_coordinator.sim.fetching.state_checks import Adjoin, Awaited, Budget, Inert, InStep
from mock_coordinator.sim.fetching.world import FetchWorld
from mock_coordinator.sim.verdict import Stuck
from tests.simulation.planted import Bug, found
from tests.support.planting import Plant, plant


def _bug(
    name: str,
    owner: Any,
    function: str,
    right: str,
    wrong: str,
    said: str,
    changes: Mapping[str, str] = {},
) -> Bug:
    """``right`` and ``wrong`` may be several lines, each in the place of one."""
    lines = zip(right.splitlines(), wrong.splitlines(), strict=True)
    plants = tuple(Plant(owner, function, *line) for line in lines)
    return Bug(name, said, plants, {"safety_ms": "20000", **changes})


BUGS: Final = (
    _bug(
        "an answer to what was asked before a seek is taken",
        Answers,
        "_take",
        "partition.generation != node.generations.get(key)\n"
        "partition.fetch_offset != taking.asked[key].offset",
        "False\nFalse",
        "Violation: Inert",
        {"act_every_ms": "100"},
    ),
    _bug(
        "records of aborted transactions are handed out",
        Answers,
        "_on_records",
        "told.aborted if self._settings.read_committed else ()",
        "()",
        "Violation: Delivered",
        {"read_committed": "true", "transactional": "0.8"},
    ),
    _bug(
        "the next offset is counted in records",
        sys.modules["kip848_client.core.fetch._batch_headers"],
        "_batch",
        "return BatchRef(at, end, base, after, count",
        "return BatchRef(at, end, base, base + count, count",
        "Stuck",
        {"compact_every_ms": "500"},
    ),
    _bug(
        "nothing is forgotten in a session",
        FetchSession,
        "plan_changes",
        "tuple([key for key, want in differs if want is None])",
        "()",
        "Violation: Session",
        {"session_slots": "1000", "act_every_ms": "300"},
    ),
    _bug(
        "an offset that moved is not told in a session",
        FetchSession,
        "plan_changes",
        "if known.get(key) != want]",
        "if (key in known) != (want is not None)]",
        "Violation: NoStorm",
        {"session_slots": "1000"},
    ),
    _bug(
        "the session epoch is kept after an answer was lost",
        FetchSession,
        "lost",
        "if sent:",
        "if False:",
        "Violation: Session",
        {"session_slots": "1000", "lose_response": "0.2"},
    ),
    _bug(
        "INVALID_FETCH_SESSION_EPOCH is answered with the same epoch",
        FetchSession,
        "_refused",
        "self._reset(_NO_SESSION if over else self._session_id)",
        "self._reset(_NO_SESSION) if over else None",
        "Violation: Session",
        {"session_slots": "1000", "refuse": "0.2"},
    ),
    _bug(
        "a replica's word that the position is out of range is final",
        Answers,
        "_on_error",
        "elif self._is_replica(now_ms, node, partition):",
        "elif not rule.check and self._is_replica(now_ms, node, partition):",
        "Violation: Moved",
        {"reset_policy": "earliest", "near": "true", "brokers": "3", "lag": "0.5"},
    ),
    _bug(
        "nothing is reserved for what was asked for",
        Planner,
        "_send",
        "self._reserved_bytes += size_bytes\nnow_ms, size_bytes, max_wait_ms)",
        "self._reserved_bytes += 0\nnow_ms, 0, max_wait_ms)",
        "Violation: Budget",
        {"buffer_bytes": "1000", "max_bytes": "1000", "max_partition_bytes": "500"},
    ),
    _bug(
        "a broker is asked though the budget is used up",
        Planner,
        "_grant",
        "return 0",
        "return limit",
        "Violation: Budget",
        {"buffer_bytes": "1000", "max_bytes": "1000", "max_partition_bytes": "500"},
    ),
    _bug(
        "partitions never take turns",
        Planner,
        "served",
        "del node.ring[key]",
        "return",
        "Violation: NoStarvation",
        {
            "brokers": "1",
            "session_slots": "4",
            "max_bytes": "100",
            "max_partition_bytes": "2000",
            "produce_every_ms": "2",
            "partitions_max": "5",
            "records_max": "500",
            "poll_pause_ms": "5",
            "delay_ms_max": "2",
            "safety_ms": "5000",
        },
    ),
    _bug(
        "a hint of a former leader is believed",
        Leaders,
        "hint",
        "epoch <= before.epoch",
        "False",
        "Violation: Sane",
        {"refuse": "0.2", "brokers": "3", "elect_every_ms": "500"},
    ),
    _bug(
        "the last epoch is not said, so a cut is not noticed",
        Planner,
        "_want",
        "epoch, partition.fetch_epoch, limit",
        "epoch, NO_EPOCH, limit",
        "Violation: Delivered",
        {"cut_every_ms": "1000", "produce_every_ms": "50"},
    ),
    _bug(
        "a cut below the position is not told",
        Answers,
        "_on_diverging",
        "cursor.consumed <= end.end_offset and cursor.consumed_epoch <= end.epoch",
        "True",
        "Stuck",
        {"cut_every_ms": "1000", "reset_policy": "latest", "produce_every_ms": "50"},
    ),
    _bug(
        "what is paused is handed out",
        UnreadSlices,
        "refresh",
        "bool(partition.slices) and partition.readable",
        "bool(partition.slices)",
        "Violation: Closed",
        {"act_every_ms": "300"},
    ),
    _bug(
        "what is paused is fetched",
        Planner,
        "refresh",
        "not partition.why_not & ~NO_LEADER",
        "not partition.why_not & ~NO_LEADER & ~1",
        "Violation: Session",
        {"act_every_ms": "300"},
    ),
    _bug(
        "what is being revoked is not held",
        FetchCore,
        "_on_assignment",
        "on=tp not in fetchable",
        "on=False",
        "Violation: Session",
        {"act_every_ms": "300"},
    ),
    _bug(
        "an older seek wins",
        PositionChanges,
        "end_seek",
        "if partition.seek != event.ticket:",
        "if False:",
        "Violation: Moved",
        {"act_every_ms": "100"},
    ),
    _bug(
        "a broker is asked while it is throttled",
        Answers,
        "_whole",
        "now_ms + max(0, answer.throttle_time_ms)",
        "0",
        "Violation: OneRequest",
        {"throttle": "0.2"},
    ),
    _bug(
        "no rest where nothing moves",
        Answers,
        "_rest",
        "now_ms + pause_ms",
        "now_ms",
        "Violation: NoStorm",
        {"stop_every_ms": "2000"},
    ),
    _bug(
        "no pause between two questions for metadata",
        MetadataQuestions,
        "ask",
        "now_ms + self._pause_ms()",
        "now_ms",
        "Violation: NoStorm",
        {"stop_every_ms": "2000", "brokers": "1"},
    ),
    _bug(
        "a check of the position never ends",
        PositionChanges,
        "_on_result",
        "partition.phase = Phase.READY",
        "pass",
        "Violation: Awaited",
        {"refuse": "0.2"},
    ),
    _bug(
        "another topic of the same name is read without a word",
        Topics,
        "_takes_over",
        "self._out.append(Notice(text, warning=True))",
        "del text",
        "Violation: Closed",
        {"has_group": "false", "administer_every_ms": "3000"},
    ),
    _bug(
        "an answer to a fetch that is not open is taken",
        Planner,
        "ended",
        "self._open.pop(number, None)",
        "next(iter(self._open.values()), None)",
        "Violation: Inert",
    ),
    _bug(
        "an answer is judged by its offset, not by the generation of its partition",
        Answers,
        "_take",
        "partition.generation != node.generations.get(key)",
        "False",
        "Violation: Inert",
        {"act_every_ms": "30", "administer_every_ms": "0", "max_wait_ms": "2000"},
    ),
    _bug(
        "what is known of aborted transactions outlives its answer",
        Answers,
        "_on_records",
        "aborted = told.aborted if self._settings.read_committed else ()",
        "aborted = vars(self)['all'] = vars(self).get('all', ()) + told.aborted",
        "Violation: Delivered",
        {"read_committed": "true", "transactional": "0.8"},
    ),
    _bug(
        "a session is asked for nothing when nothing is wanted",
        Planner,
        "plan",
        "if node.fetch is None and node.ring and",
        "if node.fetch is None and",
        "Violation: OneRequest",
        {"act_every_ms": "300"},
    ),
    _bug(
        "a stale answer is not counted",
        FetchCore,
        "_count_stale",
        "self._stale_answers += 1",
        "pass",
        "Violation: Inert",
    ),
    _bug(
        "what is noted of a request is not what is sent",
        FetchSession,
        "_ask",
        "known[want.key] = want",
        "known[want.key] = want._replace(max_bytes=1)",
        "Violation: InStep",
        {"session_slots": "1000"},
    ),
    _bug(
        "nobody checks a position when the records before it were read",
        FetchCore,
        "_on_buffer_read",
        "if partition.phase is Phase.CHECKING:",
        "if False:",
        "Violation: Awaited",
        {"reset_policy": "earliest", "retain_every_ms": "500"},
    ),
    _bug(
        "damaged bytes are fetched at a later offset",
        Partition,
        "renew",
        "self.fetch_offset, self.fetch_epoch = fetch_offset, fetch_epoch",
        "self.fetch_offset, self.fetch_epoch = fetch_offset + 1, fetch_epoch",
        "Violation: Adjoin",
        {"corrupt": "0.1"},
    ),
)


CHECKERS: Final = (
    *(OneRequest, Session, Sane, NoStorm, NoStarvation),
    *(Delivered, Closed, Moved),
    *(Adjoin, Awaited, Budget, InStep, Inert),
)


_LONG: Final = pytest.mark.everything("few worlds show it, and its checker has another bug")
_FEW_SHOW: Final = frozenset(
    {
        "a replica's word that the position is out of range is final",
        "nothing is reserved for what was asked for",
        "a check of the position never ends",
        "a cut below the position is not told",
        "no rest where nothing moves",
    }
)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, id=bug.name, marks=[_LONG] if bug.name in _FEW_SHOW else [])
        for bug in BUGS
    ],
)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, bug: Bug) -> None:
    plant(monkeypatch, *bug.plants)
    assert bug.said in "".join(found(FetchWorld, range(40), bug.said, bug.changes))


def test_each_checker_finds_a_planted_bug() -> None:
    """And so does the wait for everything to be read."""
    wanted = {f"Violation: {each.__name__}" for each in CHECKERS} | {Stuck.__name__}
    assert wanted == {bug.said for bug in BUGS}
    quick = {bug.said for bug in BUGS if bug.name not in _FEW_SHOW}
    assert quick == wanted, "each has one for every run"
    known = {*request_checks.__all__, *delivery_checks.__all__, *state_checks.__all__}
    who_checks = {"RequestChecks", "DeliveryChecks", "StateChecks"}
    assert {each.__name__ for each in CHECKERS} == known - who_checks
