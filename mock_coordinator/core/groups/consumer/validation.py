"""Validation of a heartbeat, before its group is looked up.

The rules and their order are those of Kafka's group coordinator; the first violation decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kip848_client.core.types import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.refused import Refused

__all__ = ["is_blank", "validate_heartbeat"]

_JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))  # what Java's String.trim removes


def is_blank(text: str) -> bool:
    """Whether nothing is left after trimming as Java does."""
    return not text.strip(_JAVA_BLANKS)


def _require_not_blank(text: str | None, message: str) -> None:
    if text is not None and is_blank(text):
        raise Refused(ErrorCode.INVALID_REQUEST, message)


def validate_heartbeat(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]
) -> None:
    """Raise ``Refused`` for the first rule that the request breaks: INVALID_REQUEST or
    UNSUPPORTED_ASSIGNOR.

    ``assignors`` are the names of the server-side assignors that the broker has.
    """
    epoch = request.member_epoch
    if version >= 1 or epoch > 0 or epoch == LEAVE_EPOCH:
        _require_not_blank(request.member_id, "MemberId can't be empty.")
    _require_not_blank(request.group_id, "GroupId can't be empty.")
    _require_not_blank(request.instance_id, "InstanceId can't be empty.")
    _require_not_blank(request.rack_id, "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        _validate_join(request)
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise Refused(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise Refused(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _validate_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise Refused(
            ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request."
        )
    if request.topic_partitions is None or request.topic_partitions:
        raise Refused(ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        )
