"""Which rows of the table a broker serves, in which versions, and how a request gets its
response."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire import DRAFT_API_KEYS, api_named
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mock_coordinator.core.apis.call import ApiCall, Handler
from mock_coordinator.core.apis.coordinators.groups import (
    describe_switched_off,
    heartbeat_switched_off,
)
from mock_coordinator.core.apis.table import SERVED, ServedApi
from mock_coordinator.core.outputs import Output, Unanswered, reply_to
from mock_coordinator.core.settings.broker_config import BrokerConfig

__all__ = ["answered", "served_apis", "served_versions"]

_SWITCHED_OFF: Final[dict[type[Message], Handler]] = {
    ConsumerGroupHeartbeatRequest: heartbeat_switched_off,
    ConsumerGroupDescribeRequest: describe_switched_off,
}
"""What refuses a request where ``group.coordinator.rebalance.protocols`` lacks ``consumer``."""


def served_versions(config: BrokerConfig) -> dict[int, tuple[int, int]]:
    """API key -> versions: the profile's, and the draft protocols (client-side assignors, Connect
    groups) unless they are switched off, or with consumer groups."""
    versions = {api_named(name).key: both for name, both in config.profile.api_versions.items()}
    if config.client_assignors and _has_consumer_groups(config):
        versions.update(dict.fromkeys(DRAFT_API_KEYS, (0, 0)))
    return dict(sorted(versions.items()))


def served_apis(config: BrokerConfig) -> dict[type[Message], ServedApi]:
    """The rows of what is served, by request class."""
    versions = served_versions(config)
    apis = {api.request: api for api in SERVED if api.request.API_KEY in versions}
    if not _has_consumer_groups(config):
        # such a broker looks at its setting before anything else, the client's rights included
        for request, refuse in _SWITCHED_OFF.items():
            apis[request] = replace(apis[request], handle=refuse, rule=None)
    return apis


def _has_consumer_groups(config: BrokerConfig) -> bool:
    return "consumer" in config.listing("group.coordinator.rebalance.protocols")


def answered(api: ServedApi, call: ApiCall[Any]) -> tuple[Output, ...]:
    """Carry out a request. What comes of it now is nothing for one that waits."""
    why = None if api.fails_on is None else api.fails_on(call)
    if why is not None:
        if not api.fails_first:
            api.handle(call)
        return (_unanswered(call, why),)
    answer = api.handle(call)
    if answer is None:
        return ()
    return (answer if isinstance(answer, Output) else reply_to(call.received, answer),)


def _unanswered(call: ApiCall[Any], why: str) -> Unanswered:
    received = call.received
    name = type(received.request).__name__
    return Unanswered(
        received.connection,
        received.correlation,
        f"{name} v{received.version} gets no response, as in Kafka: {why}",
    )
