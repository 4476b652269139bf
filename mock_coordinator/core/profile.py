"""Which Kafka to be: one profile per release line, as named facts.

A profile reproduces the newest patch release of its line, its bugs included. Everything that
differs between the lines is either a field here or a version range in ``api_versions``; no other
module may compare release numbers. The version ranges and features are what brokers of these
releases (4.0.2, 4.1.2, 4.2.1, 4.3.1, 4.4.0; formatted with their newest metadata version) answer to
ApiVersions, reduced to what is served here: a client sees a broker without share groups, streams
groups, delegation tokens, log directories and changes of the quorum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import ConfigError

__all__ = ["DEFAULT_PROFILE", "PROFILES", "Profile", "TransactionSets", "profile_named"]

VersionRange = tuple[int, int]

_APIS_4_0: Final[dict[int, VersionRange]] = {
    0: (0, 12),  # Produce: 0-2 are listed for librdkafka's sake (KAFKA-18659), and refused
    1: (4, 17),  # Fetch
    2: (1, 10),  # ListOffsets
    3: (0, 13),  # Metadata
    8: (2, 9),  # OffsetCommit
    9: (1, 9),  # OffsetFetch
    10: (0, 6),  # FindCoordinator
    11: (0, 9),  # JoinGroup
    12: (0, 4),  # Heartbeat
    13: (0, 5),  # LeaveGroup
    14: (0, 5),  # SyncGroup
    15: (0, 6),  # DescribeGroups
    16: (0, 5),  # ListGroups
    17: (0, 1),  # SaslHandshake
    18: (0, 4),  # ApiVersions
    19: (2, 7),  # CreateTopics
    20: (1, 6),  # DeleteTopics
    21: (0, 2),  # DeleteRecords
    22: (0, 5),  # InitProducerId
    23: (2, 4),  # OffsetForLeaderEpoch
    24: (0, 5),  # AddPartitionsToTxn
    25: (0, 4),  # AddOffsetsToTxn
    26: (0, 5),  # EndTxn
    27: (1, 1),  # WriteTxnMarkers
    28: (0, 5),  # TxnOffsetCommit
    29: (1, 3),  # DescribeAcls
    30: (1, 3),  # CreateAcls
    31: (1, 3),  # DeleteAcls
    32: (1, 4),  # DescribeConfigs
    33: (0, 2),  # AlterConfigs
    36: (0, 2),  # SaslAuthenticate
    37: (0, 3),  # CreatePartitions
    42: (0, 2),  # DeleteGroups
    43: (0, 2),  # ElectLeaders
    44: (0, 1),  # IncrementalAlterConfigs
    45: (0, 0),  # AlterPartitionReassignments
    46: (0, 0),  # ListPartitionReassignments
    47: (0, 0),  # OffsetDelete
    48: (0, 1),  # DescribeClientQuotas
    49: (0, 1),  # AlterClientQuotas
    50: (0, 0),  # DescribeUserScramCredentials
    51: (0, 0),  # AlterUserScramCredentials
    60: (0, 2),  # DescribeCluster
    61: (0, 0),  # DescribeProducers
    65: (0, 0),  # DescribeTransactions
    66: (0, 1),  # ListTransactions
    68: (0, 1),  # ConsumerGroupHeartbeat
    69: (0, 1),  # ConsumerGroupDescribe
    74: (0, 0),  # ListConfigResources
    75: (0, 0),  # DescribeTopicPartitions
}


def _changed(
    apis: Mapping[int, VersionRange], changes: Mapping[int, VersionRange]
) -> dict[int, VersionRange]:
    """In the order of the keys, as brokers list them."""
    return dict(sorted({**apis, **changes}.items()))


_APIS_4_1: Final = _changed(
    _APIS_4_0,
    {
        0: (0, 13),
        1: (4, 18),
        45: (0, 1),
        66: (0, 2),
        74: (0, 1),
    },
)
_APIS_4_2: Final = _changed(
    _APIS_4_1,
    {
        2: (1, 11),
        8: (2, 10),
        9: (1, 10),
        27: (1, 2),
    },
)
_APIS_4_3: Final = _APIS_4_2
_APIS_4_4: Final = _changed(
    _APIS_4_3,
    {
        18: (0, 5),
        28: (0, 6),
        42: (0, 3),
    },
)


class TransactionSets(Enum):
    """Hash sets whose order can be seen in the log of transactions."""

    SCALA_IMMUTABLE = "scala immutable"
    SCALA_MUTABLE = "scala mutable"
    JAVA = "java"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One Kafka release line. The numbers in brackets are rows of the behaviour matrix in the docs.

    ``api_versions`` maps an API key to the lowest and highest version served.
    ``supported_features`` and ``finalized_features`` map a feature's name to its range and to its
    level (KIP-584).
    """

    name: str
    """``"4.0"`` .. ``"4.4"``."""
    release: str
    """The Kafka release whose behaviour this is."""

    api_versions: Mapping[int, VersionRange]
    supported_features: Mapping[str, VersionRange]
    finalized_features: Mapping[str, int]
    finalized_features_epoch: int

    first_group_epoch: int = 0
    """[1, 2] Group and assignment epoch of a group that was just created."""
    join_without_topics_bumps: bool = True
    """[3] A first join with no names, or a pattern that is not resolved yet, bumps the epoch."""
    has_assignment_interval: bool = False
    """[4] ``group.consumer.assignment.interval.ms`` exists (KIP-1263)."""
    rejoin_at_zero_accepted: bool = False
    """[5] A member that exists may always rejoin with epoch 0."""
    unrevoked_ack_advances_epoch: bool = True
    """[6] Acknowledging one revocation while more must be revoked moves the epoch by one."""
    target_filtered_by_subscription: bool = False
    """[7] Reconciliation skips target partitions that the member no longer subscribes to."""
    commits_use_assignment_epoch: bool = False
    """[8] An older epoch may commit partitions that were assigned before it (KIP-1251)."""
    static_replacement_ignores_max_size: bool = False
    """[9] A static member may replace itself in a full group."""
    describe_shows_pending_revocation: bool = False
    """[10] ConsumerGroupDescribe's assignment holds what is still being revoked."""
    metadata_hash: bool = False
    """[11] Topic changes are noticed by a hash, not by a partition-metadata record (KIP-1101)."""
    rack_change_bumps: bool = False
    """[12] A change of a replica's rack bumps the epoch."""
    regex_refresh: bool = False
    """[13] Patterns are resolved again every ``group.consumer.regex.refresh.interval.ms``."""
    classic_rejoin_by_assignment_epoch: bool = False
    """[14] A classic member must rejoin when behind the assignment epoch, not the group epoch."""
    assignor_change_bumps: bool = False
    """[15] The group epoch moves when another server-side assignor wins the vote."""
    empty_group_advances_target: bool = False
    """[16] The last member's leaving also moves the assignment epoch."""
    offsets_by_topic_id: bool = False
    """[17] OffsetCommit and OffsetFetch v10."""
    classic_join_refused_by_policy: bool = False
    """A classic member may not join a consumer group when the migration policy is "disabled"."""
    nonsense_stalls_join: bool = True
    """A classic group whose member subscribes in bytes with impossible lengths stays in its join
    phase: the broker fails where it would note the topics."""
    malformed_subscription_error: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    """[18] Error code for an unreadable classic subscription in a consumer group."""
    regex_removal_bumps: bool = False
    """A member that stops using a regex, without another change, bumps the epoch."""
    regex_named_groups: bool = False
    """A regex may name a group ``(?<name>...)`` (RE2/J 1.8)."""
    target_built_over_members: bool = False
    """The assignor sees a replaced static member's successor through an overlay, not a copy; it
    decides the size of a hash table, and so an order."""

    group_bounds_named: bool = True
    """A group setting out of bounds is refused by naming the bound, not by giving the range."""
    group_synonyms_name_broker_settings: bool = False
    """DescribeConfigs of a group shows which broker setting a default comes from."""
    log_dirs_can_be_cordoned: bool = False
    """Refusals of a replication factor mention cordoned log directories (KIP-1066)."""
    refused_settings_form: str = "Set({})"
    """How a list of settings that cannot be altered is written."""
    refused_request_form: str = "needs {} permission."
    """How a refused request to the controller is spoken of; takes the operation's name."""
    silent_broker_denial: bool = False
    """Altering a broker's settings without the right is refused without words."""
    acl_hosts_required: bool = False
    """An access control list must not have an empty host."""
    small_segments_allowed: bool = True
    """``segment.bytes`` may be below one megabyte."""
    list_values_distinct: bool = False
    """What a list of a topic or group names twice counts once, and it may name nothing empty."""
    duration_form: str = "PnDTnHnMn.nS."
    """How a refused ``share.auto.offset.reset`` describes a duration."""
    offset_commit_value_version: int = 3
    """The version of the value of an OffsetCommit record; 4 has room for a topic id."""
    named_commits_store_topic_id: bool = False
    """A commit that names its topic stores the id that the topic has then."""
    share_groups: bool = False
    """The broker knows share groups, though none is coordinated here (KIP-932)."""
    quotas_must_be_finite: bool = False
    """AlterClientQuotas refuses infinity and not-a-number."""
    foreign_logger_named: bool = False
    """Altering another broker's loggers is refused with that broker's id, not with one's own."""
    emptied_groups_stay_listed: bool = False
    """ListConfigResources names a group whose settings were all taken away again."""
    transactions_begin_with_sequence_zero: bool = False
    """A producer of transaction version 2 that a partition does not know must begin at 0."""
    older_epoch_fenced_unasked: bool = False
    """A partition that heard of a newer producer epoch does not ask the transaction coordinator."""
    fencing_may_change_producer_id: bool = False
    """Aborting an open transaction behind its producer's back gives the transactional id another
    producer id when that used up the epochs; before, InitProducerId does."""
    init_forgets_last_start: bool = False
    """A producer that starts anew has no transaction start time, not that of its last one."""
    transaction_sets: TransactionSets = TransactionSets.SCALA_IMMUTABLE
    """Which sets have the partitions of a transaction; the log has them in that order."""
    neighbour_producer_ids_logged: bool = False
    """The log of transactions has a transactional id's producer ids before and after, too."""
    heartbeats_checked_by_any: bool = False
    """A ConsumerGroupHeartbeat that makes no sense is refused as such by every broker, not by the
    group's coordinator alone."""
    deleted_groups_hashed: bool = False
    """DeleteGroups answers in the order of a Java set of the group ids, not in the request's."""
    produce_knows_topic_ids: bool = False
    """Produce keeps partitions in maps by topic id and name, not by name alone: their order."""
    missing_topics_hashed: bool = False
    """Metadata tells of topics that do not exist in the order of a Java set."""
    empty_offset_fetch_unanswered: bool = True
    """OffsetFetch that names no group is never answered."""
    partition_growth_limited: bool = False
    """CreatePartitions refuses more than 10,000 at once politely, not by failing."""


