"""What the producer's core asks of its driver, over the simulated network: each is sent once, each
ending is one event. The messages are made and read by what the producer uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kip848_client.core.member import LossReason
from kip848_client.core.produce import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    CoordinatorNotFound,
    DescribeTransaction,
    EndTransaction,
    Event,
    FindCoordinator,
    InitProducerId,
    ProduceLost,
    SendProduce,
    TransactionNotDescribed,
    TxnLost,
)
from kip848_client.core.produce import _wire as wire
from mock_coordinator.sim.client_connection import Answer
from mock_coordinator.sim.node_requests import NodeRequests, Wires

__all__ = ["Asked", "ProduceRequests"]

Asked = (
    InitProducerId
    | AddPartitions
    | AddOffsets
    | CommitOffsets
    | EndTransaction
    | DescribeTransaction
)


class ProduceRequests(NodeRequests):
    """Sends what the core asks for. ``feed`` takes the events, ``enter`` lets something happen as
    soon as the process runs."""

    def __init__(
        self,
        wires: Wires,
        feed: Callable[[Event], None],
        enter: Callable[[Callable[[], None]], None],
    ) -> None:
        super().__init__(wires, feed, enter)
        self._feed = feed
        self._producing = self.own_connections()

    def produce(self, command: SendProduce) -> None:
        """Produce, on a connection that keeps the order."""

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                sent = answer is not LossReason.NOT_SENT
                self._feed(ProduceLost(command.produce, answer.value, maybe_sent=sent))
            else:
                self._feed(wire.produce_answer(command, answer))

        self.connection(self._producing, command.node).call(
            wire.produce_request(command),
            self.version("Produce", wire.produce_versions(command)),
            command.timeout_ms,
            lambda answer: self.enter(lambda: done(answer)),
            repeats=True,
        )

    def ask(self, command: Asked) -> None:
        """What goes to coordinators, or to any node."""
        request, version, read = self._translated(command)

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                sent = answer is not LossReason.NOT_SENT
                lost: Event = TxnLost(command.number, answer.value, maybe_sent=sent)
                if isinstance(command, DescribeTransaction):
                    lost = TransactionNotDescribed(command.number, for_good=False)
                self._feed(lost)
            else:
                self._feed(read(answer))

        node = self.some_node() if command.node is None else command.node
        self.connection(self.asking, node).call(
            request,
            version,
            self.wires.request_timeout_ms,
            lambda answer: self.enter(lambda: done(answer)),
            repeats=True,
        )

    def _translated(self, command: Asked) -> tuple[Any, int, Callable[[Any], Event]]:
        """The request, its version, and what reads the answer."""
        match command:
            case InitProducerId():
                limits = wire.init_producer_id_versions(command)
                return (
                    wire.init_producer_id_request(command),
                    self.version("InitProducerId", limits),
                    lambda answer: wire.producer_id_answer(command, answer),
                )
            case AddPartitions():
                return (
                    wire.add_partitions_request(command),
                    self.version("AddPartitionsToTxn", wire.ADD_PARTITIONS_VERSIONS),
                    lambda answer: wire.partitions_added_answer(command, answer),
                )
            case AddOffsets():
                return (
                    wire.add_offsets_request(command),
                    self.version("AddOffsetsToTxn", wire.ADD_OFFSETS_VERSIONS),
                    lambda answer: wire.offsets_added_answer(command, answer),
                )
            case CommitOffsets():
                limits = wire.commit_offsets_versions(command)
                return (
                    wire.commit_offsets_request(command),
                    self.version("TxnOffsetCommit", limits),
                    lambda answer: wire.offsets_answer(command, answer),
                )
            case EndTransaction():
                return (
                    wire.end_transaction_request(command),
                    self.version("EndTxn", wire.end_transaction_versions(command)),
                    lambda answer: wire.end_transaction_answer(command, answer),
                )
            case DescribeTransaction():
                return (
                    wire.describe_transaction_request(command),
                    self.version("DescribeTransactions", wire.DESCRIBE_VERSIONS),
                    lambda answer: wire.transaction_described_answer(command, answer),
                )

    def find_coordinator(self, command: FindCoordinator) -> None:
        """Of any broker."""

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                self._feed(CoordinatorNotFound(command.number, 0, answer.value))
            else:
                found, _ = wire.coordinator_answer(command, answer)
                self._feed(found)

        self.connection(self.asking, self.some_node()).call(
            wire.find_coordinator_request(command),
            self.version("FindCoordinator", wire.FIND_COORDINATOR_VERSIONS),
            self.wires.request_timeout_ms,
            lambda answer: self.enter(lambda: done(answer)),
            repeats=True,
        )
