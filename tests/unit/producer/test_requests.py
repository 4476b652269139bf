"""What is sent to whom, and that whatever a network does becomes an event."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.ports import ConnectionBroken, NotSent
from kip848_client.core.produce import (
    NO_PRODUCER,
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    CoordinatorFound,
    CoordinatorKind,
    CoordinatorNotFound,
    EndTransaction,
    Event,
    FindCoordinator,
    Group,
    InitProducerId,
    OffsetToCommit,
    ProduceAnswered,
    ProduceLost,
    ProducerId,
    ProducerIdAnswered,
    SealedBatch,
    SendProduce,
    TransactionVersion,
    TransactionVersionLearnt,
    TxnAnswered,
    TxnLost,
)
from kip848_client.core.types import TopicId, TopicPartition, VersionLimits
from kip848_client.core.wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ApiVersionsResponseFinalizedFeatureKey,
)
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kip848_client.core.wire.messages.produce import ProduceResponse, ProduceResponseNodeEndpoint
from kip848_client.core.wire.messages.transactions import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
)
from kip848_client.core.wire.messages.txn_offset_commit import TxnOffsetCommitResponse
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    Kip848Error,
    RemoteProtocolError,
    RequestTimedOut,
    UnsupportedVersion,
    WireError,
)
from kip848_client.producer._requests import Requests

pytestmark = pytest.mark.asyncio

TP = TopicPartition("t", 0)
ID = TopicId(b"t" * 16)
ME = ProducerId(7, 3)
GROUP = Group("g", 5, "m", None)
V2 = TransactionVersion.V2
REFUSED = BrokerError(
    ErrorCode.SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED", "wrong password"
)
ANY = -1
"""The node of a request that any broker may answer."""

FEATURES = ApiVersionsResponse(
    api_keys=(),
    finalized_features_epoch=1,
    finalized_features=(
        ApiVersionsResponseFinalizedFeatureKey(
            name="transaction.version", max_version_level=2, min_version_level=1
        ),
    ),
)


def sent(acks: int = -1) -> SendProduce:
    return SendProduce(5, 2, acks, None, V2, (SealedBatch(TP, ID, b"x"),), 500)


def end(number: int = 5) -> EndTransaction:
    return EndTransaction(number, 2, "x", ME, V2, commit=True)


AT_COORDINATOR = [
    (AddPartitions(5, 2, "x", ME, (TP,)), AddPartitionsToTxnResponse(), (3, 3)),
    (AddOffsets(5, 2, "x", ME, "g"), AddOffsetsToTxnResponse(), (3, 4)),
    (
        CommitOffsets(5, 2, "x", ME, V2, GROUP, {TP: OffsetToCommit(1, -1, "", ID)}),
        TxnOffsetCommitResponse(),
        (5, 6),
    ),
    (
        CommitOffsets(5, 2, "x", ME, V2, GROUP, {TP: OffsetToCommit(1, -1, "")}),
        TxnOffsetCommitResponse(),
        (5, 5),
    ),
]


class Network:
    """Answers requests with ``answers``, in order; an exception is raised. Features are answered by
    themselves."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.features: Any = FEATURES
        self.asked: list[tuple[int, str, VersionLimits]] = []
        self.timeouts: list[tuple[int, bool]] = []
        self.brokers: list[tuple[int, str, int]] = []
        self.connections = 1

    def _answer(self, node: int, request: Any, versions: VersionLimits) -> Any:
        name = type(request).__name__.removesuffix("Request")
        self.asked.append((node, name, versions))
        is_features = isinstance(request, ApiVersionsRequest)
        answer = self.features if is_features else self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def any_broker(self, request: Any, *, versions: VersionLimits, **_: Any) -> Any:
        return self._answer(ANY, request, versions)

    async def broker(self, node_id: int, request: Any, *, versions: VersionLimits, **_: Any) -> Any:
        return self._answer(node_id, request, versions)

    async def produce(
        self,
        node_id: int,
        request: Any,
        *,
        versions: VersionLimits,
        timeout_ms: int,
        is_answered: bool,
    ) -> Any:
        self.timeouts.append((timeout_ms, is_answered))
        return self._answer(node_id, request, versions)

    def opened(self, _node_id: int) -> int:
        return self.connections

    def add_brokers(self, brokers: Any) -> None:
        self.brokers += brokers

    @property
    def names(self) -> list[str]:
        return [name for _, name, _ in self.asked]


