"""Kafka 4.0, as 4.0.2 does it: everything that later lines change begins here."""

from __future__ import annotations

from typing import Final

from mock_coordinator.core.profile import Profile
from mock_coordinator.core.profiles.features import feature_ranges

__all__ = ["PROFILE"]

PROFILE: Final[Profile] = Profile(
    release="4.0.2",
    api_versions={
        # 0 to 2 are listed for librdkafka's sake (KAFKA-18659), and refused
        "Produce": (0, 12),
        "Fetch": (4, 17),
        "ListOffsets": (1, 10),
        "Metadata": (0, 13),
        "OffsetCommit": (2, 9),
        "OffsetFetch": (1, 9),
        "FindCoordinator": (0, 6),
        "JoinGroup": (0, 9),
        "Heartbeat": (0, 4),
        "LeaveGroup": (0, 5),
        "SyncGroup": (0, 5),
        "DescribeGroups": (0, 6),
        "ListGroups": (0, 5),
        "SaslHandshake": (0, 1),
        "ApiVersions": (0, 4),
        "CreateTopics": (2, 7),
        "DeleteTopics": (1, 6),
        "DeleteRecords": (0, 2),
        "InitProducerId": (0, 5),
        "OffsetForLeaderEpoch": (2, 4),
        "AddPartitionsToTxn": (0, 5),
        "AddOffsetsToTxn": (0, 4),
        "EndTxn": (0, 5),
        "WriteTxnMarkers": (1, 1),
        "TxnOffsetCommit": (0, 5),
        "DescribeAcls": (1, 3),
        "CreateAcls": (1, 3),
        "DeleteAcls": (1, 3),
        "DescribeConfigs": (1, 4),
        "AlterConfigs": (0, 2),
        "SaslAuthenticate": (0, 2),
        "CreatePartitions": (0, 3),
        "DeleteGroups": (0, 2),
        "ElectLeaders": (0, 2),
        "IncrementalAlterConfigs": (0, 1),
        "AlterPartitionReassignments": (0, 0),
        "ListPartitionReassignments": (0, 0),
        "OffsetDelete": (0, 0),
        "DescribeClientQuotas": (0, 1),
        "AlterClientQuotas": (0, 1),
        "DescribeUserScramCredentials": (0, 0),
        "AlterUserScramCredentials": (0, 0),
        "DescribeCluster": (0, 2),
        "DescribeProducers": (0, 0),
        "DescribeTransactions": (0, 0),
        "ListTransactions": (0, 1),
        "ConsumerGroupHeartbeat": (0, 1),
        "ConsumerGroupDescribe": (0, 1),
        "ListConfigResources": (0, 0),
        "DescribeTopicPartitions": (0, 0),
    },
    supported_features=feature_ranges(25),
    finalized_features={"group.version": 1, "transaction.version": 2, "metadata.version": 25},
    finalized_features_epoch=11,
)
