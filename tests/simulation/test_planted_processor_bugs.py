"""Each planted bug of processing exactly once is found: a checker that never fails proves nothing.

A bug is put into the processor's core, or into the brokers that it leans on, for one test, as
another text in the place of a few of its words, and worlds are played until one fails.
"""

from __future__ import annotations

from typing import Final

import pytest

from kip848_client.core.produce._transaction import Transactions
from kip848_client.core.types import TopicId
from kip848_client.processor.core._core import ProcessorCore
from kip848_client.processor.core._progress import Progress
from mock_coordinator.core.groups.records.state_records import (
    CurrentAssignment,
    CurrentMemberAssignment,
    OffsetAndMetadata,
    OffsetCommit,
)
from mock_coordinator.sim.exactly_once import checks
from mock_coordinator.sim.exactly_once.checks import (
    Checks,
    EachOnce,
    EndedFirst,
    NotInDoubt,
    OffsetsToo,
    OutputsToo,
    Owned,
    StaleOwner,
)
from mock_coordinator.sim.exactly_once.consuming import Consuming
from mock_coordinator.sim.exactly_once.world import ProcessWorld
from mock_coordinator.sim.invariants import Violation
from mock_coordinator.sim.log_truth import LogTruth
from mock_coordinator.sim.producing.facts import Facts, Transaction
from mock_coordinator.sim.producing.log_checks import LogChecks
from mock_coordinator.sim.recorded_groups import RecordedGroups
from tests.simulation.planted import Bug, found, heads
from tests.support.planting import Plant, plant

_CALM: Final = {
    "lose_request": "0",
    "lose_response": "0",
    "duplicate": "0",
    "refuse_late": "0",
    "stop_every_ms": "0",
    "clog_every_ms": "0",
    "partition_every_ms": "0",
    "delay_ms_max": "2",
}
_FEW: Final = {"produce_every_ms": "300", "max_records": "10", "batch": "false"}
_MOVING: Final = {
    **_FEW,
    "act_every_ms": "1000",
    "processors": "3",
    "partitions_max": "4",
    "work_ms_max": "100",
    "commit_interval_ms": "1000",
    "max_records": "50",
    "produce_every_ms": "100",
    "listener_timeout_ms": "120000",
}
_AGAIN: Final = {**_FEW, "refuse": "0.1", "delivery_timeout_ms": "1500", "raises": "0"}
_LATE: Final = {**_MOVING, "max_poll_interval_ms": "3000", "transaction_timeout_ms": "20000"}
_RIVALS: Final = {
    # dynamic members that sleep less than their session: they wake as members, beside a producer
    # that has their transactional id
    **_MOVING,
    "level": "2",
    "static": "0",
    "session_timeout_ms": "12000",
    "sleep_ms_max": "3000",
    "raises": "0.3",
}
_SLEEPY: Final = {
    **_MOVING,
    "session_timeout_ms": "3000",
    "sleep_ms_max": "9000",
    "transaction_timeout_ms": "20000",
}

