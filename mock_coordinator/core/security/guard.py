"""The door of a broker with an authorizer: requests in, fewer requests on, whole answers out.

Theory of operation
===================

A real broker authorizes in its API layer: before the handler it sorts out what the principal may
not do, and it merges the refusals with what the handler answers. So does the guard, and handlers
know nothing of rights. ``admit`` finds the rule of the request's API (``rules``), which refuses
the request, or lets what is left of it pass and says how its answer has to be completed. Answers
may come many steps later (a join that waits for others); what has to be added is kept by connection
and correlation until then, and forgotten when the connection is lost.

The guard also gives each client the addresses of the listener that it came through. A broker
without an authorizer and with one listener has no guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from kip848_client.wire._fields import Message
from kip848_client.wire.messages.fetch import FetchRequest
from kip848_client.wire.messages.produce import ProduceRequest, ProduceResponse
from mock_coordinator.core.broker import Broker
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.outputs import CloseConnection, NoReply, Output, Reply
from mock_coordinator.core.security.acls import Operation
from mock_coordinator.core.security.addresses import names_brokers, readdressed
from mock_coordinator.core.security.asker import ADMITTED, Asker, Denied, Verdict
from mock_coordinator.core.security.rules import RULES
from mock_coordinator.core.security.state import SecurityState

__all__ = ["Guard"]

_UNHEARD: Final = "a produce request with acks=0 was not authorized, and this is how it is told"


class Guard:
    """Authorizes the requests of one broker."""

    def __init__(self, broker: Broker, security: SecurityState) -> None:
        self._broker: Final = broker
        self._authorizer: Final = security.authorizer
        self._addresses: Final = security.addresses
        self._incomplete: dict[tuple[int, int], Callable[[Any], Message]] = {}

    @classmethod
    def of(cls, broker: Broker) -> Guard | None:
        """The guard that a broker needs, if it needs one."""
        security = broker.disk.security
        if security.authorizer is None and not security.addresses:
            return None
        return cls(broker, security)

    def admit(self, event: RequestReceived, outputs: list[Output]) -> RequestReceived | None:
        """What the handler may see; ``None`` when the request is refused, and answered."""
        key = type(event.request).API_KEY
        verdict = self._verdict(key, event)
        if isinstance(verdict, Denied):
            outputs.append(_refusal(event, verdict.response))
            return None
        finish = verdict.complete
        here = self._addresses.get(event.client.listener or "")
        if here and names_brokers(key):
            finish = _readdressing(finish, here)
        if finish is not None:
            self._incomplete[event.connection, event.correlation] = finish
        if verdict.request is None:
            return event
        return replace(event, request=verdict.request)

    def _verdict(self, key: int, event: RequestReceived) -> Verdict:
        rule = RULES.get(key)
        if rule is None or self._authorizer is None:
            return ADMITTED
        asker = Asker(self._broker, self._authorizer, event.client, event.version)
        return rule(asker, event.request)

    def complete(self, outputs: Iterable[Output]) -> tuple[Output, ...]:
        """The same outputs, the answers among them whole."""
        if not self._incomplete:
            return tuple(outputs)
        return tuple(self._completed(output) for output in outputs)

    def _completed(self, output: Output) -> Output:
        if isinstance(output, Reply):
            finish = self._incomplete.pop((output.connection, output.correlation), None)
            return output if finish is None else replace(output, response=finish(output.response))
        if isinstance(output, NoReply):
            finish = self._incomplete.pop((output.connection, output.correlation), None)
            # only Produce goes without a reply; what is added to nothing was held back
            added: Any = None if finish is None else finish(ProduceResponse())
            if added is not None and added.responses:
                return CloseConnection(output.connection, _UNHEARD)
        return output

    def connection_lost(self, connection: int) -> None:
        """Forget what a connection's answers would have needed."""
        for key in [key for key in self._incomplete if key[0] == connection]:
            del self._incomplete[key]

    def may_read(self, client: ClientInfo, request: FetchRequest) -> Callable[[str], bool] | None:
        """Which topics a client may fetch: READ on each, or as a follower CLUSTER_ACTION."""
        if self._authorizer is None:
            return None
        asker = Asker(self._broker, self._authorizer, client, 0)
        replica = max(request.replica_id, request.replica_state.replica_id)
        if replica >= 0:
            follower = asker.may_cluster(Operation.CLUSTER_ACTION)
            return lambda _name: follower
        return lambda name: asker.may_topic(Operation.READ, name)

    def may_describe(self, client: ClientInfo, topic: str) -> bool:
        """Whether a client may know of a topic: what a regex matches is filtered by it."""
        if self._authorizer is None:
            return True
        asker = Asker(self._broker, self._authorizer, client, 0)
        return asker.may_topic(Operation.DESCRIBE, topic)


def _readdressing(
    finish: Callable[[Any], Any] | None, addresses: Mapping[int, tuple[str, int]]
) -> Callable[[Any], Any]:
    if finish is None:
        return lambda response: readdressed(response, addresses)
    return lambda response: readdressed(finish(response), addresses)


def _refusal(event: RequestReceived, response: Message | None) -> Output:
    unheard = isinstance(event.request, ProduceRequest) and event.request.acks == 0
    if response is None or unheard:
        return CloseConnection(event.connection, _UNHEARD)
    key = type(event.request).API_KEY
    return Reply(event.connection, event.correlation, event.version, response, key)