def over(network: Network) -> tuple[Requests, list[Event]]:
    events: list[Event] = []
    return Requests(network, events.append), events  # type: ignore[arg-type]  # the part it needs


LOSSES = [
    (NotSent("no connection"), False, False),
    (ConnectionBroken("it broke"), True, False),
    (RequestTimedOut("no answer"), True, False),
    (RemoteProtocolError("nonsense"), True, False),
    (REFUSED, True, True),
    (UnsupportedVersion("no common version"), True, True),
]
"""What may be raised; whether the broker may have the request; whether there is no use in trying
again."""


class TestProduce:
    async def test_it_is_answered(self) -> None:
        address = ProduceResponseNodeEndpoint(node_id=4, host="h", port=1, rack=None)
        network = Network(ProduceResponse(responses=(), node_endpoints=(address,)))
        requests, events = over(network)
        await requests.produce(sent())
        assert events == [ProduceAnswered(5, {})]
        assert network.asked == [(2, "Produce", (3, 13))]
        assert network.timeouts == [(500, True)]
        assert network.brokers == [(4, "h", 1)], "where the new leader is"

    async def test_nobody_is_to_answer(self) -> None:
        network = Network(None)
        requests, events = over(network)
        await requests.produce(sent(acks=0))
        assert events == [ProduceAnswered(5, {})]
        assert network.timeouts == [(500, False)]

    @pytest.mark.parametrize(("error", "maybe", "is_fatal"), LOSSES)
    async def test_it_is_lost(self, error: Kip848Error, *, maybe: bool, is_fatal: bool) -> None:
        requests, events = over(Network(error))
        await requests.produce(sent())
        assert events == [ProduceLost(5, str(error), maybe, error if is_fatal else None)]

    async def test_what_we_cannot_write_is_a_bug_of_ours(self) -> None:
        requests, events = over(Network(WireError("too long")))
        with pytest.raises(WireError):
            await requests.produce(sent())
        assert not events


class TestCoordinators:
    asked = FindCoordinator(5, CoordinatorKind.GROUP, "g")

    async def test_found(self) -> None:
        row = FindCoordinatorResponseCoordinator(key="g", node_id=3, host="h", port=9)
        network = Network(FindCoordinatorResponse(coordinators=(row,)))
        requests, events = over(network)
        await requests.find_coordinator(self.asked)
        assert events == [CoordinatorFound(5, 3)]
        assert network.brokers == [(3, "h", 9)]
        assert network.asked == [(ANY, "FindCoordinator", (4, 6))]

    @pytest.mark.parametrize(("error", "_maybe", "is_fatal"), LOSSES)
    async def test_not_asked(self, error: Kip848Error, *, _maybe: bool, is_fatal: bool) -> None:
        requests, events = over(Network(error))
        await requests.find_coordinator(self.asked)
        assert events == [CoordinatorNotFound(5, 0, str(error), error if is_fatal else None)]


