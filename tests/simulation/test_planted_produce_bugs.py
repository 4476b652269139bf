"""Each planted bug is found: a checker that never fails proves nothing.

A bug is put into the producer's core (one: into the mock) for one test, as another text in the
place of a few of its words, and worlds are played until one fails.
"""

from __future__ import annotations

from typing import Final

import pytest

from kip848_client.core.produce._accumulator import Accumulator
from kip848_client.core.produce._answers import Answers
from kip848_client.core.produce._core import ProducerCore
from kip848_client.core.produce._sender import Sender
from kip848_client.core.produce._sequences import Sequences
from kip848_client.core.produce._transaction import Transactions
from kip848_client.core.produce._transaction_requests import Requests
from mock_coordinator.core.transaction_coordinator import ending, initializing
from mock_coordinator.sim.producing import log_checks, request_checks, state_checks
from mock_coordinator.sim.producing.log_checks import (
    Aborted,
    Acknowledged,
    Committed,
    NoZombie,
    Once,
    Ordered,
    Unmixed,
    Unwritten,
    Wanted,
    Whole,
)
from mock_coordinator.sim.producing.request_checks import (
    Announced,
    InFlight,
    NoStorm,
    OneAtATime,
    OneVersion,
    TheSame,
)
from mock_coordinator.sim.producing.state_checks import Awaited, Budget, Inert, Released, ToldOnce
from mock_coordinator.sim.producing.world import ProduceWorld
from mock_coordinator.sim.verdict import Stuck
from tests.simulation.planted import Bug, found
from tests.support.planting import Plant, plant

_PLAIN: Final = {"plain": "2", "transactional": "0"}
_V1: Final = {"plain": "0", "transactional": "2", "level": "1"}
_V2: Final = {"plain": "0", "transactional": "2", "level": "2"}
_CALM: Final = {
    "lose_request": "0",
    "lose_response": "0",
    "duplicate": "0",
    "refuse_late": "0",
    "stop_every_ms": "0",
    "clog_every_ms": "0",
    "partition_every_ms": "0",
}
_TWICE: Final = {"offsets": "1", "twice": "0.5", "duplicate": "0", "stranger": "0"}
_LOSSY: Final = {"lose_response": "0.1", "lose_request": "0.05"}

