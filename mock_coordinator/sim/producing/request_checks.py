"""Checkers of what a producer's core asks for: how often, in which order, as whom."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from kip848_client.core.cluster import LearnLeaders
from kip848_client.core.produce import (
    NO_PRODUCER,
    AddOffsets,
    AddPartitions,
    Command,
    CommitOffsets,
    DescribeTransaction,
    EndTransaction,
    Event,
    FindCoordinator,
    InitProducerId,
    ProduceAnswered,
    ProduceLost,
    ProducerId,
    ProducerIdAnswered,
    ProduceSettings,
    SendProduce,
    TransactionVersion,
    TxnAnswered,
    TxnLost,
)
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.logs.record_batch import read_header
from mock_coordinator.sim.invariants import Violation

__all__ = [
    "Announced",
    "InFlight",
    "NoStorm",
    "OneAtATime",
    "OneVersion",
    "RequestChecks",
    "TheSame",
]

_TxnCommand = InitProducerId | AddPartitions | AddOffsets | CommitOffsets | EndTransaction
_WINDOW_MS: Final = 1_000
_SAME_MAX: Final = 16
"""Retries rest for 80 ms at least, and a hint of another leader is followed at once three times."""
_ADDS_MAX: Final = 60
"""What must wait for the markers of the transaction before is asked every 20 ms."""
_DESCRIBED_MAX: Final = 24
"""Every millisecond at first, then less and less often, for 100 ms after each end."""
_IN_DOUBT: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
)
"""What a coordinator answers that may have performed the request."""


class NoStorm:
    """The same is not asked for again and again."""


class InFlight:
    """A broker has no more requests unanswered, and no larger ones, than the settings allow; of a
    partition it has several batches only one after the other, and no other broker has one then."""


class OneAtATime:
    """One request of a transaction is open at a time."""


class OneVersion:
    """Under one epoch requests are of one version of transactions."""


class Announced:
    """With transactions V1 nothing is written to a partition, and no offsets are committed, before
    the coordinator has heard of it in this transaction."""


class TheSame:
    """An end that was asked for is asked for again as what it was: a commit stays a commit; and a
    producer that has an id does not ask for another one without its id."""


class RequestChecks:
    """Of one core."""

    def __init__(self, settings: ProduceSettings) -> None:
        self._settings = settings
        self._recent: dict[object, deque[int]] = {}
        self._of_transactions: dict[object, deque[int]] = {}
        """The same of what the next transaction may ask for again."""
        self._flying: dict[int, SendProduce] = {}
        self._open: _TxnCommand | None = None
        self._versions: dict[ProducerId, TransactionVersion] = {}
        self._added: set[TopicPartition | str] = set()
        self._ends: dict[ProducerId, bool] = {}
        """What may have happened without our knowing."""
        self._has_id = False
        self.requests = 0

    def took(self, event: Event) -> None:
        """Before what the event leads to."""
        match event:
            case ProduceAnswered() | ProduceLost():
                self._flying.pop(event.produce, None)
            case ProducerIdAnswered() | TxnAnswered() | TxnLost():
                self._answered(event)
            case _:
                pass

    def _answered(self, event: ProducerIdAnswered | TxnAnswered | TxnLost) -> None:
        command = self._open
        if command is None or command.number != event.number:
            return
        self._open = None
        if isinstance(command, EndTransaction):
            self._end_answered(command, event)
        if isinstance(event, ProducerIdAnswered):
            self._has_id = self._has_id or not event.error_code
        if not isinstance(event, TxnAnswered) or event.error_code:
            return
        match command:
            case AddPartitions():
                codes = event.partitions or {}
                self._added |= {tp for tp in command.partitions if not codes.get(tp, 0)}
            case AddOffsets():
                self._added.add(command.group_id)
            case EndTransaction():
                self._added.clear()
                self._of_transactions.clear()
            case _:
                pass

    def _end_answered(
        self, command: EndTransaction, event: ProducerIdAnswered | TxnAnswered | TxnLost
    ) -> None:
        if (isinstance(event, TxnLost) and event.maybe_sent) or (
            isinstance(event, TxnAnswered) and event.error_code in _IN_DOUBT
        ):
            self._ends[command.producer] = command.commit
        elif isinstance(event, TxnAnswered) and not event.error_code:
            self._ends.pop(command.producer, None)

    def asks(self, now_ms: int, commands: Sequence[Command]) -> None:
        """What it leads to."""
        for command in commands:
            match command:
                case SendProduce():
                    self._produces(now_ms, command)
                case FindCoordinator():
                    self._ask(now_ms, (FindCoordinator, command.kind, command.key))
                case LearnLeaders():
                    self._ask(now_ms, (LearnLeaders, command.topic_ids, command.topics))
                case (
                    InitProducerId()
                    | AddPartitions()
                    | AddOffsets()
                    | CommitOffsets()
                    | EndTransaction()
                ):
                    self._asks(now_ms, command)
                case DescribeTransaction():
                    self._ask(now_ms, DescribeTransaction, _DESCRIBED_MAX, self._of_transactions)
                case _:
                    pass

    def _ask(
        self,
        now_ms: int,
        what: object,
        limit: int = _SAME_MAX,
        of: dict[object, deque[int]] | None = None,
    ) -> None:
        self.requests += 1
        recent = (self._recent if of is None else of).setdefault(what, deque())
        recent.append(now_ms)
        while recent[0] <= now_ms - _WINDOW_MS:
            recent.popleft()
        if len(recent) > limit:
            raise Violation(NoStorm, f"{len(recent)} times within a second: {what}")

    # -- records -----------------------------------------------------------------------------

    def _produces(self, now_ms: int, command: SendProduce) -> None:
        self.requests += 1
        size_bytes = sum(len(each.data) for each in command.batches)
        settings = self._settings
        if len(command.batches) > 1 and size_bytes > settings.request_bytes:
            raise Violation(InFlight, f"a request of {size_bytes} bytes")
        self._flying[command.produce] = command
        mine = [each for each in self._flying.values() if each.node == command.node]
        if len(mine) > settings.in_flight_max:
            raise Violation(InFlight, f"{len(mine)} requests to node {command.node}")
        for batch in command.batches:
            header = read_header(batch.data)
            who = ProducerId(header.producer_id, header.producer_epoch)
            first = header.base_sequence
            self._ask(now_ms, ("batch", batch.tp, who, first))
            self._check_line(command, batch.tp)
            if command.transactional_id is not None:
                self._check_version(who, command.version)
                is_v1 = command.version is TransactionVersion.V1
                if is_v1 and batch.tp not in self._added:
                    raise Violation(Announced, f"{batch.tp} is not in the transaction")

    def _check_line(self, command: SendProduce, tp: TopicPartition) -> None:
        where = {
            each.node
            for each in self._flying.values()
            if any(batch.tp == tp for batch in each.batches)
        }
        if where != {command.node}:
            raise Violation(InFlight, f"batches of {tp} are on their way to nodes {where}")

    # -- transactions ------------------------------------------------------------------------

    def _asks(self, now_ms: int, command: _TxnCommand) -> None:
        if self._open is not None:
            raise Violation(OneAtATime, f"{command} is asked before {self._open} is answered")
        self._open = command
        limit = _SAME_MAX
        match command:
            case InitProducerId():
                if command.transactional_id is not None:
                    self._check_name(command)
                self._added.clear()
                self._ends.clear()
                what: object = (InitProducerId, command.producer)
            case AddPartitions():
                what, limit = (AddPartitions, command.partitions), _ADDS_MAX
                self._check_version(command.producer, TransactionVersion.V1)
            case AddOffsets():
                what, limit = (AddOffsets, command.group_id), _ADDS_MAX
                self._check_version(command.producer, TransactionVersion.V1)
            case CommitOffsets():
                what = (CommitOffsets, tuple(command.offsets.items()))
                self._check_version(command.producer, command.version)
                is_v1 = command.version is TransactionVersion.V1
                if is_v1 and command.group.group_id not in self._added:
                    raise Violation(Announced, f"{command.group} is not in the transaction")
            case EndTransaction():
                what = (EndTransaction, command.producer)
                self._check_version(command.producer, command.version)
                if self._ends.get(command.producer, command.commit) != command.commit:
                    raise Violation(TheSame, f"{command} was asked for as the opposite")
        self._ask(now_ms, what, limit, self._of_transactions)

    def _check_name(self, command: InitProducerId) -> None:
        if command.producer == NO_PRODUCER and self._has_id:
            raise Violation(TheSame, f"{command} takes the id from its owner")

    def _check_version(self, who: ProducerId, version: TransactionVersion) -> None:
        if self._versions.setdefault(who, version) is not version:
            raise Violation(OneVersion, f"{who} speaks both")
