"""Which class speaks which API key, in which version, under which header.

``_TABLE`` is the one list that has to know every message; everything else asks ``APIS``. Keys from
10480 are the draft protocols of this project (docs/reference/draft-protocols.md).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

from kip848_client.errors import UnsupportedVersion

__all__ = ["APIS", "DRAFT_API_KEYS", "Api", "api_named", "negotiate", "request_api"]

API_VERSIONS_KEY: Final = 18


@dataclass(frozen=True)
class Api:
    """One API: its key, Kafka's name for it, and the module that has its messages.

    The module is imported at first use, because a consumer needs only a few of them.
    """

    key: int
    name: str
    module: str

    @cached_property
    def request(self) -> type[Any]:
        """The class of its requests."""
        return self._class("Request")

    @cached_property
    def response(self) -> type[Any]:
        """The class of its responses."""
        return self._class("Response")

    def _class(self, what: str) -> type[Any]:
        module = importlib.import_module(f"kip848_client.core.wire.messages.{self.module}")
        found: type[Any] = getattr(module, self.name + what)
        return found

    @property
    def versions(self) -> tuple[int, int]:
        """Lowest and highest version that the classes can read and write."""
        low, high = self.request.VERSIONS
        return (low, high)

    def is_flexible(self, version: int) -> bool:
        """Whether the version uses compact lengths and tagged fields (KIP-482)."""
        first: int = self.request.FLEXIBLE
        return 0 <= first <= version

    def response_header_version(self, version: int) -> int:
        """Return 1 for a version with tagged fields, otherwise 0. ApiVersions always has 0, because
        its reader does not know yet which versions the writer supports (KIP-511)."""
        if self.key == API_VERSIONS_KEY:
            return 0
        return 1 if self.is_flexible(version) else 0


_TABLE: Final = (
    (0, "Produce", "produce"),
    (1, "Fetch", "fetch"),
    (2, "ListOffsets", "list_offsets"),
    (3, "Metadata", "metadata"),
    (8, "OffsetCommit", "offset_commit"),
    (9, "OffsetFetch", "offset_fetch"),
    (10, "FindCoordinator", "find_coordinator"),
    (11, "JoinGroup", "classic_group"),
    (12, "Heartbeat", "classic_group"),
    (13, "LeaveGroup", "classic_group"),
    (14, "SyncGroup", "classic_group"),
    (15, "DescribeGroups", "groups"),
    (16, "ListGroups", "groups"),
    (17, "SaslHandshake", "sasl"),
    (18, "ApiVersions", "api_versions"),
    (19, "CreateTopics", "topics"),
    (20, "DeleteTopics", "topics"),
    (21, "DeleteRecords", "delete_records"),
    (22, "InitProducerId", "transactions"),
    (23, "OffsetForLeaderEpoch", "list_offsets"),
    (24, "AddPartitionsToTxn", "transactions"),
    (25, "AddOffsetsToTxn", "transactions"),
    (26, "EndTxn", "transactions"),
    (27, "WriteTxnMarkers", "transaction_admin"),
    (28, "TxnOffsetCommit", "txn_offset_commit"),
    (29, "DescribeAcls", "acls"),
    (30, "CreateAcls", "acls"),
    (31, "DeleteAcls", "acls"),
    (32, "DescribeConfigs", "configs"),
    (33, "AlterConfigs", "config_resources"),
    (36, "SaslAuthenticate", "sasl"),
    (37, "CreatePartitions", "topics"),
    (42, "DeleteGroups", "groups"),
    (43, "ElectLeaders", "replicas"),
    (44, "IncrementalAlterConfigs", "configs"),
    (45, "AlterPartitionReassignments", "replicas"),
    (46, "ListPartitionReassignments", "replicas"),
    (47, "OffsetDelete", "offset_delete"),
    (48, "DescribeClientQuotas", "client_quotas"),
    (49, "AlterClientQuotas", "client_quotas"),
    (50, "DescribeUserScramCredentials", "scram_credentials"),
    (51, "AlterUserScramCredentials", "scram_credentials"),
    (60, "DescribeCluster", "cluster"),
    (61, "DescribeProducers", "transaction_admin"),
    (65, "DescribeTransactions", "transaction_admin"),
    (66, "ListTransactions", "transaction_admin"),
    (68, "ConsumerGroupHeartbeat", "consumer_group_heartbeat"),
    (69, "ConsumerGroupDescribe", "consumer_group_describe"),
    (71, "GetTelemetrySubscriptions", "telemetry"),
    (72, "PushTelemetry", "telemetry"),
    (74, "ListConfigResources", "config_resources"),
    (75, "DescribeTopicPartitions", "topic_partitions"),
    (10480, "ConsumerGroupPrepareAssignment", "client_assignors"),
    (10481, "ConsumerGroupInstallAssignment", "client_assignors"),
    (10482, "ConnectGroupHeartbeat", "connect_group"),
    (10483, "ConnectGroupPrepareAssignment", "connect_group"),
    (10484, "ConnectGroupInstallAssignment", "connect_group"),
    (10485, "ConnectGroupDescribe", "connect_group"),
)
"""API key, Kafka's name, and the module of ``messages`` that has the two classes."""

APIS: Final[dict[int, Api]] = {row[0]: Api(*row) for row in _TABLE}
"""By API key."""

DRAFT_API_KEYS: Final = (10480, 10481, 10482, 10483, 10484, 10485)

_BY_NAME: Final[dict[str, Api]] = {api.name: api for api in APIS.values()}


def request_api(request: object) -> Api:
    """Find the API of a request.

    Args:
        request: The request or its class.

    Returns:
        The API.

    Raises:
        KeyError: The object is not a request.
    """
    return _api_of(request if isinstance(request, type) else type(request))


@cache
def _api_of(request: type[Any]) -> Api:
    api = _BY_NAME[request.__name__.removesuffix("Request")]
    if api.request is not request:
        raise KeyError(request)
    return api


def api_named(name: str) -> Api:
    """Find an API by Kafka's name.

    Args:
        name: Kafka's name, such as ``"Metadata"``.

    Returns:
        The API.

    Raises:
        KeyError: The name is unknown.
    """
    return _BY_NAME[name]


def negotiate(
    api: Api, peer: tuple[int, int] | None, *, at_least: int = 0, at_most: int = 32767
) -> int:
    """Choose the highest version that both sides support (KIP-35).

    Args:
        api: The API.
        peer: The broker's range from ApiVersions; ``None`` if it does not list the API.
        at_least: Lower limit of the client's range.
        at_most: Upper limit of the client's range.

    Returns:
        The version.

    Raises:
        UnsupportedVersion: There is no common version; the message has both ranges.
    """
    low = max(api.versions[0], at_least)
    high = min(api.versions[1], at_most)
    if peer is None:
        raise UnsupportedVersion(
            f"the broker does not offer {api.name} (API key {api.key}); needed: {low} to {high}"
        )
    version = min(high, peer[1])
    if version < max(low, peer[0]):
        raise UnsupportedVersion(
            f"no common version of {api.name} (API key {api.key}): "
            f"the broker offers {peer[0]} to {peer[1]}, this client needs {low} to {high}"
        )
    return version
