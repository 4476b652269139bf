"""Sends the core's requests over connections, one each, and returns the answers as events
(``kip848_client.core.produce._wire``).

Broker and network errors never raise here; they become events as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from kip848_client.core.ports import NotSent, Transport
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
    ProduceAnswered,
    ProduceLost,
    SendProduce,
    TransactionNotDescribed,
    TransactionVersionLearnt,
    TxnLost,
)
from kip848_client.core.produce._wire import (
    ADD_OFFSETS_VERSIONS,
    ADD_PARTITIONS_VERSIONS,
    DESCRIBE_VERSIONS,
    FEATURES_VERSIONS,
    FIND_COORDINATOR_VERSIONS,
    add_offsets_request,
    add_partitions_request,
    commit_offsets_request,
    commit_offsets_versions,
    coordinator_answer,
    describe_transaction_request,
    end_transaction_answer,
    end_transaction_request,
    end_transaction_versions,
    features_request,
    find_coordinator_request,
    init_producer_id_request,
    init_producer_id_versions,
    node_endpoints,
    offsets_added_answer,
    offsets_answer,
    partitions_added_answer,
    produce_answer,
    produce_request,
    produce_versions,
    producer_id_answer,
    transaction_described_answer,
    transaction_level,
)
from kip848_client.core.types import VersionLimits
from kip848_client.errors import (
    BrokerError,
    Kip848Error,
    RemoteProtocolError,
    TransportError,
    UnsupportedVersion,
    WireError,
)

__all__ = ["Network", "Requests"]

_AtCoordinator = AddPartitions | AddOffsets | CommitOffsets | EndTransaction


class Network(Transport, Protocol):
    """The transport functions that a producer needs in addition."""

    async def produce(
        self,
        node_id: int,
        request: Any,
        *,
        versions: VersionLimits,
        timeout_ms: int,
        is_answered: bool,
    ) -> Any:
        """Send records to one broker, in the order of these calls."""
        ...

    def opened(self, node_id: int) -> int:
        """How often a connection to this broker was opened."""
        ...


class Requests:
    """Sends the core's requests. ``post`` receives the resulting events."""

    def __init__(self, network: Network, post: Callable[[Event], None]) -> None:
        self._network = network
        self._post = post
        self._featured: tuple[int, int] | None = None
        """The coordinator, and the connection to it, that returned the features."""

    async def produce(self, command: SendProduce) -> None:
        """Send Produce to the leader."""
        try:
            response = await self._network.produce(
                command.node,
                produce_request(command),
                versions=produce_versions(command),
                timeout_ms=command.timeout_ms,
                is_answered=command.acks != 0,
            )
        except Kip848Error as err:
            sent = not isinstance(err, NotSent)
            self._post(ProduceLost(command.produce, str(err), sent, _to_tell(err)))
            return
        if response is None:
            self._post(ProduceAnswered(command.produce, {}))
            return
        self._network.add_brokers(node_endpoints(response))
        self._post(produce_answer(command, response))

    async def find_coordinator(self, command: FindCoordinator) -> None:
        """Send FindCoordinator to any broker."""
        try:
            response = await self._network.any_broker(
                find_coordinator_request(command), versions=FIND_COORDINATOR_VERSIONS
            )
        except Kip848Error as err:
            self._post(CoordinatorNotFound(command.number, 0, str(err), _to_tell(err)))
            return
        answer, addresses = coordinator_answer(command, response)
        self._network.add_brokers(addresses)
        self._post(answer)

    async def init_producer_id(self, command: InitProducerId) -> None:
        """Send InitProducerId to the transaction coordinator, or to any broker if there is none."""
        request, versions = init_producer_id_request(command), init_producer_id_versions(command)
        asked: Awaitable[Any]
        try:
            if command.node is None:
                asked = self._network.any_broker(request, versions=versions)
            else:
                await self._learn_features(command.node)
                asked = self._network.broker(command.node, request, versions=versions)
            response = await asked
        except Kip848Error as err:
            self._lost(command.number, err)
            return
        self._post(producer_id_answer(command, response))

    async def at_coordinator(self, command: _AtCoordinator) -> None:
        """Send a request of a transaction to its coordinator, or to the group coordinator."""
        request, versions, answer = self._meant(command)
        try:
            if isinstance(command, EndTransaction):
                await self._learn_features(command.node)
            response = await self._network.broker(command.node, request, versions=versions)
        except Kip848Error as err:
            self._lost(command.number, err)
            return
        self._post(answer(response))

    async def describe_transaction(self, command: DescribeTransaction) -> None:
        """Send DescribeTransactions to the coordinator."""
        request = describe_transaction_request(command)
        try:
            response = await self._network.broker(command.node, request, versions=DESCRIBE_VERSIONS)
        except Kip848Error as err:
            for_good = _to_tell(err) is not None
            self._post(TransactionNotDescribed(command.number, for_good))
            return
        self._post(transaction_described_answer(command, response))

    def _meant(self, command: _AtCoordinator) -> tuple[Any, VersionLimits, Callable[[Any], Event]]:
        match command:
            case AddPartitions():
                return (
                    add_partitions_request(command),
                    ADD_PARTITIONS_VERSIONS,
                    lambda response: partitions_added_answer(command, response),
                )
            case AddOffsets():
                return (
                    add_offsets_request(command),
                    ADD_OFFSETS_VERSIONS,
                    lambda response: offsets_added_answer(command, response),
                )
            case EndTransaction():
                return (
                    end_transaction_request(command),
                    end_transaction_versions(command),
                    lambda response: end_transaction_answer(command, response),
                )
            case CommitOffsets():
                return (
                    commit_offsets_request(command),
                    commit_offsets_versions(command),
                    lambda response: offsets_answer(command, response),
                )

    # -- features ----------------------------------------------------------------------------

    async def ask_for_features(self) -> None:
        """Ask any broker for the finalized features. Raises the errors of ``Transport``."""
        response = await self._network.any_broker(features_request(), versions=FEATURES_VERSIONS)
        self._learn(transaction_level(response))

    async def _learn_features(self, node: int) -> None:
        """Ask a coordinator for its features if the connection is new: a cluster upgrade restarts
        the brokers."""
        if self._featured == (node, self._network.opened(node)):
            return
        try:
            response = await self._network.broker(
                node, features_request(), versions=FEATURES_VERSIONS
            )
        except (TransportError, RemoteProtocolError) as err:
            raise NotSent(str(err)) from err  # the request that was to follow
        self._featured = (node, self._network.opened(node))
        self._learn(transaction_level(response))

    def _learn(self, level: int | None) -> None:
        if level is not None:
            self._post(TransactionVersionLearnt(level))

    def _lost(self, number: int, error: Kip848Error) -> None:
        self._post(TxnLost(number, str(error), not isinstance(error, NotSent), _to_tell(error)))


def _to_tell(error: Kip848Error) -> Kip848Error | None:
    """``error`` if a retry does not help: failed authentication, or an unsupported version."""
    if isinstance(error, BrokerError | UnsupportedVersion):
        return error
    if isinstance(error, WireError):
        raise error  # the request cannot be encoded
    return None
