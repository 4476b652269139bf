"""What the fetch core asks of its driver, over the simulated network: each is sent once, each
ending is one event. The messages are made and read by what the consumer uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kip848_client.cluster import (
    METADATA_VERSIONS,
    LeadersLearnt,
    LeadersNotLearnt,
    LearnLeaders,
    leaders_learnt,
    learnt_together,
    metadata_request,
    questions_of,
)
from kip848_client.fetching import (
    CloseSession,
    Event,
    FetchAnswered,
    FetchLost,
    ListOffsets,
    OffsetsListed,
    OffsetsNotListed,
    SendFetch,
)
from kip848_client.fetching._wire import (
    FETCH_VERSIONS,
    closing_request,
    fetch_answer,
    fetch_request,
    list_offsets_request,
    list_offsets_versions,
    listed_offsets,
)
from kip848_client.member import LossReason
from mock_coordinator.sim.client_connection import Answer, ClientConnection
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network

__all__ = ["FetchRequests", "Wires"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wires:
    """Where requests go: the network, the names of the nodes in it, and what they serve."""

    kernel: Kernel
    network: Network
    client: str
    codec: bool
    versions: Mapping[str, tuple[int, int]]
    server_of: Callable[[int], str]
    nodes: Callable[[], Sequence[int]]
    request_timeout_ms: int


class FetchRequests:
    """Sends what the core asks for. ``feed`` takes the events, ``enter`` lets something happen as
    soon as the process runs."""

    def __init__(
        self,
        wires: Wires,
        feed: Callable[[Event], None],
        enter: Callable[[Callable[[], None]], None],
    ) -> None:
        self._wires = wires
        self._feed = feed
        self._enter = enter
        self._fetching: dict[int, ClientConnection] = {}
        self._asking: dict[int, ClientConnection] = {}
        self._asked = 0

    def close(self) -> None:
        """Give all connections up."""
        for connection in (*self._fetching.values(), *self._asking.values()):
            connection.close()

    def drop(self) -> None:
        """Break all connections off: whatever is under way is lost."""
        for connection in (*self._fetching.values(), *self._asking.values()):
            connection.drop()

    def fetch(self, command: SendFetch) -> None:
        """Fetch, on a connection of its own."""

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                sent = answer is not LossReason.NOT_SENT
                self._feed(FetchLost(command.fetch, answer.value, sent))
            else:
                self._feed(FetchAnswered(command.fetch, fetch_answer(answer)))

        self._connection(self._fetching, command.node).call(
            fetch_request(command.intent),
            self._version("Fetch", FETCH_VERSIONS),
            command.timeout_ms,
            lambda answer: self._enter(lambda: done(answer)),
            repeats=True,
        )

    def close_session(self, command: CloseSession) -> None:
        """Fetch with the last epoch."""
        self._connection(self._asking, command.node).call(
            closing_request(command),
            self._version("Fetch", FETCH_VERSIONS),
            self._wires.request_timeout_ms,
            _nothing,
        )

    def list_offsets(self, command: ListOffsets) -> None:
        """ListOffsets, to a leader."""

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                self._feed(OffsetsNotListed(command.query, answer.value))
            else:
                rows = listed_offsets(command, answer)
                self._feed(OffsetsListed(command.query, rows))

        self._connection(self._asking, command.node).call(
            list_offsets_request(command, self._wires.request_timeout_ms),
            self._version("ListOffsets", list_offsets_versions(command)),
            self._wires.request_timeout_ms,
            lambda answer: self._enter(lambda: done(answer)),
        )

    def learn_leaders(self, command: LearnLeaders) -> None:
        """Metadata, of any broker."""
        self._ask_metadata(command.number, questions_of(command), [])

    def _ask_metadata(
        self, number: int, questions: Sequence[LearnLeaders], answers: list[LeadersLearnt]
    ) -> None:
        if not questions:
            self._feed(learnt_together(number, answers))
            return

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                self._feed(LeadersNotLearnt(number, answer.value))
            else:
                learnt = leaders_learnt(answer, questions[0])
                self._ask_metadata(number, questions[1:], [*answers, learnt])

        nodes = self._wires.nodes()
        self._asked += 1
        self._connection(self._asking, nodes[self._asked % len(nodes)]).call(
            metadata_request(questions[0]),
            self._version("Metadata", METADATA_VERSIONS),
            self._wires.request_timeout_ms,
            lambda answer: self._enter(lambda: done(answer)),
        )

    def _version(self, api: str, limits: tuple[int, int]) -> int:
        return min(self._wires.versions[api][1], limits[1])

    def _connection(self, connections: dict[int, ClientConnection], node: int) -> ClientConnection:
        connection = connections.get(node)
        if connection is None:
            wires = self._wires
            connection = connections[node] = ClientConnection(
                wires.kernel,
                wires.network,
                wires.client,
                wires.server_of(node),
                codec=wires.codec,
            )
        return connection


def _nothing(_answer: Answer) -> None:
    """Nobody waits for it."""
