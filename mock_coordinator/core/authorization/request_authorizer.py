"""Authorization of requests: removes what is not allowed, and completes the responses.

Theory of operation
===================

A real broker authorizes in its API layer: before the handler it removes what the principal may not
do, and later it merges the refusals into the handler's response. So does this class, and handlers
know nothing of permissions. ``admit`` calls the rule of the request's API (``rules``), which
refuses the request, or passes the rest of it on and says how to complete the response. Responses
may come many steps later (a join that waits for others); until then the refusals are kept by
connection and correlation id, and dropped when the connection is lost.

Each client also gets the addresses of the listener that it uses. A broker without an authorizer
admits everything, and one with a single listener leaves all addresses unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.fetch import FetchRequest
from kip848_client.core.wire.messages.produce import ProduceRequest, ProduceResponse
from mock_coordinator.core.authorization.requester import (
    ADMITTED,
    Admission,
    AuthorizationRule,
    Denied,
    Requester,
)
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.outputs import CloseConnection, NoReply, Output, Reply, reply_to
from mock_coordinator.core.security.acls import Operation
from mock_coordinator.core.state.broker import Broker

__all__ = ["RequestAuthorizer"]

_UNHEARD: Final = (
    "an unauthorized produce request with acks=0, which only a closed connection reports"
)


class RequestAuthorizer:
    """Authorizes the requests of one cluster's brokers; ``broker`` is any of them."""

    def __init__(self, broker: Broker) -> None:
        security = broker.disk.security
        self._broker: Final = broker
        self._authorizer: Final = security.authorizer
        self._addresses: Final = security.addresses
        self._incomplete: dict[tuple[int, int], Callable[[Any], Message]] = {}
        self.may_describe: Final = None if security.authorizer is None else self._may_describe
        """Whether a client may know of a topic; ``None``: everybody may."""

    def admit(
        self,
        event: RequestReceived,
        rule: AuthorizationRule | None,
        outputs: list[Output],
        *,
        names_brokers: bool,
    ) -> RequestReceived | None:
        """What the handler may see; ``None`` when the request is refused, and answered. ``rule`` is
        that of its API; ``names_brokers``: the answer has addresses."""
        admission = self._judge(rule, event)
        if isinstance(admission, Denied):
            outputs.append(_refusal(event, admission.response))
            return None
        finish = admission.complete
        here = self._addresses.get(event.client.listener or "") if names_brokers else None
        if here:
            finish = _readdressing(finish, here)
        if finish is not None:
            self._incomplete[event.connection, event.correlation] = finish
        if admission.request is None:
            return event
        return replace(event, request=admission.request)

    def _judge(self, rule: AuthorizationRule | None, event: RequestReceived) -> Admission:
        if rule is None or self._authorizer is None:
            return ADMITTED
        requester = Requester(self._broker, self._authorizer, event.client, event.version)
        return rule(requester, event.request)

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
        requester = Requester(self._broker, self._authorizer, client, 0)
        replica = max(request.replica_id, request.replica_state.replica_id)
        if replica >= 0:
            follower = requester.may_cluster(Operation.CLUSTER_ACTION)
            return lambda _name: follower
        return lambda name: requester.may_topic(Operation.READ, name)

    def _may_describe(self, client: ClientInfo, topic: str) -> bool:
        if self._authorizer is None:
            return True
        requester = Requester(self._broker, self._authorizer, client, 0)
        return requester.may_topic(Operation.DESCRIBE, topic)


def _readdressing(
    finish: Callable[[Any], Any] | None, addresses: Mapping[int, tuple[str, int]]
) -> Callable[[Any], Any]:
    if finish is None:
        return lambda response: _readdressed(response, addresses)
    return lambda response: _readdressed(finish(response), addresses)


def _refusal(event: RequestReceived, response: Message | None) -> Output:
    unheard = isinstance(event.request, ProduceRequest) and event.request.acks == 0
    if response is None or unheard:
        return CloseConnection(event.connection, _UNHEARD)
    return reply_to(event, response)


def _readdressed(response: Any, addresses: Mapping[int, tuple[str, int]]) -> Any:
    """A response in which every node has the address that is given for it."""
    response = _moved(response, addresses)
    for name in ("brokers", "coordinators", "node_endpoints"):
        nodes = getattr(response, name, ())
        if nodes:
            moved = tuple(_moved(node, addresses) for node in nodes)
            response = replace(response, **{name: moved})
    return response


def _moved(node: Any, addresses: Mapping[int, tuple[str, int]]) -> Any:
    names = [field.name for field in fields(node)]
    if "host" not in names:
        return node
    node_id = node.node_id if "node_id" in names else node.broker_id
    if node_id not in addresses or not node.port:
        return node
    host, port = addresses[node_id]
    return replace(node, host=host, port=port)
