"""What Kafka 4.4 changed, as 4.4.0 does it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.profiles import kafka_4_3
from mock_coordinator.core.profiles.features import feature_ranges

__all__ = ["PROFILE"]

PROFILE: Final[Profile] = replace(
    kafka_4_3.PROFILE,
    release="4.4.0",
    api_versions={
        **kafka_4_3.PROFILE.api_versions,
        "ApiVersions": (0, 5),
        "TxnOffsetCommit": (0, 6),
        "DeleteGroups": (0, 3),
    },
    supported_features=feature_ranges(33),
    finalized_features={
        **kafka_4_3.PROFILE.finalized_features,
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
    silent_broker_denial=True,
    acl_hosts_required=True,
)