def _feature_ranges(metadata: int) -> dict[str, VersionRange]:
    return {
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, metadata),
        "transaction.version": (0, 2),
        "eligible.leader.replicas.version": (0, 1),
    }


_V4_0: Final = Profile(
    name="4.0",
    release="4.0.2",
    api_versions=_APIS_4_0,
    refused_request_form="is not authorized.",
    supported_features=_feature_ranges(25),
    finalized_features={"group.version": 1, "transaction.version": 2, "metadata.version": 25},
    finalized_features_epoch=11,
)
_V4_1: Final = replace(
    _V4_0,
    name="4.1",
    release="4.1.2",
    api_versions=_APIS_4_1,
    refused_request_form="needs {} permission.",
    supported_features=_feature_ranges(27),
    finalized_features={
        **_V4_0.finalized_features,
        "eligible.leader.replicas.version": 1,
        "metadata.version": 27,
    },
    finalized_features_epoch=14,
    deleted_groups_hashed=True,
    produce_knows_topic_ids=True,
    empty_offset_fetch_unanswered=False,
    heartbeats_checked_by_any=True,
    metadata_hash=True,
    rack_change_bumps=True,
    regex_refresh=True,
    regex_removal_bumps=True,
    regex_named_groups=True,
    transactions_begin_with_sequence_zero=True,
    older_epoch_fenced_unasked=True,
    transaction_sets=TransactionSets.SCALA_MUTABLE,
    init_forgets_last_start=True,
    offset_commit_value_version=4,
    small_segments_allowed=False,
    share_groups=True,
    duration_form="PnDTnHnMn.nS",
    foreign_logger_named=True,
    emptied_groups_stay_listed=True,
)
_V4_2: Final = replace(
    _V4_1,
    name="4.2",
    release="4.2.1",
    api_versions=_APIS_4_2,
    supported_features=_feature_ranges(29),
    finalized_features={
        **_V4_1.finalized_features,
        "metadata.version": 29,
    },
    finalized_features_epoch=15,
    rejoin_at_zero_accepted=True,
    unrevoked_ack_advances_epoch=False,
    target_filtered_by_subscription=True,
    offsets_by_topic_id=True,
    list_values_distinct=True,
)
_V4_3: Final = replace(
    _V4_2,
    name="4.3",
    release="4.3.1",
    api_versions=_APIS_4_3,
    supported_features=_feature_ranges(30),
    finalized_features={**_V4_2.finalized_features, "metadata.version": 30},
    finalized_features_epoch=16,
    emptied_groups_stay_listed=False,
    first_group_epoch=1,
    join_without_topics_bumps=False,
    has_assignment_interval=True,
    commits_use_assignment_epoch=True,
    describe_shows_pending_revocation=True,
    classic_rejoin_by_assignment_epoch=True,
    fencing_may_change_producer_id=True,
    neighbour_producer_ids_logged=True,
    transaction_sets=TransactionSets.JAVA,
    classic_join_refused_by_policy=True,
    named_commits_store_topic_id=True,
    log_dirs_can_be_cordoned=True,
    group_synonyms_name_broker_settings=True,
    refused_settings_form="[{}]",
)
_V4_4: Final = replace(
    _V4_3,
    name="4.4",
    release="4.4.0",
    api_versions=_APIS_4_4,
    silent_broker_denial=True,
    acl_hosts_required=True,
    supported_features=_feature_ranges(33),
    finalized_features={
        **_V4_3.finalized_features,
        "metadata.version": 33,
    },
    assignor_change_bumps=True,
    static_replacement_ignores_max_size=True,  # not yet in 4.3.1
    empty_group_advances_target=True,
    malformed_subscription_error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    target_built_over_members=True,
    group_bounds_named=False,
    nonsense_stalls_join=False,
    quotas_must_be_finite=True,
    partition_growth_limited=True,
    missing_topics_hashed=True,
)

PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile for profile in (_V4_0, _V4_1, _V4_2, _V4_3, _V4_4)
}
"""By name."""

DEFAULT_PROFILE: Final = "4.4"
"""The newest profile that the test-suite has compared with a real broker of its release."""


def profile_named(name: str) -> Profile:
    """The profile of a release line, e.g. ``"4.3"``. Raises ``ConfigError`` that lists them all."""
    profile = PROFILES.get(name)
    if profile is None:
        raise ConfigError(f"no profile {name!r}; there are {', '.join(PROFILES)}")
    return profile
