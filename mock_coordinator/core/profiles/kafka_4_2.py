"""What Kafka 4.2 changed, as 4.2.2 does it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.profiles import kafka_4_1
from mock_coordinator.core.profiles.features import feature_ranges

__all__ = ["PROFILE"]

PROFILE: Final[Profile] = replace(
    kafka_4_1.PROFILE,
    release="4.2.2",
    api_versions={
        **kafka_4_1.PROFILE.api_versions,
        "ListOffsets": (1, 11),
        "OffsetCommit": (2, 10),
        "OffsetFetch": (1, 10),
        "WriteTxnMarkers": (1, 2),
    },
    supported_features=feature_ranges(29),
    finalized_features={
        **kafka_4_1.PROFILE.finalized_features,
        "metadata.version": 29,
    },
    finalized_features_epoch=15,
    rejoin_at_zero_accepted=True,
    unrevoked_ack_advances_epoch=False,
    target_filtered_by_subscription=True,
    offsets_by_topic_id=True,
    list_values_distinct=True,
    classic_join_refused_by_policy=True,
    malformed_subscription_error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    nonsense_stalls_join=False,
    silent_broker_denial=True,
)
