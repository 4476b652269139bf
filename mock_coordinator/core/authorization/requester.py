"""A request's principal and its permissions, as the authorization rules use them.

A rule sees a request before its handler, as in the API layer of a broker. It either refuses the
whole request with a broker's response, or admits it, often with fewer items than it had; then
``complete`` adds the refused items to the handler's response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kip848_client.core.types import ZERO_TOPIC_ID
from kip848_client.core.wire._fields import Message
from mock_coordinator.core.inputs import ClientInfo
from mock_coordinator.core.security.acls import CLUSTER_NAME, Operation, ResourceType
from mock_coordinator.core.security.authorizer import Authorizer
from mock_coordinator.core.state.broker import Broker

__all__ = [
    "ADMITTED",
    "Admission",
    "Admitted",
    "AuthorizationRule",
    "Denied",
    "Requester",
    "admitted_in_part",
    "divided",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Admitted:
    """The handler may see ``request`` (``None``: the request as it came)."""

    request: Any = None
    complete: Callable[[Any], Message] | None = None


def admitted_in_part(
    request: Any, asked: str, kept: Iterable[Any], answered: str, denied: Iterable[Any]
) -> Admitted:
    """The handler sees the rows of the field ``asked`` that are kept; the rows that refuse the
    others follow what it says in its answer's field ``answered``, as a broker merges them."""
    refusals = tuple(denied)
    return Admitted(
        replace(request, **{asked: tuple(kept)}),
        lambda response: replace(response, **{answered: (*getattr(response, answered), *refusals)}),
    )


@dataclass(frozen=True, slots=True)
class Denied:
    """The handler does not see the request. Without a response the connection is closed, which is
    all that a producer with acks=0 can see."""

    response: Message | None


Admission = Admitted | Denied

ADMITTED = Admitted()
"""Nothing to hold back, nothing to add."""


@dataclass(frozen=True, slots=True)
class Requester:
    """Who sent a request, in which version, and the broker that was asked."""

    broker: Broker
    authorizer: Authorizer
    client: ClientInfo
    version: int

    @property
    def host(self) -> str:
        """The client's address as entries name it."""
        return self.client.host.removeprefix("/")

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether the principal may do this."""
        return self.authorizer.allows(
            self.client.principal, self.host, operation, resource_type, name
        )

    def may_cluster(self, operation: Operation) -> bool:
        """Whether the principal may do this to the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_topic(self, operation: Operation, name: str) -> bool:
        """Whether the principal may do this to a topic, which need not exist."""
        return self.may(operation, ResourceType.TOPIC, name)

    def may_group(self, operation: Operation, group_id: str) -> bool:
        """Whether the principal may do this to a group, which need not exist."""
        return self.may(operation, ResourceType.GROUP, group_id)

    def may_transact(self, operation: Operation, transactional_id: str) -> bool:
        """Whether the principal may do this to a transactional id."""
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def may_any_topic(self, operation: Operation) -> bool:
        """Whether there is, or could be, a topic to which the principal may do this."""
        return self.authorizer.allows_any(
            self.client.principal, self.host, operation, ResourceType.TOPIC
        )

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """What the principal may do to a resource, as bits (KIP-430)."""
        return self.authorizer.operations(self.client.principal, self.host, resource_type, name)

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; ``None`` when there is none."""
        if bytes(topic_id) == ZERO_TOPIC_ID:
            return None
        topic = self.broker.catalog.topic_by_id(topic_id)
        return None if topic is None else topic.name


AuthorizationRule = Callable[[Requester, Any], Admission]
"""``Any`` is the request class of the API that the rule is for."""


def divided(items: Iterable[T], may: Callable[[T], bool]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """The items that are allowed and those that are denied, each in their order.

    Every item is judged once: a request may name ten thousand of them.
    """
    kept: list[T] = []
    denied: list[T] = []
    for item in items:
        (kept if may(item) else denied).append(item)
    return tuple(kept), tuple(denied)
