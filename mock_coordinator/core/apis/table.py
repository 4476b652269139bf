"""The APIs that a broker serves: one row per API, with everything about it.

A new API needs its messages (``kip848_client.core.wire``), a handler, an authorization rule, a row
here, and its versions in the profiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.acls import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest
from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kip848_client.core.wire.messages.client_assignors import (
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupPrepareAssignmentRequest,
)
from kip848_client.core.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
)
from kip848_client.core.wire.messages.cluster import DescribeClusterRequest
from kip848_client.core.wire.messages.config_resources import (
    AlterConfigsRequest,
    ListConfigResourcesRequest,
)
from kip848_client.core.wire.messages.configs import (
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupDescribeRequest,
    ConnectGroupHeartbeatRequest,
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupPrepareAssignmentRequest,
)
from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.delete_records import DeleteRecordsRequest
from kip848_client.core.wire.messages.fetch import FetchRequest
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest
from kip848_client.core.wire.messages.offset_delete import OffsetDeleteRequest
from kip848_client.core.wire.messages.offset_fetch import OffsetFetchRequest
from kip848_client.core.wire.messages.produce import ProduceRequest
from kip848_client.core.wire.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from kip848_client.core.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kip848_client.core.wire.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
)
from kip848_client.core.wire.messages.topic_partitions import DescribeTopicPartitionsRequest
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from kip848_client.core.wire.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)
from kip848_client.core.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)
from kip848_client.core.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from mock_coordinator.core.apis.call import ApiCall, Handler
from mock_coordinator.core.apis.cluster.api_versions import api_versions
from mock_coordinator.core.apis.cluster.describe_cluster import describe_cluster
from mock_coordinator.core.apis.cluster.find_coordinator import find_coordinator
from mock_coordinator.core.apis.cluster.replicas import (
    alter_reassignments,
    elect_leaders,
    list_reassignments,
)
from mock_coordinator.core.apis.configs.alter_configs import (
    alter_configs,
    incremental_alter_configs,
)
from mock_coordinator.core.apis.configs.config_resources import list_config_resources
from mock_coordinator.core.apis.configs.describe_configs import describe_configs
from mock_coordinator.core.apis.coordinators.groups import coordinate_group
from mock_coordinator.core.apis.coordinators.transactions import (
    commit_in_transaction,
    coordinate_transaction,
    tell_producers,
    write_markers,
)
from mock_coordinator.core.apis.records.delete_records import delete_records
from mock_coordinator.core.apis.records.fetch import fetch
from mock_coordinator.core.apis.records.list_offsets import list_offsets, offset_for_leader_epoch
from mock_coordinator.core.apis.records.produce import produce
from mock_coordinator.core.apis.topics.admin_topics import create_partitions, delete_topics
from mock_coordinator.core.apis.topics.create_topics import create_topics
from mock_coordinator.core.apis.topics.metadata import metadata
from mock_coordinator.core.apis.topics.topic_partitions import describe_topic_partitions
from mock_coordinator.core.apis.unanswered import (
    no_group,
    no_marker_to_write,
    no_transaction,
    null_records,
    resource_twice,
)
from mock_coordinator.core.apis.users.acls import create_acls, delete_acls, describe_acls
from mock_coordinator.core.apis.users.client_quotas import (
    alter_client_quotas,
    describe_client_quotas,
)
from mock_coordinator.core.apis.users.sasl import authenticate_too_late, handshake_too_late
from mock_coordinator.core.apis.users.scram_credentials import (
    alter_scram_credentials,
    describe_scram_credentials,
)
from mock_coordinator.core.authorization.requester import AuthorizationRule
from mock_coordinator.core.authorization.rules.administration import (
    admit_alter_client_quotas,
    admit_alter_partition_reassignments,
    admit_alter_user_scram_credentials,
    admit_create_acls,
    admit_delete_acls,
    admit_describe_acls,
    admit_describe_client_quotas,
    admit_describe_cluster,
    admit_describe_user_scram_credentials,
    admit_elect_leaders,
    admit_list_partition_reassignments,
)
from mock_coordinator.core.authorization.rules.configs import (
    admit_alter_configs,
    admit_describe_configs,
    admit_incremental_alter_configs,
    admit_list_config_resources,
)
from mock_coordinator.core.authorization.rules.groups import (
    admit_connect_group_describe,
    admit_connect_group_heartbeat,
    admit_connect_group_install_assignment,
    admit_connect_group_prepare_assignment,
    admit_consumer_group_describe,
    admit_consumer_group_heartbeat,
    admit_consumer_group_install_assignment,
    admit_consumer_group_prepare_assignment,
    admit_delete_groups,
    admit_describe_groups,
    admit_find_coordinator,
    admit_heartbeat,
    admit_join_group,
    admit_leave_group,
    admit_list_groups,
    admit_sync_group,
)
from mock_coordinator.core.authorization.rules.offsets import (
    admit_offset_commit,
    admit_offset_delete,
    admit_offset_fetch,
    admit_txn_offset_commit,
)
from mock_coordinator.core.authorization.rules.producing import (
    admit_add_offsets_to_txn,
    admit_add_partitions_to_txn,
    admit_describe_transactions,
    admit_end_txn,
    admit_init_producer_id,
    admit_list_transactions,
    admit_produce,
    admit_write_txn_markers,
)
from mock_coordinator.core.authorization.rules.topic_changes import (
    admit_create_partitions,
    admit_create_topics,
    admit_delete_records,
    admit_delete_topics,
)
from mock_coordinator.core.authorization.rules.topics import (
    admit_describe_producers,
    admit_describe_topic_partitions,
    admit_list_offsets,
    admit_metadata,
    admit_offset_for_leader_epoch,
)

__all__ = ["SERVED", "ServedApi", "writes_documents"]


@dataclass(frozen=True, slots=True)
class ServedApi:
    """One API. Its key and its versions are those of its ``request`` class."""

    request: type[Message]
    handle: Handler
    rule: AuthorizationRule | None = None
    """Required permissions; ``None`` where no principal is known yet, or where the handler checks
    them (Fetch)."""
    writes_documents: bool = False
    """Whether it may change the documents of a data folder without changing a counter."""
    names_brokers: bool = False
    """Whether its response has addresses of brokers, which depend on the client's listener."""
    fails_on: Callable[[ApiCall[Any]], str | None] | None = None
    """What makes Kafka fail on a request without answering it; ``None`` for a good request."""
    fails_first: bool = False
    """Kafka fails before anything is done. Otherwise the request is carried out, too."""


