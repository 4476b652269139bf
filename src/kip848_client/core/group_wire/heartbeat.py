"""A heartbeat between the member's terms and the wire's: pure translation, both ways.

The member core uses ``HeartbeatIntent`` and ``HeartbeatOutcome`` and knows no message; every driver
of it (the consumer, the simulation) translates through here, so that the simulation sends what the
consumer sends.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.member import (
    Assignment,
    AssignorNews,
    HeartbeatAccepted,
    HeartbeatIntent,
    HeartbeatOutcome,
    HeartbeatRefused,
    OfferedAssignor,
    is_chosen_by_error,
)
from kip848_client.core.types import GroupId, MemberId, TopicId
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestClientAssignor,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

__all__ = ["HEARTBEAT_VERSIONS", "heartbeat_outcome", "heartbeat_request"]

HEARTBEAT_VERSIONS: Final = (1, 1)
"""The lowest and highest version used. From version 1 on the member generates its own id (KIP-1082)
and may send a pattern."""


def heartbeat_request(group_id: GroupId, intent: HeartbeatIntent) -> ConsumerGroupHeartbeatRequest:
    """Build the ConsumerGroupHeartbeat request (v1) for ``intent``.

    "Unchanged" is null on the wire, -1 for the rebalance timeout (KIP-848, heartbeat request).
    """
    owned = intent.owned
    timeout = intent.rebalance_timeout_ms
    offer = intent.client_assignors
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=intent.member_id,
        member_epoch=intent.member_epoch,
        instance_id=intent.instance_id,
        rack_id=intent.rack_id,
        rebalance_timeout_ms=-1 if timeout is None else timeout,
        subscribed_topic_names=intent.subscribed_topic_names,
        subscribed_topic_regex=intent.subscribed_topic_regex,
        server_assignor=intent.server_assignor,
        topic_partitions=None
        if owned is None
        else tuple(
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in owned
        ),
        client_assignors=None if offer is None else tuple(map(_offered, offer)),
    )


def _offered(assignor: OfferedAssignor) -> ConsumerGroupHeartbeatRequestClientAssignor:
    return ConsumerGroupHeartbeatRequestClientAssignor(
        name=assignor.name,
        minimum_version=assignor.minimum_version,
        maximum_version=assignor.maximum_version,
        reason=assignor.reason,
        metadata_version=assignor.metadata_version,
        metadata_bytes=assignor.metadata,
    )


def heartbeat_outcome(
    response: ConsumerGroupHeartbeatResponse, *, offers_assignors: bool = False
) -> HeartbeatOutcome:
    """Translate a ConsumerGroupHeartbeat response; fields about assignors only for a member that
    offers some.

    Every field but code and message of an error response is ignored: brokers leave them at their
    defaults. COMPUTE_ASSIGNMENT is an exception (``is_chosen_by_error``). A null assignment means
    "no change", one without topics means "you own nothing".
    """
    code = response.error_code
    is_chosen = is_chosen_by_error(code, response.member_epoch)
    if code != 0 and not is_chosen:
        return HeartbeatRefused.of(code, response.error_message, api="ConsumerGroupHeartbeat")
    assignment: Assignment | None = None
    if response.assignment is not None:
        assignment = _rows(response.assignment.topic_partitions)
    return HeartbeatAccepted(
        member_id=None if response.member_id is None else MemberId(response.member_id),
        member_epoch=response.member_epoch,
        heartbeat_interval_ms=response.heartbeat_interval_ms,
        assignment=assignment,
        assignors=_news(response, is_chosen=is_chosen) if offers_assignors else None,
    )


def _rows(topics: tuple[ConsumerGroupHeartbeatResponseTopicPartitions, ...]) -> Assignment:
    return tuple((TopicId(topic.topic_id), topic.partitions) for topic in topics)


def _news(response: ConsumerGroupHeartbeatResponse, *, is_chosen: bool) -> AssignorNews:
    given = response.assignment or ConsumerGroupHeartbeatResponseAssignment()
    target = _rows(given.topic_partitions) + _rows(given.pending_topic_partitions)
    return AssignorNews(
        should_compute=is_chosen or response.should_compute_assignment,
        target=None if response.assignment is None else target,
        error=given.error,
        metadata_version=given.metadata_version,
        metadata=bytes(given.metadata_bytes),
    )
