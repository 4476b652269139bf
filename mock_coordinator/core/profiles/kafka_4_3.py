"""What Kafka 4.3 changed, as 4.3.1 does it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.profile import Profile, TransactionSets
from mock_coordinator.core.profiles import kafka_4_2
from mock_coordinator.core.profiles.features import feature_ranges

__all__ = ["PROFILE"]

PROFILE: Final[Profile] = replace(
    kafka_4_2.PROFILE,
    release="4.3.1",
    supported_features=feature_ranges(30),
    finalized_features={**kafka_4_2.PROFILE.finalized_features, "metadata.version": 30},
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
    # 4.3.1 is older than 4.2.2 and lacks these corrections of it.
    malformed_subscription_error=ErrorCode.UNKNOWN_SERVER_ERROR,
    nonsense_stalls_join=True,
    silent_broker_denial=False,
    named_commits_store_topic_id=True,
    log_dirs_can_be_cordoned=True,
    group_synonyms_name_broker_settings=True,
    refused_settings_form="[{}]",
    zero_ids_fail_sessions=False,
)
