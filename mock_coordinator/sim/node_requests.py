"""Requests to the nodes of a cluster over the simulated network: each is sent once, and each ending
is one event. What every client sends is here; the messages are made and read by what the consumer
and the producer use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kip848_client.core.cluster import (
    METADATA_VERSIONS,
    LeadersLearnt,
    LeadersNotLearnt,
    LearnLeaders,
    leaders_learnt,
    learnt_together,
    metadata_request,
    questions_of,
)
from kip848_client.core.member import LossReason
from mock_coordinator.sim.client_connection import Answer, ClientConnection
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network

__all__ = ["Connections", "NodeRequests", "Wires"]

Connections = dict[int, ClientConnection]
"""By node."""


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


class NodeRequests:
    """Sends what a core asks for. ``learnt`` takes what metadata tells, ``enter`` lets something
    happen as soon as the process runs."""

    def __init__(
        self,
        wires: Wires,
        learnt: Callable[[LeadersLearnt | LeadersNotLearnt], None],
        enter: Callable[[Callable[[], None]], None],
    ) -> None:
        self.wires = wires
        self.enter = enter
        self.asking: Connections = {}
        """For whatever has no connections of its own."""
        self._learnt = learnt
        self._kinds: list[Connections] = [self.asking]
        self._asked = 0

    def own_connections(self) -> Connections:
        """Connections for one kind of request alone."""
        kind: Connections = {}
        self._kinds.append(kind)
        return kind

    def close(self) -> None:
        """Give all connections up."""
        for connection in self._all():
            connection.close()

    def drop(self) -> None:
        """Break all connections off: whatever is under way is lost."""
        for connection in self._all():
            connection.drop()

    def _all(self) -> list[ClientConnection]:
        return [connection for kind in reversed(self._kinds) for connection in kind.values()]

    def some_node(self) -> int:
        """They take turns."""
        nodes = self.wires.nodes()
        self._asked += 1
        return nodes[self._asked % len(nodes)]

    def version(self, api: str, limits: tuple[int, int]) -> int:
        """The highest that both sides speak."""
        return min(self.wires.versions[api][1], limits[1])

    def connection(self, connections: Connections, node: int) -> ClientConnection:
        """The one to this node, made when it is needed."""
        connection = connections.get(node)
        if connection is None:
            wires = self.wires
            connection = connections[node] = ClientConnection(
                wires.kernel,
                wires.network,
                wires.client,
                wires.server_of(node),
                codec=wires.codec,
            )
        return connection

    # -- metadata ----------------------------------------------------------------------------

    def learn_leaders(self, command: LearnLeaders) -> None:
        """Metadata, of any broker."""
        self._ask_metadata(command.number, questions_of(command), [])

    def _ask_metadata(
        self, number: int, questions: Sequence[LearnLeaders], answers: list[LeadersLearnt]
    ) -> None:
        if not questions:
            self._learnt(learnt_together(number, answers))
            return

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                self._learnt(LeadersNotLearnt(number, answer.value))
            else:
                learnt = leaders_learnt(answer, questions[0])
                self._ask_metadata(number, questions[1:], [*answers, learnt])

        self.connection(self.asking, self.some_node()).call(
            metadata_request(questions[0]),
            self.version("Metadata", METADATA_VERSIONS),
            self.wires.request_timeout_ms,
            lambda answer: self.enter(lambda: done(answer)),
        )