BUGS: Final = (
    Bug(
        "the offsets are not sent with the transaction",
        "Violation: OffsetsToo",
        (
            Plant(
                ProcessorCore,
                "_move_open",
                "self._state = State.SENDING_OFFSETS\n"
                "                offsets = self._progress.offsets\n"
                "                self._out.append(do.SendOffsets(self._ask(), offsets))",
                "self._state = State.COMMITTING; self._out.append(do.Commit(self._ask()))",
            ),
        ),
        {**_FEW, **_CALM},
    ),
    Bug(
        "the offset is that of the last record, not of the next one",
        "Violation: OffsetsToo",
        (Plant(Progress, "processed", "= until", "= until - 1"),),
        {**_FEW, **_CALM},
    ),
    Bug(
        "the offsets are those of everything in hand",
        "Violation: OutputsToo",
        (
            Plant(
                Progress,
                "polled",
                "self._hand.append(portion)",
                "self._hand.append(portion); self._done[portion.partition] = portion.until",
            ),
            Plant(
                Progress, "processed", "self._done[tp] = until", "self._done.setdefault(tp, until)"
            ),
        ),
        {**_FEW, **_CALM},
    ),
    Bug(
        "partitions are given up while the transaction with them is open",
        "Violation: EndedFirst",
        (
            Plant(
                ProcessorCore,
                "_move",
                "state in (State.BEGINNING, State.IDLE, State.ENDED)",
                "True",
            ),
        ),
        {**_MOVING, **_CALM},
    ),
    Bug(
        "partitions are given up as soon as the commit is asked for",
        "Violation: EndedFirst",
        (
            Plant(
                ProcessorCore,
                "_move",
                "(State.BEGINNING, State.IDLE, State.ENDED)",
                "(State.BEGINNING, State.IDLE, State.ENDED, State.COMMITTING)",
            ),
        ),
        {**_MOVING, "delay_ms_max": "200"},
    ),
    Bug(
        "nobody hears of a loss",
        "Violation: StaleOwner",
        (Plant(ProcessorCore, "_take", "self._on_lost(frozenset(event.partitions))", "pass"),),
        {**_LATE, "work_ms_max": "1000", "commit_interval_ms": "6000"},
    ),
    Bug(
        "nothing is read again after an abort",
        "Violation: OutputsToo",
        (
            Plant(
                ProcessorCore,
                "_aborted",
                "self._give_back(self._progress.rewind())",
                "self._progress.rewind()",
            ),
        ),
        _AGAIN,
    ),
    Bug(
        "after an abort it is read on from what was processed",
        "Violation: OutputsToo",
        (
            Plant(
                Progress,
                "rewind",
                "first, self._first = self._first, {}",
                "first = dict(self._done)",
            ),
        ),
        _AGAIN,
    ),
    Bug(
        "after an abort it is read again from before what is committed",
        "Violation: EachOnce",
        (
            Plant(
                Progress,
                "rewind",
                "return first",
                "return {tp: max(0, at - 1) for tp, at in first.items()}",
            ),
        ),
        _AGAIN,
    ),
    Bug(
        "what an aborted transaction had in hand is kept, and read again as well",
        "AssertionError: nothing is in hand",
        (Plant(Progress, "rewind", "self._hand.clear()", "pass"),),
        {**_AGAIN, "max_records": "50"},
    ),
    Bug(
        "a commit in doubt is taken for an abort",
        "Violation: NotInDoubt",
        (
            Plant(
                ProcessorCore,
                "_committed",
                'self._ask_again(f"{_said(failed)} (it is asked again)")',
                "self._give_back(self._progress.rewind()); self._over()",
            ),
        ),
        {**_FEW, "max_block_ms": "300", "lose_response": "0.05", "delay_ms_max": "200"},
    ),
    Bug(
        "what the function does for a transaction that is over counts for the next one",
        "AssertionError: nothing is in hand",
        (
            Plant(ProcessorCore, "_on_worked", "if work.is_discarded:", "if False:"),
            Plant(
                ProcessorCore,
                "_move_idle",
                "is_busy = self._reading is not None or self._work is not None",
                "is_busy = self._reading is not None",
            ),
        ),
        {**_SLEEPY, "work_ms_max": "2000"},
    ),
    Bug(
        "records that were cut off are taken for processed",
        "Violation: OutputsToo",
        (Plant(ProcessorCore, "_is_whole", "if until >= end:", "if True:"),),
        {**_FEW, "work_ms_max": "100", "commit_interval_ms": "20"},
    ),
    Bug(
        "a record that cannot be processed is left out",
        "Violation: OutputsToo",
        (
            Plant(
                ProcessorCore,
                "_function_failed",
                "rest = Portion(tp, event.first, end, in_all - event.records)",
                "self._progress.processed(tp, event.until); "
                "rest = Portion(tp, event.until, end, in_all - event.records - 1)\n"
                "        self._progress.put_back(rest)\n"
                "        return",
            ),
        ),
        {**_FEW, **_CALM, "dead_letters": "true", "poison": "0.1", "raises": "0"},
    ),
    Bug(
        "outputs are sent before there is a transaction",
        "AssertionError: a transaction was begun",
        (
            Plant(
                ProcessorCore,
                "_move_idle",
                "self._state = State.BEGINNING\n"
                "            self._out.append(do.Begin(self._ask()))",
                "self._state = State.OPEN",
            ),
        ),
        {**_FEW, **_CALM, "safety_ms": "2000"},
    ),
    Bug(
        "a producer that was fenced goes on as if it had aborted",
        "Violation: EndedFirst",
        (Plant(ProcessorCore, "_aborted", "self._end(failed)", "self._over()"),),
        _RIVALS,
    ),
    Bug(
        "what is in hand of partitions that were given up is processed, and offered",
        "Violation: Owned",
        (
            Plant(
                ProcessorCore,
                "_on_revoked",
                "self._give_back(self._progress.drop(partitions))",
                "pass",
            ),
            Plant(ProcessorCore, "_release_all", "self._forget(each.partitions)", "pass"),
            # the broker asks who the member is, not what it owns
            Plant(Consuming, "offer", "if epoch is None or not self.tracker.owns(tp)", "if False"),
        ),
        {**_MOVING, "work_ms_max": "400"},
    ),
    Bug(
        "refused offsets do not keep the commit from succeeding",
        "Violation: OffsetsToo",
        (
            Plant(
                Transactions,
                "refused",
                "and not job.is_dropped:\n            self._on_harm(reaction, error)",
                "and not job.is_dropped:",
            ),
            Plant(
                ProcessorCore,
                "_on_answer",
                "self._send_failed(failed)\n                else:\n"
                "                    self._state = State.COMMITTING",
                "pass\n                self._state = State.COMMITTING",
            ),
        ),
        _SLEEPY,
    ),
)

