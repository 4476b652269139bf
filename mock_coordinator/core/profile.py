"""A Kafka release line as named facts.

A profile reproduces the newest patch release of its line, including its bugs. Each difference
between the lines is a field here, a version range in ``api_versions`` or a row of a settings table.
The profiles themselves are in ``core/profiles``, one file per line; docs/reference/behaviour.md
says where each fact is proven.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.release_line import ReleaseLine

__all__ = ["Profile", "TransactionSets", "VersionRange"]

VersionRange = tuple[int, int]
"""The lowest and the highest version."""


class TransactionSets(Enum):
    """Hash sets whose order can be seen in the log of transactions."""

    SCALA_IMMUTABLE = "scala immutable"
    SCALA_MUTABLE = "scala mutable"
    JAVA = "java"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One Kafka release line. The default of a field is what Kafka 4.0 does.

    ``api_versions`` maps Kafka's name of an API to the lowest and highest version served.
    ``supported_features`` and ``finalized_features`` map a feature's name to its range and to its
    level (KIP-584).
    """

    release: str
    """The Kafka release whose behaviour this is, e.g. ``"4.4.0"``."""
    line: ReleaseLine = field(init=False)
    """The line of the release."""
    name: str = field(init=False)
    """The line as text, e.g. ``"4.4"``: what a user asks for."""

    api_versions: Mapping[str, VersionRange]
    supported_features: Mapping[str, VersionRange]
    finalized_features: Mapping[str, int]
    finalized_features_epoch: int

    first_group_epoch: int = 0
    """Group and assignment epoch of a group that was just created."""
    join_without_topics_bumps: bool = True
    """A first join with no names, or a pattern that is not resolved yet, bumps the epoch."""
    has_assignment_interval: bool = False
    """``group.consumer.assignment.interval.ms`` exists (KIP-1263)."""
    rejoin_at_zero_accepted: bool = False
    """A member that exists may always rejoin with epoch 0."""
    unrevoked_ack_advances_epoch: bool = True
    """Acknowledging one revocation while more must be revoked moves the epoch by one."""
    target_filtered_by_subscription: bool = False
    """Reconciliation skips target partitions that the member no longer subscribes to."""
    commits_use_assignment_epoch: bool = False
    """An older epoch may commit partitions that were assigned before it (KIP-1251)."""
    static_replacement_ignores_max_size: bool = False
    """A static member may replace itself in a full group."""
    describe_shows_pending_revocation: bool = False
    """ConsumerGroupDescribe's assignment holds what is still being revoked."""
    metadata_hash: bool = False
    """Topic changes are noticed by a hash, not by a partition-metadata record (KIP-1101)."""
    regex_refresh: bool = False
    """Patterns are resolved again every ``group.consumer.regex.refresh.interval.ms``."""
    classic_rejoin_by_assignment_epoch: bool = False
    """A classic member must rejoin when behind the assignment epoch, not the group epoch."""
    assignor_change_bumps: bool = False
    """The group epoch moves when another server-side assignor wins the vote."""
    empty_group_advances_target: bool = False
    """The last member's leaving also moves the assignment epoch."""
    offsets_by_topic_id: bool = False
    """OffsetCommit and OffsetFetch v10."""
    classic_join_refused_by_policy: bool = False
    """A classic member may not join a consumer group when the migration policy is "disabled"."""
    nonsense_stalls_join: bool = True
    """A classic group whose member subscribes in bytes with impossible lengths stays in its join
    phase: the broker fails when it records the topics."""
    malformed_subscription_error: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    """Error code for an unreadable classic subscription in a consumer group."""
    regex_removal_bumps: bool = False
    """A member that stops using a regex, without another change, bumps the epoch."""
    regex_named_groups: bool = False
    """A regex may name a group ``(?<name>...)`` (RE2/J 1.8)."""
    target_built_over_members: bool = False
    """The assignor sees a replaced static member's successor through an overlay, not a copy; it
    decides the size of a hash table, and so an order. The target that the successor was handed is
    known, too, and not written again when it stays the same."""

    group_bounds_named: bool = True
    """A group setting out of bounds is refused by naming the bound, not by giving the range."""
    group_synonyms_name_broker_settings: bool = False
    """DescribeConfigs of a group shows which broker setting a default comes from."""
    log_dirs_can_be_cordoned: bool = False
    """Refusals of a replication factor mention cordoned log directories (KIP-1066)."""
    refused_settings_form: str = "Set({})"
    """How a list of settings that cannot be altered is written."""
    refused_request_form: str = "is not authorized."
    """How a refused request to the controller is spoken of; takes the operation's name."""
    silent_broker_denial: bool = False
    """Altering a broker's settings without the right is refused without words."""
    acl_hosts_required: bool = False
    """An access control list must not have an empty host."""
    list_values_distinct: bool = False
    """What a list of a topic or group names twice counts once, and it may name nothing empty."""
    duration_form: str = "PnDTnHnMn.nS."
    """How a refused ``share.auto.offset.reset`` describes a duration."""
    zero_ids_fail_sessions: bool = True
    """A fetch in a session fails that names a topic by the zero id, or forgets it. Later releases
    fail where two topics happen to meet in a hash table, which no profile does."""
    offset_commit_value_version: int = 3
    """The version of the value of an OffsetCommit record; 4 has a field for a topic id."""
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
    """A partition that knows a newer producer epoch does not ask the transaction coordinator."""
    fencing_may_change_producer_id: bool = False
    """Aborting an open transaction behind its producer's back gives the transactional id another
    producer id when that used up the epochs; before, InitProducerId does."""
    init_forgets_last_start: bool = False
    """A restarted producer has no transaction start time, not that of its last transaction."""
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
    """Metadata names topics that do not exist in the order of a Java set."""
    empty_offset_fetch_unanswered: bool = True
    """OffsetFetch that names no group is never answered."""
    partition_growth_limited: bool = False
    """CreatePartitions refuses more than 10,000 at once politely, not by failing."""

    def __post_init__(self) -> None:
        line = ReleaseLine.of(self.release)
        object.__setattr__(self, "line", line)
        object.__setattr__(self, "name", str(line))

    @property
    def transaction_version(self) -> int:
        """The version of transactions that clusters have: 2, or less after an upgrade."""
        return self.finalized_features["transaction.version"]

    def at_transaction_version(self, level: int) -> Profile:
        """The same of a cluster that was upgraded without its transactions."""
        return replace(
            self, finalized_features={**self.finalized_features, "transaction.version": level}
        )
