"""What Kafka 4.1 changed, as 4.1.2 does it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mock_coordinator.core.profile import Profile, TransactionSets
from mock_coordinator.core.profiles import kafka_4_0
from mock_coordinator.core.profiles.features import feature_ranges

__all__ = ["PROFILE"]

PROFILE: Final[Profile] = replace(
    kafka_4_0.PROFILE,
    release="4.1.2",
    api_versions={
        **kafka_4_0.PROFILE.api_versions,
        "Produce": (0, 13),
        "Fetch": (4, 18),
        "AlterPartitionReassignments": (0, 1),
        "ListTransactions": (0, 2),
        "ListConfigResources": (0, 1),
    },
    refused_request_form="needs {} permission.",
    supported_features=feature_ranges(27),
    finalized_features={
        **kafka_4_0.PROFILE.finalized_features,
        "eligible.leader.replicas.version": 1,
        "metadata.version": 27,
    },
    finalized_features_epoch=14,
    deleted_groups_hashed=True,
    produce_knows_topic_ids=True,
    empty_offset_fetch_unanswered=False,
    heartbeats_checked_by_any=True,
    metadata_hash=True,
    regex_refresh=True,
    regex_removal_bumps=True,
    regex_named_groups=True,
    transactions_begin_with_sequence_zero=True,
    older_epoch_fenced_unasked=True,
    transaction_sets=TransactionSets.SCALA_MUTABLE,
    init_forgets_last_start=True,
    offset_commit_value_version=4,
    share_groups=True,
    duration_form="PnDTnHnMn.nS",
    foreign_logger_named=True,
    emptied_groups_stay_listed=True,
)
