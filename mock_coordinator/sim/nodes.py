"""The nodes of one ``ClusterCore`` behind the network: requests go in, answers go out, time passes,
nodes stop and start. What else troubles them is their subclasses' business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final, Generic

from kip848_client.core.wire._fields import Message
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.inputs import (
    ClientInfo,
    Input,
    NodeStarted,
    NodeStopped,
    RequestReceived,
    TimerFired,
)
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.outputs import Reply
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.sim.client_connection import pack, unpack_request
from mock_coordinator.sim.kernel import Timer
from mock_coordinator.sim.network import Connection, Packet
from mock_coordinator.sim.swarm import AnyParameters
from mock_coordinator.sim.world_context import WorldContext

__all__ = ["Nodes", "Waiting", "node_name"]

_OPERATOR: Final = ClientInfo("operator")


def node_name(node_id: int) -> str:
    """Of a node in the network."""
    return f"node{node_id}"


@dataclass(slots=True)
class Waiting:
    """A request that is not answered yet."""

    connection: Connection
    packet: Packet
    node_id: int
    request: Any


class Nodes(Generic[AnyParameters]):
    """All nodes. The three methods that do nothing here are for subclasses."""

    def __init__(
        self,
        context: WorldContext[AnyParameters],
        settings: Mapping[str, str],
        racks: Sequence[str] = (),
    ) -> None:
        self._world = context
        ids, brokers = context.kernel.rng("uuid"), context.options.brokers
        self.core = ClusterCore.create(
            BrokerConfig(context.profile, {"default.replication.factor": str(brokers), **settings}),
            lambda: ids.randbytes(16),
            context.kernel.now_ms,
            brokers=brokers,
            racks=racks,
        )
        self._waiting: dict[tuple[int, int], Waiting] = {}
        self._ghosts = 0
        self._newest: dict[object, int] = {}
        """By sender, the number of its newest heartbeat."""
        self._timer: Timer | None = None
        for node in self.core.broker.nodes:
            self._listen(node.node_id)

    def _listen(self, node_id: int) -> None:
        receive = partial(self._receive, node_id)
        self._world.network.servers[node_name(node_id)] = receive

    # -- looking -----------------------------------------------------------------------------

    @property
    def topics(self) -> list[Topic]:
        """The users' topics, by name."""
        known = self.core.broker.catalog.topics
        return [known[name] for name in sorted(known) if not known[name].internal]

    def log(self, topic: Topic, partition: int) -> PartitionLog:
        """Of one partition."""
        log = self.core.broker.logs.of(topic, partition)
        assert log is not None, "it has this partition"
        return log

    def logs(self) -> Iterator[tuple[Topic, int, PartitionLog]]:
        """Of all partitions of the users' topics."""
        for topic in self.topics:
            for partition in range(topic.partitions):
                yield topic, partition, self.log(topic, partition)

    def leader(self, topic: Topic, partition: int) -> int | None:
        """Who leads a partition."""
        return self.core.broker.partition_state(topic, partition).leader

    def some_run(self) -> bool:
        """Whether there is a broker for what is created."""
        return any(node.up and not node.fenced for node in self.core.broker.nodes)

    # -- for subclasses ----------------------------------------------------------------------

    def note(self) -> None:
        """Something may have been written."""

    def refusal(self, waiting: Waiting) -> Message | None:
        """What a node answers that does not even look at the request."""
        del waiting
        return None

    def spoilt(self, waiting: Waiting, response: Any) -> Any:
        """An answer as it leaves a troubled node."""
        del waiting
        return response

    # -- requests ----------------------------------------------------------------------------

    def _receive(self, node_id: int, connection: Connection, packet: Packet) -> None:
        request = unpack_request(packet)
        number = connection.number
        waiting = Waiting(connection, packet, node_id, request)
        if packet.again:  # its answer goes nowhere
            self._ghosts += 1
            number = -self._ghosts
        self._waiting[number, packet.correlation] = waiting
        refusal = None if packet.again else self.refusal(waiting)
        if refusal is not None:
            self._answer(number, packet.correlation, refusal)
            return
        event = RequestReceived(
            number,
            packet.correlation,
            packet.version,
            ClientInfo(connection.client),
            request,
            node_id,
        )
        self.step(event)

    def is_outdated(self, packet: Packet, sender: object, number: int) -> bool:
        """Whether this heartbeat arrives after a younger one of its sender, or twice. Worlds that
        check who runs what do not let it in: heartbeats have no number, so that a coordinator may
        take an old acknowledgement for a new one and give away what is being worked on.
        ``sim.invariants`` says more; no client or broker can prevent that."""
        if packet.again or number < self._newest.get(sender, 0):
            return True
        self._newest[sender] = number
        return False

    def step(self, event: Input) -> None:
        """Let something happen to the brokers, and send what they answer."""
        for output in self.core.step(self._world.kernel.now_ms, event):
            if isinstance(output, Reply):
                self._answer(output.connection, output.correlation, output.response)
        self.note()
        self._set_timer()

    def operate(self, request: Message, version: int) -> Any:
        """An administrator's or producer's request, answered at once by a node that can."""
        event = RequestReceived(0, 0, version, _OPERATOR, request)
        answers: list[Any] = []
        for output in self.core.step(self._world.kernel.now_ms, event):
            assert isinstance(output, Reply), output
            if output.connection == 0:
                answers.append(output.response)
            else:
                self._answer(output.connection, output.correlation, output.response)
        self.note()
        self._set_timer()
        return answers[0] if answers else None

    def _answer(self, number: int, correlation: int, response: Any) -> None:
        waiting = self._waiting.pop((number, correlation), None)
        if waiting is None:
            return
        packet = waiting.packet
        response = self.spoilt(waiting, response)
        if packet.again:
            return
        body = pack(response, packet.version, codec=self._world.options.codec)
        answer = Packet(correlation, packet.api_key, packet.version, body, packet.tag)
        self._world.network.answer(waiting.connection, answer)

    # -- time --------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        due_ms = self.core.deadline_ms
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if due_ms is not None:
            self._timer = self._world.kernel.at(due_ms, lambda: self.step(TimerFired()))

    # -- nodes -------------------------------------------------------------------------------

    def stop(self, node_id: int, noticed_after_ms: int) -> None:
        """A node dies; the others notice it after a while."""
        if not self.core.broker.nodes[node_id].up:
            return
        self._world.tell(node_name(node_id), "stop", f"noticed after {noticed_after_ms} ms")
        self._world.probes.reached("a broker stopped")
        self.step(NodeStopped(node_id, noticed_after_ms))
        del self._world.network.servers[node_name(node_id)]
        self._world.network.reset_all(node_name(node_id))
        self._waiting = {k: w for k, w in self._waiting.items() if w.node_id != node_id}

    def stop_one(self, rng: Random, down_ms_max: int) -> None:
        """A node dies, or is shut down, and comes back."""
        up = [node.node_id for node in self.core.broker.nodes if node.up]
        if up:
            node_id = rng.choice(up)
            self.stop(node_id, rng.choice((0, 0, 500, 3_000)))
            self._world.kernel.after(rng.randint(1, down_ms_max), lambda: self.start(node_id))

    def start(self, node_id: int) -> None:
        """It runs again."""
        if self.core.broker.nodes[node_id].up:
            return
        self._world.tell(node_name(node_id), "start")
        self._listen(node_id)
        self.step(NodeStarted(node_id))

    def heal(self) -> None:
        """Be up from now on."""
        for node_id in self.core.broker.nodes.ids:
            self.start(node_id)