BUGS: Final = (
    Bug(
        "sequence numbers are not advanced",
        "Violation: Acknowledged",
        (Plant(Sequences, "prepare", "self.next_number + head.records", "self.next_number"),),
        {**_PLAIN, "records_max": "1"},
    ),
    Bug(
        "a batch whose answer was lost gets new numbers",
        "Violation: Once",
        (
            Plant(
                Answers,
                "_again",
                "partition.wait_again(batch)",
                "batch.forget_sequence(); partition.wait_again(batch)",
            ),
        ),
        {**_PLAIN, **_LOSSY},
    ),
    Bug(
        "batches have no sequence numbers",
        "Violation: Ordered",
        (
            Plant(
                Sender, "_request", "each.producer, each.first_sequence", "ProducerId(-1, -1), -1"
            ),
        ),
        {
            **_PLAIN,
            **_CALM,
            "refuse": "0.3",
            "linger_ms": "0",
            "in_flight_max": "5",
            "poll_pause_ms": "200",
        },
    ),
    Bug(
        "what the broker has already counts as refused",
        "Violation: Unwritten",
        (Plant(Answers, "_refused", "if to_do is Reaction.DONE:", "if False:"),),
        {**_PLAIN, "refuse_late": "0.2"},
    ),
    Bug(
        "a delivery that took too long is told to be not written",
        "Violation: Unwritten",
        (
            Plant(
                Answers,
                "expire",
                "doubt = batch.doubt or batch in partition.flying",
                "doubt = False",
            ),
        ),
        {**_PLAIN, **_LOSSY, "delivery_timeout_ms": "1500"},
    ),
    Bug(
        "what an answer does not refuse counts as written, and so does what it refuses",
        "Violation: Acknowledged",
        (Plant(Answers, "answered", "elif said.error_code:", "elif False:"),),
        {**_PLAIN, "refuse": "0.2"},
    ),
    Bug(
        "the epoch that EndTxn v5 answers is not adopted",
        "Stuck",
        (
            Plant(
                Transactions,
                "ended",
                "self._adopt(producer)",
                "self._batches.begin_anew(producer)",
            ),
        ),
        _V2,
    ),
    Bug(
        "an abort is told, and nobody is asked for it",
        "Violation: Unmixed",
        (
            Plant(
                Transactions, "_go_on_aborting", "elif not self._txn.is_over and", "elif False and"
            ),
        ),
        {**_V2, **_CALM, "abort": "0.5", "topics": "1", "partitions_max": "1", "crash": "0"},
    ),
    Bug(
        "what an abort makes void is sent with the next transaction",
        "Violation: Wanted",
        (
            Plant(
                ProducerCore,
                "drop_unsent",
                "not in flying:",
                "not in flying and batch.has_sequence:",
            ),
        ),
        {**_V2, "abort": "0.5", "linger_ms": "100", "topics": "1", "records_max": "20"},
    ),
    Bug(
        "a refused batch does not keep the commit from succeeding",
        "Violation: Aborted",
        (
            Plant(
                Transactions,
                "batch_failed",
                "if producer in (None, self.who):",
                "if False:",
            ),
        ),
        {**_V2, "bad": "0.05", "message_bytes": "1000"},
    ),
    Bug(
        "what the driver turns down does not keep the commit from succeeding",
        "Violation: Aborted",
        (Plant(Transactions, "take", "self._on_harm(Reaction.ABORT, event.error)", "pass"),),
        {**_V2, "turned_down": "0.3"},
    ),
    Bug(
        "refused offsets do not keep the commit from succeeding",
        "Violation: Aborted",
        (
            Plant(
                Transactions,
                "refused",
                "and not job.is_dropped:\n            self._on_harm(reaction, error)",
                "and not job.is_dropped:",
            ),
        ),
        {**_V2, "offsets": "1.0", "stranger": "0.3"},
    ),
    Bug(
        "a commit that was lost is asked for again as an abort",
        "Violation: TheSame",
        (Plant(Requests, "_again", "job.trouble = why", "job.trouble = why; job.commit = False"),),
        {**_V2, **_LOSSY},
    ),
    Bug(
        "a commit that was lost is told to be aborted",
        "Violation: Aborted",
        (
            Plant(
                Transactions,
                "_give_up_commit",
                "if not self._requests.is_end_in_doubt:",
                "if True:",
            ),
        ),
        {**_V2, "delay_ms_max": "1000"},
    ),
    Bug(
        "a producer that was fenced takes its id back",
        "Violation: TheSame",
        (
            Plant(
                Transactions,
                "_do_what_is_due",
                "self._is_quiet():\n                    "
                "self._requests.want_producer_id(self._txn.asks_as or self.who)",
                "self._is_quiet():\n                    "
                "self._requests.want_producer_id(NO_PRODUCER)",
            ),
        ),
        {**_V2, "rival": "0.05"},
    ),
    Bug(
        "with V1 a partition is written to before it is added",
        "Violation: Announced",
        (
            Plant(
                Transactions,
                "may_send",
                "self._requests.is_added(tp)",
                "True",
            ),
        ),
        _V1,
    ),
    Bug(
        "both versions of transactions are spoken in one epoch",
        "Violation: OneVersion",
        (
            Plant(
                Transactions,
                "_begin_next",
                "self._epoch_version not in (None, version) or",
                "",
            ),
        ),
        {**_V1, "level": "3"},
    ),
    Bug(
        "a commit is asked for before the last batch is answered",
        "Violation: Whole",
        (Plant(Transactions, "_go_on_committing", "if not self._batches.is_empty:", "if False:"),),
        {**_V2, "linger_ms": "100", "refuse": "0.1"},
    ),
    Bug(
        "an abort is sent as a commit",
        "Violation: Wanted",
        (
            Plant(
                Transactions,
                "_go_on_aborting",
                "self._requests.want_end(commit=False)",
                "self._requests.want_end(commit=True)",
            ),
        ),
        {**_V2, "abort": "0.5"},
    ),
    Bug(
        "a commit is told, and nobody is asked for it",
        "Violation: Committed",
        (
            Plant(
                Transactions,
                "_go_on_committing",
                "if self._txn.has_sent or self._requests.may_hold:",
                "if False:",
            ),
        ),
        {**_V2, "abort": "0.5"},
    ),
    Bug(
        "two requests of a transaction are open at once",
        "Violation: OneAtATime",
        (Plant(Requests, "drop", "job = self._open", "job, self._open = self._open, None"),),
        {**_V1, "offsets": "1.0", "bad": "0.05", "message_bytes": "1000"},
    ),
    Bug(
        "a broker gets more requests than the settings allow",
        "Violation: InFlight",
        (
            Plant(
                Sender,
                "_is_able",
                "node.in_flight < self._settings.in_flight_max",
                "True",
            ),
        ),
        {**_PLAIN, "in_flight_max": "1", "linger_ms": "0", "delay_ms_max": "200"},
    ),
    Bug(
        "no rest before another try",
        "Violation: NoStorm",
        (Plant(Answers, "_again", "now_ms + self._pause_ms(partition.failures)", "now_ms"),),
        {**_PLAIN, "refuse": "0.95", "delay_ms_max": "2", "brokers": "1"},
    ),
    Bug(
        "a record is taken though the budget is used up",
        "Violation: Budget",
        (
            Plant(
                Accumulator,
                "begin",
                "self.held_bytes + held_bytes > self._settings.buffer_bytes",
                "False",
            ),
        ),
        {**_PLAIN, "buffer_bytes": "300", "batch_bytes": "150", "message_bytes": "200"},
    ),
    Bug(
        "the bytes of a batch are kept when it is over",
        "Violation: Released",
        (Plant(Accumulator, "_is_over", "self.held_bytes -= batch.held_bytes", "pass"),),
        {**_PLAIN, "buffer_bytes": "400000"},
    ),
    Bug(
        "the end of a batch is told twice",
        "Violation: ToldOnce",
        (
            Plant(
                Answers,
                "_end_well",
                "self._emit(BatchDone(batch.number, place))",
                "self._emit(BatchDone(batch.number, place)); "
                "self._emit(BatchDone(batch.number, place))",
            ),
        ),
        _PLAIN,
    ),
    Bug(
        "an abort may take longer than was allowed",
        "Violation: Awaited",
        (
            Plant(
                Transactions,
                "_abort",
                "self._calls.aborts.add(now_ms, event)",
                "self._calls.aborts.add("
                "now_ms, type(event)(event.ticket, event.deadline_ms + 5_000))",
            ),
        ),
        {**_V2, **_LOSSY, "abort": "0.5", "stop_every_ms": "3000", "brokers": "1"},
    ),
    Bug(
        "offsets that are asked for again come after newer ones",
        "Violation: Whole",
        (Plant(Requests, "_is_sendable", "return next(older) is job", "return True"),),
        {**_V2, **_TWICE, "refuse": "0.2"},
    ),
    Bug(
        "offsets follow others that were lost on their way and come after them",
        "Violation: Whole",
        (Plant(Requests, "_may_be_undone", "not self._lost_offsets", "True"),),
        {**_V2, **_TWICE, "clog_every_ms": "300", "transaction_timeout_ms": "20000"},
    ),
    Bug(
        "an answer to a request that is not open is taken",
        "Violation: Inert",
        (
            Plant(
                Requests,
                "answered",
                "if job is None or event.number != self._number:",
                "if job is None:",
            ),
        ),
        _V2,
    ),
    Bug(
        "the coordinator gives the id to another one, and lets the first one end its transaction",
        "Violation: NoZombie",
        (
            Plant(initializing, "decide_init", "value.state is TransactionState.ONGOING", "False"),
            Plant(initializing, "_next", "state=TransactionState.EMPTY", "state=value.state"),
            Plant(initializing, "_next", "partitions=()", "partitions=value.partitions"),
            Plant(ending, "_end_v2", "if not valid:", "if False:"),
        ),
        {**_V2, "rival": "0.05"},
    ),
)