class TestWhoWeAre:
    async def test_any_broker_gives_a_producer_id(self) -> None:
        answer = InitProducerIdResponse(error_code=0, producer_id=7, producer_epoch=3)
        network = Network(answer)
        requests, events = over(network)
        await requests.init_producer_id(InitProducerId(5, None, None, 60_000, NO_PRODUCER))
        assert events == [ProducerIdAnswered(5, 0, ME)]
        assert network.asked == [(ANY, "InitProducerId", (0, 5))]

    async def test_of_a_transactional_id_its_coordinator(self) -> None:
        answer = InitProducerIdResponse(error_code=0, producer_id=7, producer_epoch=3)
        network = Network(answer)
        requests, events = over(network)
        await requests.init_producer_id(InitProducerId(5, 2, "x", 60_000, ME))
        assert events == [TransactionVersionLearnt(2), ProducerIdAnswered(5, 0, ME)]
        assert network.asked == [(2, "ApiVersions", (3, 4)), (2, "InitProducerId", (3, 5))]

    @pytest.mark.parametrize(("error", "maybe", "is_fatal"), LOSSES)
    async def test_lost(self, error: Kip848Error, *, maybe: bool, is_fatal: bool) -> None:
        requests, events = over(Network(error))
        await requests.init_producer_id(InitProducerId(5, None, None, 60_000, NO_PRODUCER))
        assert events == [TxnLost(5, str(error), maybe, error if is_fatal else None)]


class TestAtCoordinators:
    @pytest.mark.parametrize(("command", "response", "versions"), AT_COORDINATOR)
    async def test_answered(self, command: Any, response: Any, versions: VersionLimits) -> None:
        network = Network(response)
        requests, events = over(network)
        await requests.at_coordinator(command)
        (event,) = events
        assert isinstance(event, TxnAnswered)
        assert event.number == 5
        ((node, _, asked),) = network.asked
        assert (node, asked) == (2, versions)

    @pytest.mark.parametrize(("error", "maybe", "is_fatal"), LOSSES)
    @pytest.mark.parametrize("command", [command for command, _, _ in AT_COORDINATOR])
    async def test_lost(
        self, command: Any, error: Kip848Error, *, maybe: bool, is_fatal: bool
    ) -> None:
        requests, events = over(Network(error))
        await requests.at_coordinator(command)
        assert events == [TxnLost(5, str(error), maybe, error if is_fatal else None)]


class TestFeatures:
    async def test_they_are_learnt_at_the_start(self) -> None:
        network = Network()
        requests, events = over(network)
        await requests.ask_for_features()
        assert events == [TransactionVersionLearnt(2)]
        network.features = ApiVersionsResponse(api_keys=(), finalized_features_epoch=-1)
        await requests.ask_for_features()
        assert len(events) == 1, "a broker that does not know says nothing"

    async def test_each_new_connection_to_a_coordinator_tells_them(self) -> None:
        """Whoever upgrades a cluster restarts its brokers."""
        network = Network(*[EndTxnResponse()] * 3)
        requests, events = over(network)
        for _ in range(2):
            await requests.at_coordinator(end())
        assert network.names == ["ApiVersions", "EndTxn", "EndTxn"]
        network.connections += 1
        await requests.at_coordinator(end())
        assert network.names[3:] == ["ApiVersions", "EndTxn"]
        assert events.count(TransactionVersionLearnt(2)) == 2

    @pytest.mark.parametrize(
        "error", [each for each, _, is_fatal in LOSSES if not is_fatal], ids=repr
    )
    async def test_what_was_to_follow_them_was_not_sent(self, error: Kip848Error) -> None:
        """So a commit is not in doubt."""
        network = Network(EndTxnResponse())
        network.features = error
        requests, events = over(network)
        await requests.at_coordinator(end())
        assert network.names == ["ApiVersions"]
        assert events == [TxnLost(5, str(error), maybe_sent=False)]
        network.features = FEATURES
        await requests.at_coordinator(end(6))
        assert isinstance(events[-1], TxnAnswered)

    async def test_a_login_that_is_refused_is_told(self) -> None:
        network = Network()
        network.features = REFUSED
        requests, events = over(network)
        await requests.at_coordinator(end())
        (event,) = events
        assert isinstance(event, TxnLost)
        assert event.fatal is REFUSED