CHECKERS: Final = (EachOnce, OffsetsToo, OutputsToo, Owned, StaleOwner, EndedFirst, NotInDoubt)


_SHORT: Final = {"safety_ms": "8000"}
_WORLDS: Final = 60
"""So many are played at most. The rarest bug shows in one of 13."""


_QUICK: Final = 6
"""So many are planted in every run, the first of those that are found soon."""
_SLOW: Final = frozenset({"Violation: StaleOwner", "Violation: EndedFirst"})
_MORE: Final = pytest.mark.everything("more planted bugs")
_SOON: Final = [bug for bug in BUGS if bug.said not in _SLOW][:_QUICK]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, id=bug.name, marks=() if bug in _SOON else _MORE) for bug in BUGS],
)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, bug: Bug) -> None:
    plant(monkeypatch, *bug.plants)
    said = found(ProcessWorld, range(_WORLDS), bug.said, _SHORT | bug.changes, failures=None)
    assert any(bug.said in each for each in said), said


def test_each_checker_finds_a_planted_bug() -> None:
    wanted = {f"Violation: {each.__name__}" for each in CHECKERS}
    assert wanted <= {bug.said for bug in BUGS}
    assert {each.__name__ for each in CHECKERS} == {*checks.__all__} - {"Checks", "Work"}


@pytest.mark.timeout(400)
@_MORE
def test_only_the_owner_check_finds_some_of_its_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the new owner has not begun, nothing else is wrong yet."""
    (bug,) = (each for each in BUGS if each.said == "Violation: Owned")
    plant(monkeypatch, *bug.plants)
    for seed in range(10, 40):
        changes = _SHORT | bug.changes
        if any(bug.said in head for head in heads(ProcessWorld, [seed], changes)):
            with monkeypatch.context() as blind:
                plant(blind, Plant(Checks, "_offered", "member is None or", "False and"))
                if not list(heads(ProcessWorld, [seed], changes)):
                    return
    raise AssertionError("whatever it finds, others find")


def test_offsets_of_who_has_not_the_partition_are_noticed() -> None:
    topic_id = TopicId(bytes(15) + b"1")
    checks = Checks(LogChecks(Facts()), LogTruth(), dead_letters=False, mixed=False)
    checks.ids["in"], checks.members["x#1"] = topic_id, "m"
    checks.works["its"] = Transaction("x#1", "x", 1)
    value = OffsetAndMetadata(offset=3, metadata="its", commit_timestamp_ms=0)
    offered = [OffsetCommit("g", "in", 0, value, producer=(5, 0))]
    groups = RecordedGroups(1)
    groups.note(
        CurrentMemberAssignment(
            "g", "m", CurrentAssignment(member_epoch=1, assigned={topic_id: {0: 1}})
        )
    )
    checks.written(groups, offered)
    groups.note(
        CurrentMemberAssignment(
            "g", "m", CurrentAssignment(member_epoch=2, assigned={topic_id: {1: 2}})
        )
    )
    with pytest.raises(Violation, match="which is not held for it"):
        checks.written(groups, offered)