CHECKERS: Final = (
    *(Once, Ordered, Acknowledged, Unwritten),
    *(Committed, Aborted, Wanted, Whole, Unmixed, NoZombie),
    *(NoStorm, InFlight, OneAtATime, OneVersion, Announced, TheSame),
    *(Budget, Released, ToldOnce, Awaited, Inert),
)


_SHORT: Final = {"safety_ms": "8000"}
_WORLDS: Final = 400
"""So many are played at most. The rarest bug, a request that comes late and last, shows in one of
100; a world takes a tenth of a second."""


_QUICK: Final = 12
"""So many are planted in every run, the first of those that are found soon."""
_SLOW: Final = frozenset({"Stuck", "Violation: NoZombie"})
_MORE: Final = pytest.mark.everything("more planted bugs")
_SOON: Final = [bug for bug in BUGS if bug.said not in _SLOW][:_QUICK]


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, id=bug.name, marks=() if bug in _SOON else _MORE) for bug in BUGS],
)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, bug: Bug) -> None:
    plant(monkeypatch, *bug.plants)
    said = found(ProduceWorld, range(_WORLDS), bug.said, _SHORT | bug.changes, failures=None)
    assert any(bug.said in each for each in said), said


def test_each_checker_finds_a_planted_bug() -> None:
    """And so does the wait for everybody to be done."""
    wanted = {f"Violation: {each.__name__}" for each in CHECKERS} | {Stuck.__name__}
    assert wanted == {bug.said for bug in BUGS}
    known = {*request_checks.__all__, *log_checks.__all__, *state_checks.__all__}
    who_checks = {"RequestChecks", "LogChecks", "StateChecks"}
    assert {each.__name__ for each in CHECKERS} == known - who_checks
