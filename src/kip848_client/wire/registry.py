"""Which class speaks which API key, in which version, under which header.

``APIS`` is the one list that has to know every message; everything else asks it. Keys from 10480
are the draft protocols of this project (docs/reference/draft-protocols.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kip848_client.errors import UnsupportedVersion
from kip848_client.wire.messages.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from kip848_client.wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kip848_client.wire.messages.classic_group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kip848_client.wire.messages.client_assignors import (
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentResponse,
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
)
from kip848_client.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kip848_client.wire.messages.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kip848_client.wire.messages.config_resources import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kip848_client.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kip848_client.wire.messages.connect_group import (
    ConnectGroupDescribeRequest,
    ConnectGroupDescribeResponse,
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatResponse,
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupInstallAssignmentResponse,
    ConnectGroupPrepareAssignmentRequest,
    ConnectGroupPrepareAssignmentResponse,
)
from kip848_client.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kip848_client.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from kip848_client.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
)
from kip848_client.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kip848_client.wire.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kip848_client.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kip848_client.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
)
from kip848_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kip848_client.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from kip848_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kip848_client.wire.messages.produce import (
    ProduceRequest,
    ProduceResponse,
)
from kip848_client.wire.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kip848_client.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kip848_client.wire.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from kip848_client.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from kip848_client.wire.messages.topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kip848_client.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kip848_client.wire.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kip848_client.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kip848_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

__all__ = ["APIS", "DRAFT_API_KEYS", "Api", "api_named", "negotiate", "request_api"]

API_VERSIONS_KEY: Final = 18


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its key, Kafka's name for it, and the two message classes."""

    key: int
    name: str
    request: type[Any]
    response: type[Any]

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
        """1 with tagged fields, else 0; ApiVersions always 0, because its reader cannot know yet
        which versions the writer speaks (KIP-511)."""
        if self.key == API_VERSIONS_KEY:
            return 0
        return 1 if self.is_flexible(version) else 0


