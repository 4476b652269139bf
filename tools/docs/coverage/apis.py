"""Every API key of Kafka, and the versions that brokers of each release line offer to clients.

Source: ApiVersions of brokers 4.0.2, 4.1.2, 4.2.2, 4.3.1 and 4.4.0 on a client listener, formatted
with their newest metadata version and default settings. One API per line: key, name, the lowest and
highest version in 4.0, and changes in later lines, as ``4.2:0-1``. Keys without versions are used
only between controllers and brokers, are for telemetry (which needs a reporter), or were removed in
Kafka 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mock_coordinator.core.profiles import PROFILES

__all__ = ["KAFKA_APIS", "LINES", "KafkaApi"]

LINES: Final = tuple(PROFILES)
"""The release lines, the oldest first."""


@dataclass(frozen=True, slots=True)
class KafkaApi:
    """One API. ``offered`` maps a release line to the lowest and highest version."""

    key: int
    name: str
    offered: Mapping[str, tuple[int, int]]


_TABLE: Final = """
0 Produce 0-12 4.1:0-13
1 Fetch 4-17 4.1:4-18
2 ListOffsets 1-10 4.2:1-11
3 Metadata 0-13
4 LeaderAndIsr
5 StopReplica
6 UpdateMetadata
7 ControlledShutdown
8 OffsetCommit 2-9 4.2:2-10
9 OffsetFetch 1-9 4.2:1-10
10 FindCoordinator 0-6
11 JoinGroup 0-9
12 Heartbeat 0-4
13 LeaveGroup 0-5
14 SyncGroup 0-5
15 DescribeGroups 0-6
16 ListGroups 0-5
17 SaslHandshake 0-1
18 ApiVersions 0-4 4.4:0-5
19 CreateTopics 2-7
20 DeleteTopics 1-6
21 DeleteRecords 0-2
22 InitProducerId 0-5
23 OffsetForLeaderEpoch 2-4
24 AddPartitionsToTxn 0-5
25 AddOffsetsToTxn 0-4
26 EndTxn 0-5
27 WriteTxnMarkers 1-1 4.2:1-2
28 TxnOffsetCommit 0-5 4.4:0-6
29 DescribeAcls 1-3
30 CreateAcls 1-3
31 DeleteAcls 1-3
32 DescribeConfigs 1-4
33 AlterConfigs 0-2
34 AlterReplicaLogDirs 1-2
35 DescribeLogDirs 1-4 4.3:1-5
36 SaslAuthenticate 0-2
37 CreatePartitions 0-3
38 CreateDelegationToken 1-3
39 RenewDelegationToken 1-2
40 ExpireDelegationToken 1-2
41 DescribeDelegationToken 1-3
42 DeleteGroups 0-2 4.4:0-3
43 ElectLeaders 0-2
44 IncrementalAlterConfigs 0-1
45 AlterPartitionReassignments 0-0 4.1:0-1
46 ListPartitionReassignments 0-0
47 OffsetDelete 0-0
48 DescribeClientQuotas 0-1
49 AlterClientQuotas 0-1
50 DescribeUserScramCredentials 0-0
51 AlterUserScramCredentials 0-0
52 Vote
53 BeginQuorumEpoch
54 EndQuorumEpoch
55 DescribeQuorum 0-2
56 AlterPartition
57 UpdateFeatures 0-2
58 Envelope
59 FetchSnapshot
60 DescribeCluster 0-2
61 DescribeProducers 0-0
62 BrokerRegistration
63 BrokerHeartbeat
64 UnregisterBroker 0-0
65 DescribeTransactions 0-0
66 ListTransactions 0-1 4.1:0-2
67 AllocateProducerIds
68 ConsumerGroupHeartbeat 0-1
69 ConsumerGroupDescribe 0-1
70 ControllerRegistration
71 GetTelemetrySubscriptions
72 PushTelemetry
73 AssignReplicasToDirs
74 ListConfigResources 0-0 4.1:0-1
75 DescribeTopicPartitions 0-0
76 ShareGroupHeartbeat 4.1:1-1
77 ShareGroupDescribe 4.1:1-1
78 ShareFetch 4.1:1-1 4.2:1-2
79 ShareAcknowledge 4.1:1-1 4.2:1-2
80 AddRaftVoter 0-0 4.2:0-1
81 RemoveRaftVoter 0-0
82 UpdateRaftVoter
83 InitializeShareGroupState 4.1:0-0
84 ReadShareGroupState 4.1:0-0
85 WriteShareGroupState 4.1:0-0 4.2:0-1
86 DeleteShareGroupState 4.1:0-0
87 ReadShareGroupStateSummary 4.1:0-0 4.2:0-1
88 StreamsGroupHeartbeat 4.2:0-0 4.4:0-1
89 StreamsGroupDescribe 4.2:0-0 4.4:0-1
90 DescribeShareGroupOffsets 4.1:0-0 4.2:0-1
91 AlterShareGroupOffsets 4.1:0-0
92 DeleteShareGroupOffsets 4.1:0-0
93 StreamsGroupTopologyDescriptionUpdate 4.4:0-0
94 UnregisterController 4.4:0-0
"""


def _read(row: str) -> KafkaApi:
    key, name, *cells = row.split()
    changes = {line or LINES[0]: cell for line, _, cell in (each.rpartition(":") for each in cells)}
    offered: dict[str, tuple[int, int]] = {}
    versions = ""
    for line in LINES:
        versions = changes.get(line, versions)
        if versions:
            low, _, high = versions.partition("-")
            offered[line] = (int(low), int(high))
    return KafkaApi(int(key), name, offered)


KAFKA_APIS: Final[Mapping[int, KafkaApi]] = {
    api.key: api for api in map(_read, _TABLE.strip().splitlines())
}
"""By key."""
