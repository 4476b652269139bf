"""The settings of a producer, checked: names are aiokafka's, meanings and defaults Kafka's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field, field_validator, model_validator

from kip848_client.config._client import Int32, Int64, WireText
from kip848_client.config._metrics import MeasuredConfig, MeasuredSettings

__all__ = ["AIOKAFKA_ONLY", "ProducerConfig", "ProducerSettings"]

_ALL: Final = -1
_IN_ORDER_MAX: Final = 5
"""The most requests in flight with idempotence: brokers remember that many batches."""

AIOKAFKA_ONLY: Final[Mapping[str, str]] = {
    "api_version": "versions are negotiated with each broker",
    "loop": "the running event loop is used",
}
"""Settings of aiokafka without a meaning here, and what to use instead."""


class ProducerSettings(MeasuredSettings, total=False):
    """The keyword arguments of ``Producer``, for type checkers.

    ``ProducerConfig`` explains each.
    """

    acks: int | str
    enable_idempotence: bool | None
    transactional_id: str | None
    transaction_timeout_ms: int
    linger_ms: int
    max_batch_size: int
    max_request_size: int
    buffer_memory: int
    compression_type: str | None
    delivery_timeout_ms: int | None
    max_in_flight_requests_per_connection: int
    max_block_ms: int
    metadata_max_idle_ms: int
    # aiokafka's, see AIOKAFKA_ONLY
    api_version: str | None
    loop: object


class ProducerConfig(MeasuredConfig):
    """All settings of a producer. Frozen. Times in milliseconds, sizes in bytes."""

    without_meaning = ("here", AIOKAFKA_ONLY)

    acks: int = _ALL
    """Which replicas must have the records before a broker acknowledges them: ``"all"`` (or -1)
    in-sync replicas, only the leader (1), or none (0), in which case offsets are unknown.
    """
    enable_idempotence: bool | None = None
    """Each record is written once and in order, even after retries. ``None``, as in Kafka: if
    ``acks`` and ``max_in_flight_requests_per_connection`` allow it.
    """
    transactional_id: WireText | None = None
    """Enables transactions. Only one producer has an id: another one with the same id takes it
    over. It should stay the same after a restart of the program.
    """
    transaction_timeout_ms: Int32 = Field(60_000, ge=1)
    """The coordinator aborts a transaction that is open for longer. Brokers refuse more than their
    ``transaction.max.timeout.ms``.
    """

    linger_ms: Int64 = Field(5, ge=0)
    """How long a batch waits for more records."""
    max_batch_size: Int32 = Field(16_384, ge=1)
    """The maximum size of one partition's batch, before compression."""
    max_request_size: Int32 = Field(1_048_576, ge=1)
    """The maximum size of a request and of one record."""
    buffer_memory: Int64 = Field(33_554_432, ge=1)
    """The memory for waiting records and records in flight; while it is full, ``send`` waits."""
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None = None
    """Of batches."""
    max_in_flight_requests_per_connection: Int32 = Field(5, ge=1)
    """The maximum number of unanswered requests to one broker; with idempotence at most 5."""

    delivery_timeout_ms: Int32 | None = Field(None, ge=1)
    """The maximum time from ``send`` to success or failure; ``None``: two minutes, or ``linger_ms``
    and ``request_timeout_ms`` together if that is more.
    """
    max_block_ms: Int64 = Field(60_000, ge=0)
    """How long ``send`` waits for metadata or free memory, and other calls wait for brokers."""
    metadata_max_idle_ms: Int64 = Field(300_000, ge=5_000)
    """Metadata of a topic is dropped after this time without writes to it."""

    @property
    def idempotent(self) -> bool:
        """Whether records are written once and in order."""
        if self.enable_idempotence is not None:
            return self.enable_idempotence
        fits = self.max_in_flight_requests_per_connection <= _IN_ORDER_MAX
        return self.acks == _ALL and fits

    @property
    def deliver_within_ms(self) -> int:
        """``delivery_timeout_ms``, or what it is where that is not given."""
        if self.delivery_timeout_ms is not None:
            return self.delivery_timeout_ms
        return max(120_000, self.linger_ms + self.request_timeout_ms)

    @field_validator("acks", mode="before")
    @classmethod
    def _known_acks(cls, value: object) -> int:
        known = {"all": _ALL, "-1": _ALL, "0": 0, "1": 1}
        if not isinstance(value, bool) and str(value).lower() in known:
            return known[str(value).lower()]
        raise ValueError("must be 'all' (or -1), 1 or 0")

    @field_validator("transactional_id")
    @classmethod
    def _refuse_blank(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("must not be empty or blank; use None for none")
        return value

    @model_validator(mode="after")
    def _idempotence_fits(self) -> ProducerConfig:
        wanted = self.enable_idempotence or self.transactional_id is not None
        if self.transactional_id is not None and self.enable_idempotence is False:
            raise ValueError("a transactional_id needs idempotence: leave enable_idempotence out")
        if wanted and self.acks != _ALL:
            raise ValueError(
                f"idempotence and transactions need acks='all', not {self.acks}: a leader that "
                "does not wait for its replicas may forget what it took"
            )
        if wanted and self.max_in_flight_requests_per_connection > _IN_ORDER_MAX:
            raise ValueError(
                "idempotence and transactions need max_in_flight_requests_per_connection of "
                f"{_IN_ORDER_MAX} at most"
            )
        return self

    @model_validator(mode="after")
    def _delivery_fits(self) -> ProducerConfig:
        least_ms = self.linger_ms + self.request_timeout_ms
        given_ms = self.delivery_timeout_ms
        if given_ms is not None and given_ms < least_ms:
            raise ValueError(
                f"delivery_timeout_ms {given_ms} is less than linger_ms and request_timeout_ms "
                f"together ({least_ms}): no record could be tried once"
            )
        return self
