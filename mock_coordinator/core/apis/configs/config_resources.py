"""ListConfigResources (key 74): the resources that DescribeConfigs can describe (KIP-1142).

Version 0 is the older ListClientMetricsResources (KIP-714), which only lists subscriptions to
client metrics. There are none here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kip848_client.core.wire.messages.config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListConfigResourcesResponseConfigResource,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.state.broker import Broker

__all__ = ["list_config_resources"]

_CLIENT_METRICS: Final = 16

_NAMES: Final[dict[int, Callable[[Broker], Iterable[str]]]] = {
    32: lambda broker: broker.config.groups_with_overrides,
    _CLIENT_METRICS: lambda _broker: (),
    8: lambda broker: [str(node.node_id) for node in broker.nodes.alive],
    4: lambda broker: [str(node.node_id) for node in broker.nodes.alive],
    2: lambda broker: sorted(broker.catalog.topics),
}
"""By resource type: groups, client metrics, loggers, brokers, topics."""


def list_config_resources(call: ApiCall[ListConfigResourcesRequest]) -> ListConfigResourcesResponse:
    """The resources of the types asked for, of all when none is."""
    broker, version, request = call.broker, call.version, call.request
    types = (_CLIENT_METRICS,) if version == 0 else request.resource_types
    if any(each not in _NAMES for each in types):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ListConfigResourcesResponseConfigResource(resource_name=name, resource_type=kind)
            for kind, names in _NAMES.items()
            if not types or kind in types
            for name in names(broker)
        )
    )