SERVED: Final[tuple[ServedApi, ...]] = (
    ServedApi(
        ProduceRequest,
        produce,
        admit_produce,
        names_brokers=True,
        fails_on=null_records,
        fails_first=True,
    ),
    ServedApi(FetchRequest, fetch, names_brokers=True),
    ServedApi(ListOffsetsRequest, list_offsets, admit_list_offsets),
    ServedApi(MetadataRequest, metadata, admit_metadata, names_brokers=True),
    ServedApi(OffsetCommitRequest, coordinate_group, admit_offset_commit),
    ServedApi(OffsetFetchRequest, coordinate_group, admit_offset_fetch, fails_on=no_group),
    ServedApi(FindCoordinatorRequest, find_coordinator, admit_find_coordinator, names_brokers=True),
    ServedApi(JoinGroupRequest, coordinate_group, admit_join_group),
    ServedApi(HeartbeatRequest, coordinate_group, admit_heartbeat),
    ServedApi(LeaveGroupRequest, coordinate_group, admit_leave_group),
    ServedApi(SyncGroupRequest, coordinate_group, admit_sync_group),
    ServedApi(DescribeGroupsRequest, coordinate_group, admit_describe_groups),
    ServedApi(ListGroupsRequest, coordinate_group, admit_list_groups),
    ServedApi(SaslHandshakeRequest, handshake_too_late),
    ServedApi(ApiVersionsRequest, api_versions),
    ServedApi(CreateTopicsRequest, create_topics, admit_create_topics, writes_documents=True),
    ServedApi(DeleteTopicsRequest, delete_topics, admit_delete_topics, writes_documents=True),
    ServedApi(DeleteRecordsRequest, delete_records, admit_delete_records, writes_documents=True),
    ServedApi(InitProducerIdRequest, coordinate_transaction, admit_init_producer_id),
    ServedApi(OffsetForLeaderEpochRequest, offset_for_leader_epoch, admit_offset_for_leader_epoch),
    ServedApi(
        AddPartitionsToTxnRequest,
        coordinate_transaction,
        admit_add_partitions_to_txn,
        fails_on=no_transaction,
    ),
    ServedApi(AddOffsetsToTxnRequest, coordinate_transaction, admit_add_offsets_to_txn),
    ServedApi(EndTxnRequest, coordinate_transaction, admit_end_txn),
    ServedApi(
        WriteTxnMarkersRequest, write_markers, admit_write_txn_markers, fails_on=no_marker_to_write
    ),
    ServedApi(TxnOffsetCommitRequest, commit_in_transaction, admit_txn_offset_commit),
    ServedApi(DescribeAclsRequest, describe_acls, admit_describe_acls),
    ServedApi(CreateAclsRequest, create_acls, admit_create_acls, writes_documents=True),
    ServedApi(DeleteAclsRequest, delete_acls, admit_delete_acls, writes_documents=True),
    ServedApi(DescribeConfigsRequest, describe_configs, admit_describe_configs),
    ServedApi(
        AlterConfigsRequest,
        alter_configs,
        admit_alter_configs,
        writes_documents=True,
        fails_on=resource_twice,
    ),
    ServedApi(SaslAuthenticateRequest, authenticate_too_late),
    ServedApi(
        CreatePartitionsRequest, create_partitions, admit_create_partitions, writes_documents=True
    ),
    ServedApi(DeleteGroupsRequest, coordinate_group, admit_delete_groups),
    ServedApi(ElectLeadersRequest, elect_leaders, admit_elect_leaders, writes_documents=True),
    ServedApi(
        IncrementalAlterConfigsRequest,
        incremental_alter_configs,
        admit_incremental_alter_configs,
        writes_documents=True,
    ),
    ServedApi(
        AlterPartitionReassignmentsRequest,
        alter_reassignments,
        admit_alter_partition_reassignments,
        writes_documents=True,
    ),
    ServedApi(
        ListPartitionReassignmentsRequest, list_reassignments, admit_list_partition_reassignments
    ),
    ServedApi(OffsetDeleteRequest, coordinate_group, admit_offset_delete),
    ServedApi(DescribeClientQuotasRequest, describe_client_quotas, admit_describe_client_quotas),
    ServedApi(
        AlterClientQuotasRequest,
        alter_client_quotas,
        admit_alter_client_quotas,
        writes_documents=True,
    ),
    ServedApi(
        DescribeUserScramCredentialsRequest,
        describe_scram_credentials,
        admit_describe_user_scram_credentials,
    ),
    ServedApi(
        AlterUserScramCredentialsRequest,
        alter_scram_credentials,
        admit_alter_user_scram_credentials,
        writes_documents=True,
    ),
    ServedApi(DescribeClusterRequest, describe_cluster, admit_describe_cluster, names_brokers=True),
    ServedApi(DescribeProducersRequest, tell_producers, admit_describe_producers),
    ServedApi(DescribeTransactionsRequest, coordinate_transaction, admit_describe_transactions),
    ServedApi(ListTransactionsRequest, coordinate_transaction, admit_list_transactions),
    ServedApi(ConsumerGroupHeartbeatRequest, coordinate_group, admit_consumer_group_heartbeat),
    ServedApi(ConsumerGroupDescribeRequest, coordinate_group, admit_consumer_group_describe),
    ServedApi(ListConfigResourcesRequest, list_config_resources, admit_list_config_resources),
    ServedApi(
        DescribeTopicPartitionsRequest, describe_topic_partitions, admit_describe_topic_partitions
    ),
    ServedApi(
        ConsumerGroupPrepareAssignmentRequest,
        coordinate_group,
        admit_consumer_group_prepare_assignment,
    ),
    ServedApi(
        ConsumerGroupInstallAssignmentRequest,
        coordinate_group,
        admit_consumer_group_install_assignment,
    ),
    ServedApi(ConnectGroupHeartbeatRequest, coordinate_group, admit_connect_group_heartbeat),
    ServedApi(
        ConnectGroupPrepareAssignmentRequest,
        coordinate_group,
        admit_connect_group_prepare_assignment,
    ),
    ServedApi(
        ConnectGroupInstallAssignmentRequest,
        coordinate_group,
        admit_connect_group_install_assignment,
    ),
    ServedApi(ConnectGroupDescribeRequest, coordinate_group, admit_connect_group_describe),
)
"""In the order of Kafka's API keys."""

_WRITES_DOCUMENTS: Final = frozenset(api.request for api in SERVED if api.writes_documents)


def writes_documents(request: type[Message]) -> bool:
    """Whether a request of this class may change what the documents of a data folder say."""
    return request in _WRITES_DOCUMENTS
