"""Which function answers which administrator's API.

Handlers take the broker, the time and the received request (its version and client with it). Where
Kafka's broker passes such a request on to its controller, the controller is this broker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kip848_client.wire._fields import Message
from mock_coordinator.core.admin.client_quotas import alter_client_quotas, describe_client_quotas
from mock_coordinator.core.admin.config_resources import list_config_resources
from mock_coordinator.core.admin.delete_records import delete_records
from mock_coordinator.core.admin.replicas import (
    alter_reassignments,
    elect_leaders,
    list_reassignments,
)
from mock_coordinator.core.admin.scram_credentials import (
    alter_scram_credentials,
    describe_scram_credentials,
)
from mock_coordinator.core.admin.topic_partitions import describe_topic_partitions
from mock_coordinator.core.broker import Broker
from mock_coordinator.core.inputs import ClientInfo
from mock_coordinator.core.settings.alter_configs import alter_configs, incremental_alter_configs
from mock_coordinator.core.settings.configs import describe_configs

__all__ = ["ADMIN_HANDLERS", "AdminHandler"]

AdminHandler = Callable[[Broker, int, int, ClientInfo, Any], Message]
"""(broker, now_ms, version, client, request) -> response; ``Any`` is the key's request class."""


def _plain(handler: Callable[[Broker, Any], Message]) -> AdminHandler:
    return lambda broker, _now, _version, _client, request: handler(broker, request)


def _versioned(handler: Callable[[Broker, int, Any], Message]) -> AdminHandler:
    return lambda broker, _now, version, _client, request: handler(broker, version, request)


ADMIN_HANDLERS: Final[Mapping[int, AdminHandler]] = {
    21: _plain(delete_records),
    32: _plain(describe_configs),
    33: _plain(alter_configs),
    43: _versioned(elect_leaders),
    44: _plain(incremental_alter_configs),
    45: _plain(alter_reassignments),
    46: _plain(list_reassignments),
    48: _plain(describe_client_quotas),
    49: _plain(alter_client_quotas),
    50: _plain(describe_scram_credentials),
    51: _plain(alter_scram_credentials),
    74: _versioned(list_config_resources),
    75: _plain(describe_topic_partitions),
}
"""By API key."""
