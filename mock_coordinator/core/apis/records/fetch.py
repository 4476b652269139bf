"""Fetch (key 1): returns records, or parks the request until there are enough."""

from __future__ import annotations

from kip848_client.core.wire.messages.fetch import FetchRequest, FetchResponse
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.fetching.fetches import FetchPlan
from mock_coordinator.core.fetching.parked import Parked

__all__ = ["fetch"]


def fetch(call: ApiCall[FetchRequest]) -> FetchResponse | None:
    """The response if there is one already, else the request waits for records or for its time."""
    services, received = call.services, call.received
    may_read = services.authorizer.may_read(call.client, call.request)
    result = services.fetches.start(call.now_ms, call.version, call.request, may_read)
    if not isinstance(result, FetchPlan):
        return result
    services.parked.park(
        Parked(
            received.connection,
            received.correlation,
            received.version,
            result,
            received.node_id,
        ),
        services.fetches.partitions_of(result),
    )
    return None
