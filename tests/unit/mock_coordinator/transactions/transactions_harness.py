"""A broker in process whose transactions are spoken to by hand, on a clock that stands still."""

from __future__ import annotations

from typing import Any

from kip848_client.core.wire import api_named
from kip848_client.errors import TransportError
from mock_coordinator.core.topics.topic_names import TRANSACTIONS_TOPIC
from mock_coordinator.core.transaction_coordinator import TransactionLog, TransactionMetadata
from tests.support.raw_transactions import Producer, RawTransactions, committed_values
from tests.support.wire_connection import ConnectionLostError
from tests.unit.mock_coordinator.broker_harness import BrokerHarness

__all__ = ["TOPIC", "TransactionsHarness"]

TOPIC = "t"


class TransactionsHarness(RawTransactions):
    """A broker with topic ``t`` (3 partitions), and the requests of ``RawTransactions``.

    Somebody has looked for the coordinator of transactions, unless it is not ``known``.

    Settings are written with underscores.
    """

    def __init__(
        self, *, profile: str = "4.4", partitions: int = 3, known: bool = True, **config: str
    ) -> None:
        self.harness = BrokerHarness({TOPIC: partitions}, profile=profile, **config)
        super().__init__(self._reconnect, self._ids(), self.harness.clock)
        if known:
            self.find_coordinator("x")

    def _reconnect(self) -> TransactionsHarness:
        return self

    def request(self, message: Any, version: int) -> Any:
        """As a connection of its own, opened again when the broker closed it."""
        if self.harness.connection.is_closed:
            self.harness.connection = self.harness.broker.connect()
        try:
            return self.harness.ask(message, version)
        except TransportError as err:
            raise ConnectionLostError(str(err)) from err

    def close(self) -> None:
        """Nothing: the broker is this object's own."""

    def _ids(self) -> dict[str, bytes]:
        topics = self.harness.broker.core.broker.catalog.topics
        return {name: bytes(topic.topic_id) for name, topic in topics.items()}

    def begin(self, name: str = "x", *, timeout_ms: int = 60_000) -> Producer:
        """A producer of a transactional id."""
        answer, producer = self.init(name, timeout_ms)
        assert answer[0] == 0, answer
        return producer

    def write(
        self,
        name: str,
        producer: Producer,
        *values: bytes,
        partition: int = 0,
        sequence: int = 0,
        version: int = 12,
    ) -> int:
        """Produce values in the producer's transaction; returns the error code."""
        answer = self.produce(name, producer, sequence, {(TOPIC, partition): values}, version)
        code: int = answer[0][2]
        return code

    def finish(self, name: str, producer: Producer, *, commit: bool) -> Producer:
        """End the producer's transaction; returns the producer as it is afterwards."""
        answer, after = self.end(name, producer, commit=commit)
        assert answer[0] == 0, answer
        return after

    def state(self, name: str = "x") -> str:
        """The state of a transactional id, or the error code as text."""
        found = self.describe(name)[0]
        return str(found[2] or found[1])

    def values(self, partition: int = 0) -> list[bytes]:
        """What a read_committed consumer gets to see, aborted records left out."""
        return committed_values(self.fetch(TOPIC, partition))

    def restart(self) -> None:
        """The broker crashes and comes back."""
        self.harness.broker.restart()

    def advance(self, by_ms: int) -> None:
        """Time passes."""
        self.harness.clock.advance(by_ms)

    def put(self, name: str, value: TransactionMetadata) -> None:
        """Write a record into the broker's transaction log behind its back; it counts after a
        restart."""
        broker = self.harness.broker.core.broker
        broker.disk.transactions.append(self.harness.clock(), TransactionLog(name, value))

    def records(self) -> dict[str, TransactionMetadata]:
        """What the broker's transaction log says in the end."""
        records = self.harness.broker.core.broker.disk.transactions.records
        newest = {record.transactional_id: record.value for record in records}
        return {name: value for name, value in newest.items() if value is not None}

    def find_coordinator(self, name: str) -> Any:
        """FindCoordinator of a transactional id; whether the internal topic exists then."""
        request = api_named("FindCoordinator").request(key_type=1, coordinator_keys=(name,))
        answer = self.harness.ask(request, 4).coordinators[0]
        return answer.error_code, TRANSACTIONS_TOPIC in self._ids()