APIS: Final[dict[int, Api]] = {
    api.key: api
    for api in (
        Api(0, "Produce", ProduceRequest, ProduceResponse),
        Api(1, "Fetch", FetchRequest, FetchResponse),
        Api(2, "ListOffsets", ListOffsetsRequest, ListOffsetsResponse),
        Api(3, "Metadata", MetadataRequest, MetadataResponse),
        Api(8, "OffsetCommit", OffsetCommitRequest, OffsetCommitResponse),
        Api(9, "OffsetFetch", OffsetFetchRequest, OffsetFetchResponse),
        Api(10, "FindCoordinator", FindCoordinatorRequest, FindCoordinatorResponse),
        Api(11, "JoinGroup", JoinGroupRequest, JoinGroupResponse),
        Api(12, "Heartbeat", HeartbeatRequest, HeartbeatResponse),
        Api(13, "LeaveGroup", LeaveGroupRequest, LeaveGroupResponse),
        Api(14, "SyncGroup", SyncGroupRequest, SyncGroupResponse),
        Api(15, "DescribeGroups", DescribeGroupsRequest, DescribeGroupsResponse),
        Api(16, "ListGroups", ListGroupsRequest, ListGroupsResponse),
        Api(17, "SaslHandshake", SaslHandshakeRequest, SaslHandshakeResponse),
        Api(18, "ApiVersions", ApiVersionsRequest, ApiVersionsResponse),
        Api(19, "CreateTopics", CreateTopicsRequest, CreateTopicsResponse),
        Api(20, "DeleteTopics", DeleteTopicsRequest, DeleteTopicsResponse),
        Api(21, "DeleteRecords", DeleteRecordsRequest, DeleteRecordsResponse),
        Api(22, "InitProducerId", InitProducerIdRequest, InitProducerIdResponse),
        Api(23, "OffsetForLeaderEpoch", OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
        Api(24, "AddPartitionsToTxn", AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
        Api(25, "AddOffsetsToTxn", AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
        Api(26, "EndTxn", EndTxnRequest, EndTxnResponse),
        Api(27, "WriteTxnMarkers", WriteTxnMarkersRequest, WriteTxnMarkersResponse),
        Api(28, "TxnOffsetCommit", TxnOffsetCommitRequest, TxnOffsetCommitResponse),
        Api(29, "DescribeAcls", DescribeAclsRequest, DescribeAclsResponse),
        Api(30, "CreateAcls", CreateAclsRequest, CreateAclsResponse),
        Api(31, "DeleteAcls", DeleteAclsRequest, DeleteAclsResponse),
        Api(32, "DescribeConfigs", DescribeConfigsRequest, DescribeConfigsResponse),
        Api(33, "AlterConfigs", AlterConfigsRequest, AlterConfigsResponse),
        Api(36, "SaslAuthenticate", SaslAuthenticateRequest, SaslAuthenticateResponse),
        Api(37, "CreatePartitions", CreatePartitionsRequest, CreatePartitionsResponse),
        Api(42, "DeleteGroups", DeleteGroupsRequest, DeleteGroupsResponse),
        Api(43, "ElectLeaders", ElectLeadersRequest, ElectLeadersResponse),
        Api(
            44,
            "IncrementalAlterConfigs",
            IncrementalAlterConfigsRequest,
            IncrementalAlterConfigsResponse,
        ),
        Api(
            45,
            "AlterPartitionReassignments",
            AlterPartitionReassignmentsRequest,
            AlterPartitionReassignmentsResponse,
        ),
        Api(
            46,
            "ListPartitionReassignments",
            ListPartitionReassignmentsRequest,
            ListPartitionReassignmentsResponse,
        ),
        Api(47, "OffsetDelete", OffsetDeleteRequest, OffsetDeleteResponse),
        Api(48, "DescribeClientQuotas", DescribeClientQuotasRequest, DescribeClientQuotasResponse),
        Api(49, "AlterClientQuotas", AlterClientQuotasRequest, AlterClientQuotasResponse),
        Api(
            50,
            "DescribeUserScramCredentials",
            DescribeUserScramCredentialsRequest,
            DescribeUserScramCredentialsResponse,
        ),
        Api(
            51,
            "AlterUserScramCredentials",
            AlterUserScramCredentialsRequest,
            AlterUserScramCredentialsResponse,
        ),
        Api(60, "DescribeCluster", DescribeClusterRequest, DescribeClusterResponse),
        Api(61, "DescribeProducers", DescribeProducersRequest, DescribeProducersResponse),
        Api(65, "DescribeTransactions", DescribeTransactionsRequest, DescribeTransactionsResponse),
        Api(66, "ListTransactions", ListTransactionsRequest, ListTransactionsResponse),
        Api(
            68,
            "ConsumerGroupHeartbeat",
            ConsumerGroupHeartbeatRequest,
            ConsumerGroupHeartbeatResponse,
        ),
        Api(
            69, "ConsumerGroupDescribe", ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
        ),
        Api(
            71,
            "GetTelemetrySubscriptions",
            GetTelemetrySubscriptionsRequest,
            GetTelemetrySubscriptionsResponse,
        ),
        Api(72, "PushTelemetry", PushTelemetryRequest, PushTelemetryResponse),
        Api(74, "ListConfigResources", ListConfigResourcesRequest, ListConfigResourcesResponse),
        Api(
            75,
            "DescribeTopicPartitions",
            DescribeTopicPartitionsRequest,
            DescribeTopicPartitionsResponse,
        ),
        Api(
            10480,
            "ConsumerGroupPrepareAssignment",
            ConsumerGroupPrepareAssignmentRequest,
            ConsumerGroupPrepareAssignmentResponse,
        ),
        Api(
            10481,
            "ConsumerGroupInstallAssignment",
            ConsumerGroupInstallAssignmentRequest,
            ConsumerGroupInstallAssignmentResponse,
        ),
        Api(
            10482,
            "ConnectGroupHeartbeat",
            ConnectGroupHeartbeatRequest,
            ConnectGroupHeartbeatResponse,
        ),
        Api(
            10483,
            "ConnectGroupPrepareAssignment",
            ConnectGroupPrepareAssignmentRequest,
            ConnectGroupPrepareAssignmentResponse,
        ),
        Api(
            10484,
            "ConnectGroupInstallAssignment",
            ConnectGroupInstallAssignmentRequest,
            ConnectGroupInstallAssignmentResponse,
        ),
        Api(
            10485,
            "ConnectGroupDescribe",
            ConnectGroupDescribeRequest,
            ConnectGroupDescribeResponse,
        ),
    )
}
"""By API key."""

DRAFT_API_KEYS: Final = (10480, 10481, 10482, 10483, 10484, 10485)

_BY_REQUEST: Final[dict[type[Any], Api]] = {api.request: api for api in APIS.values()}
_BY_NAME: Final[dict[str, Api]] = {api.name: api for api in APIS.values()}


def request_api(request: object) -> Api:
    """The API that a request object (or its class) belongs to. Raises ``KeyError`` for others."""
    cls = request if isinstance(request, type) else type(request)
    return _BY_REQUEST[cls]


def api_named(name: str) -> Api:
    """The API of Kafka's name, e.g. ``"Metadata"``. Raises ``KeyError`` for an unknown one."""
    return _BY_NAME[name]


def negotiate(
    api: Api, peer: tuple[int, int] | None, *, at_least: int = 0, at_most: int = 32767
) -> int:
    """The highest version that both sides speak.

    ``peer`` is the range that the broker announced in ApiVersions, ``None`` when it does not list
    the API. ``at_least`` and ``at_most`` narrow our own range. Raises ``UnsupportedVersion`` that
    names both ranges.
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
