"""The settings of a consumer, checked: names and defaults are Kafka's and aiokafka's.

``ConsumerConfig.of(...)`` is the way in. Classic-only settings are accepted, because configurations
outlive clients, and reported once in one warning that names what has taken their place.
``strict=True`` refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from kip848_client.config._assignors import checked_assignors
from kip848_client.config._client import Int32, Int64, WireText
from kip848_client.config._metrics import MeasuredConfig, MeasuredSettings
from kip848_client.core.client_assignors import ClientAssignor
from kip848_client.core.short import short

__all__ = ["CLASSIC_ONLY", "ConsumerConfig", "ConsumerSettings", "parse_duration_ms"]

_NUMBER: Final = r"(\d+(?:\.\d+)?)"
_INT64_END: Final = 2**63
_DURATION: Final = re.compile(
    f"P(?:{_NUMBER}D)?(?:T(?=.)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)

_COMMIT_AS_OFTEN_AS_POSSIBLE_MS: Final = 10

_BROKER_SIDE: Final = "set on the broker or the group"
CLASSIC_ONLY: Final[Mapping[str, str]] = {
    "session_timeout_ms": f"{_BROKER_SIDE}: group.consumer.session.timeout.ms, "
    "or consumer.session.timeout.ms of the group",
    "heartbeat_interval_ms": f"{_BROKER_SIDE}: group.consumer.heartbeat.interval.ms, "
    "or consumer.heartbeat.interval.ms of the group",
    "partition_assignment_strategy": "assignors run on the broker: group_remote_assignor, "
    "'range' for range, 'uniform' for round-robin and sticky",
    "exclude_internal_topics": "a pattern is matched by the broker",
    "api_version": "versions are negotiated with each broker",
    "consumer_timeout_ms": "the fetcher wakes when there is something to do",
    "loop": "the running event loop is used",
}
"""Settings of the classic protocol (and of aiokafka's insides) without a meaning here, and what to
use instead."""


class ConsumerSettings(MeasuredSettings, total=False):
    """The keyword arguments of ``Consumer``, for type checkers.

    ``ConsumerConfig`` explains each.
    """

    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    group_local_assignors: Sequence[ClientAssignor]
    client_rack: str | None
    auto_offset_reset: str
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    max_poll_interval_ms: int
    extra_heartbeats: bool
    max_poll_records: int | None
    rebalance_timeout_ms: int | None
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    fetch_buffer_bytes: int
    max_decompressed_batch_bytes: int
    check_crcs: bool
    isolation_level: str
    default_api_timeout_ms: int
    rebalance_callback_timeout_ms: int | None
    # the classic protocol's, see CLASSIC_ONLY
    session_timeout_ms: int
    heartbeat_interval_ms: int
    partition_assignment_strategy: object
    exclude_internal_topics: bool
    api_version: str | None
    consumer_timeout_ms: int
    loop: object


class ConsumerConfig(MeasuredConfig):
    """All settings of a consumer. Frozen. Times in milliseconds, sizes in bytes."""

    without_meaning = ("under KIP-848", CLASSIC_ONLY)

    group_id: WireText | None = None
    """The group; ``None``: without a group, only with ``assign``."""
    group_instance_id: WireText | None = None
    """Makes the member static (KIP-345): it can leave and come back without a rebalance."""
    group_protocol: str = "consumer"
    """Kafka's ``group.protocol``. Only ``consumer`` (KIP-848) is supported."""
    group_remote_assignor: WireText | None = None
    """The server-side assignor, ``uniform`` or ``range``; ``None``: the broker chooses."""
    group_local_assignors: tuple[Any, ...] = ()
    """Assignors that run in a member, the preferred one first; not together with
    ``group_remote_assignor``. No Kafka release has them (docs/reference/draft-protocols.md)."""
    client_rack: WireText | None = None
    """The rack of this consumer, to fetch from the nearest replica (KIP-392)."""

    auto_offset_reset: str = "latest"
    """Where to start without a committed offset: ``earliest``, ``latest``, ``none`` (an error), or
    ``by_duration:PT1H`` (records of the last hour, KIP-1106)."""
    enable_auto_commit: bool = True
    """Whether finished records are committed periodically and before partitions are revoked."""
    auto_commit_interval_ms: Int64 = Field(5_000, ge=0)
    """The interval of automatic commits. 0, as in Kafka: as often as possible."""

    max_poll_interval_ms: Int32 = Field(300_000, ge=1)
    """The maximum time between two calls for records; after it the member leaves the group. Also
    the rebalance timeout: how long the group waits for this member to give up partitions.
    """
    extra_heartbeats: bool = True
    """Whether the member sends a few heartbeats before the coordinator's interval while its
    assignment changes; without them rebalances take longer
    (docs/explanation/extra-heartbeats.md).
    """
    max_poll_records: Int64 | None = Field(None, ge=1)
    """The maximum number of records that one ``getmany`` returns; ``None``: all available ones."""
    rebalance_timeout_ms: Int32 | None = Field(None, ge=1)
    """aiokafka's name for ``max_poll_interval_ms``; it has priority if both are set."""
    rebalance_callback_timeout_ms: Int64 | None = Field(None, ge=1)
    """The time after which a listener is cancelled; ``None``: ``max_poll_interval_ms``."""

    fetch_max_wait_ms: Int32 = Field(500, ge=0)
    """The maximum time that a broker waits for ``fetch_min_bytes``."""
    fetch_min_bytes: Int32 = Field(1, ge=0)
    """The minimum size of an answer; with less data the broker waits."""
    fetch_max_bytes: Int32 = Field(52_428_800, ge=1)
    """The maximum size of one answer. A larger first batch is still returned."""
    max_partition_fetch_bytes: Int32 = Field(1_048_576, ge=1)
    """The maximum size of one partition in an answer. A larger first batch is still returned."""
    fetch_buffer_bytes: Int64 = Field(67_108_864, ge=1)
    """The maximum size of records fetched ahead of the application, for all partitions together.
    Exceeded by at most one batch per broker. (Kafka's consumer has no such limit, librdkafka has
    ``queued.max.messages.kbytes``.)
    """
    max_decompressed_batch_bytes: Int64 = Field(134_217_728, ge=1_024)
    """The maximum size of one decompressed batch. For records beyond that, ``BatchUnreadable`` is
    raised with the offset after the batch. A consumer unpacks one batch at a time, large ones in a
    thread. (Kafka's consumer has no such limit: a batch of 1 MB can take 30 GB.)
    """
    check_crcs: bool = True
    """Whether the checksums of batches are verified."""
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    """``read_committed``: records of a transaction are returned once it is committed, those of an
    aborted one never.
    """

    default_api_timeout_ms: Int64 = Field(60_000, ge=1)
    """How long calls like ``commit`` or ``committed`` retry."""

    @property
    def poll_interval_ms(self) -> int:
        """``max_poll_interval_ms``, or ``rebalance_timeout_ms`` where that is given."""
        return self.rebalance_timeout_ms or self.max_poll_interval_ms

    @property
    def commit_interval_ms(self) -> int | None:
        """How often to commit; ``None`` for never. "As often as possible" is a few ms."""
        if not self.enable_auto_commit:
            return None
        return self.auto_commit_interval_ms or _COMMIT_AS_OFTEN_AS_POSSIBLE_MS

    @property
    def callback_timeout_ms(self) -> int:
        """How long a listener may take."""
        return self.rebalance_callback_timeout_ms or self.poll_interval_ms

    @field_validator("group_id", "group_instance_id")
    @classmethod
    def _refuse_blank(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("must not be empty or blank; use None for none")
        return value

    @field_validator("group_protocol", mode="before")
    @classmethod
    def _only_kip848(cls, value: object) -> object:
        if isinstance(value, str) and value.lower() == "consumer":
            return "consumer"
        raise ValueError(
            "this client speaks 'consumer' (KIP-848) only; for the classic protocol use "
            "aiokafka.AIOKafkaConsumer"
        )

    @field_validator("client_rack", "group_remote_assignor")
    @classmethod
    def _empty_is_none(cls, value: str | None) -> str | None:
        return value or None

    @field_validator("group_local_assignors", mode="before")
    @classmethod
    def _are_assignors(cls, value: object) -> object:
        return checked_assignors(value)

    @model_validator(mode="after")
    def _one_place_to_assign(self) -> Self:
        if self.group_local_assignors and self.group_remote_assignor is not None:
            raise ValueError(
                "group_local_assignors and group_remote_assignor cannot be used together: either a "
                "member assigns or the broker"
            )
        if self.group_local_assignors and self.group_id is None:
            raise ValueError("group_local_assignors needs a group_id")
        return self

    @field_validator("auto_offset_reset")
    @classmethod
    def _known_reset(cls, value: str) -> str:
        policy = value if value.startswith("by_duration:") else value.lower()
        if policy.startswith("by_duration:"):
            parse_duration_ms(policy.removeprefix("by_duration:"))
        elif policy not in ("earliest", "latest", "none"):
            raise ValueError("must be earliest, latest, none or by_duration:<ISO 8601 duration>")
        return policy


def parse_duration_ms(text: str) -> int:
    """Read an ISO 8601 duration of days, hours, minutes and seconds.

    Args:
        text: Such as ``P1DT2H30M5.5S``, in upper or lower case.

    Returns:
        Milliseconds, rounded.

    Raises:
        ValueError: The text has another form, or is negative or longer than 2**63 ms.
    """
    found = _DURATION.fullmatch(text.upper())
    if found is None or not any(found.groups()):
        raise ValueError(f"{short(text)} is not an ISO 8601 duration such as PT1H30M")
    parts = zip(found.groups(), (86_400_000, 3_600_000, 60_000, 1_000), strict=True)
    duration_ms = sum(float(number) * scale for number, scale in parts if number)
    if duration_ms >= _INT64_END:
        raise ValueError(f"{short(text)} is longer than 2**63 milliseconds")
    return round(duration_ms)
