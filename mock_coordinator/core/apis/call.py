"""The arguments of every API handler: a request, and the broker that it reached.

A handler reads ``request``, works with the broker's ``services`` and returns the response, or
``None`` if the request waits: its response is then an output of a later step. The few requests that
end in something other than a response on the wire return that output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from kip848_client.core.wire._fields import Message
from mock_coordinator.core.authorization.request_authorizer import RequestAuthorizer
from mock_coordinator.core.fetching.fetches import Fetches
from mock_coordinator.core.fetching.parked import ParkedFetches
from mock_coordinator.core.groups.service.shards import GroupShards
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.outputs import CloseConnection, NoReply
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.transactions.service import Transactions

__all__ = ["Answer", "ApiCall", "BrokerServices", "Handler"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class BrokerServices:
    """What the requests that reach one broker are served with. All but ``broker`` and ``fetches``
    are the whole cluster's."""

    broker: Broker
    fetches: Fetches
    parked: ParkedFetches
    groups: GroupShards
    transactions: Transactions
    authorizer: RequestAuthorizer
    versions: Mapping[int, tuple[int, int]]
    """API key -> the lowest and highest version that is served."""


@dataclass(slots=True)
class ApiCall(Generic[R]):
    """One request at one broker. ``request`` is what the requester may ask for: it can be less than
    what was sent."""

    services: BrokerServices
    now_ms: int
    received: RequestReceived
    request: R

    @property
    def broker(self) -> Broker:
        """The broker that was reached."""
        return self.services.broker

    @property
    def version(self) -> int:
        """The version of the request, and of its response."""
        return self.received.version

    @property
    def client(self) -> ClientInfo:
        """The client that sent the request."""
        return self.received.client


Answer: TypeAlias = Message | NoReply | CloseConnection | None

Handler: TypeAlias = Callable[[ApiCall[Any]], Answer]
"""``Any`` is the request class of the API that the handler is for."""
