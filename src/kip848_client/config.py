"""The settings of a consumer, checked: names and defaults are Kafka's and aiokafka's.

``ConsumerConfig.of(...)`` is the way in: it sorts out the settings that only the classic protocol
had, names near ones for a name that does not exist, and raises ``ConfigError`` that says which
setting, which value and what is accepted.

Classic-only settings are accepted, because configurations outlive clients, and reported once in
one warning that names what has taken their place. ``strict=True`` refuses them.
"""

from __future__ import annotations

import difflib
import importlib.util
import logging
import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypedDict

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from kip848_client._bootstrap import bootstrap_addresses
from kip848_client._shown import shown
from kip848_client.errors import ConfigError

__all__ = ["CLASSIC_ONLY", "ConsumerConfig", "ConsumerSettings", "parse_duration_ms"]

_log = logging.getLogger("kip848_client")

_NUMBER: Final = r"(\d+(?:\.\d+)?)"
_DURATION: Final = re.compile(
    f"P(?:{_NUMBER}D)?(?:T(?=.)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_STRING_BYTES_MAX: Final = 2**15 - 1
_COMMIT_AS_OFTEN_AS_POSSIBLE_MS: Final = 10

Int32 = Annotated[int, Field(le=_INT32_MAX)]
"""A number that requests carry in 32 bits: 2,147,483,647 ms are 24 days."""
Int64 = Annotated[int, Field(le=_INT64_MAX)]
"""A number that stays here; the largest is Kafka's."""


def _checked_for_the_wire(text: str) -> str:
    """Kafka's strings are UTF-8 of at most 32767 bytes."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as err:
        raise ValueError(f"cannot be written as UTF-8: {err.reason}") from err
    if size > _STRING_BYTES_MAX:
        raise ValueError(f"has {size} bytes; Kafka's strings have {_STRING_BYTES_MAX} at most")
    return text


WireText = Annotated[str, AfterValidator(_checked_for_the_wire)]
"""A text that requests carry."""

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


class ConsumerSettings(TypedDict, total=False):
    """The keyword arguments of ``Consumer``, for type checkers; see ``ConsumerConfig``."""

    bootstrap_servers: str | Sequence[str]
    client_id: str
    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
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
    check_crcs: bool
    isolation_level: str
    request_timeout_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: int
    connections_max_idle_ms: int | None
    allow_auto_create_topics: bool
    rebalance_callback_timeout_ms: int | None
    security_protocol: str
    ssl_context: ssl.SSLContext | None
    sasl_mechanism: str
    sasl_plain_username: str | None
    sasl_plain_password: str | None
    sasl_kerberos_service_name: str
    sasl_kerberos_domain_name: str | None
    sasl_oauth_token_provider: object | None
    strict: bool
    # the classic protocol's, see CLASSIC_ONLY
    session_timeout_ms: int
    heartbeat_interval_ms: int
    partition_assignment_strategy: object
    exclude_internal_topics: bool
    api_version: str | None
    consumer_timeout_ms: int
    loop: object


class ConsumerConfig(BaseModel):
    """All settings of a consumer. Frozen. Times in milliseconds, sizes in bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    bootstrap_servers: str | tuple[str, ...] = "localhost"
    """``host[:port]``, several in a list or separated by commas; port 9092 when left out."""
    client_id: WireText = "kip848-client"
    """Names this program in the brokers' logs and quotas; shown by group describe."""
    group_id: WireText | None = None
    """The group; ``None`` reads without one, by ``assign`` only."""
    group_instance_id: WireText | None = None
    """Makes the member static (KIP-345): it may go and come back without a rebalance."""
    group_protocol: str = "consumer"
    """Kafka's ``group.protocol``. ``consumer`` (KIP-848) is the only one here."""
    group_remote_assignor: WireText | None = None
    """``uniform`` or ``range``; ``None`` leaves the choice to the broker."""
    client_rack: WireText | None = None
    """Where this consumer is: fetches go to replicas nearby (KIP-392)."""

    auto_offset_reset: str = "latest"
    """Where to start without a committed offset: ``earliest``, ``latest``, ``none`` (an error), or
    ``by_duration:PT1H`` (records of the last hour, KIP-1106)."""
    enable_auto_commit: bool = True
    auto_commit_interval_ms: Int64 = Field(5_000, ge=0)
    """0, as in Kafka: as often as possible."""

    max_poll_interval_ms: Int32 = Field(300_000, ge=1)
    """Asking for records less often than this means to leave the group. Also the rebalance
    timeout: how long the group waits for this member to give partitions up."""
    extra_heartbeats: bool = True
    """Whether the member asks sooner than the coordinator's interval, a few times, while its
    assignment changes; rebalances take longer without
    (docs/explanation/extra-heartbeats.md)."""
    max_poll_records: Int64 | None = Field(None, ge=1)
    """The most records that one ``getmany`` returns; ``None`` for all that are there."""
    rebalance_timeout_ms: Int32 | None = Field(None, ge=1)
    """aiokafka's name for what is ``max_poll_interval_ms`` here; it wins when both are given."""
    rebalance_callback_timeout_ms: Int64 | None = Field(None, ge=1)
    """How long a listener may take before it is cancelled; ``None``: ``max_poll_interval_ms``."""

    fetch_max_wait_ms: Int32 = Field(500, ge=0)
    fetch_min_bytes: Int32 = Field(1, ge=0)
    fetch_max_bytes: Int32 = Field(52_428_800, ge=1)
    max_partition_fetch_bytes: Int32 = Field(1_048_576, ge=1)
    fetch_buffer_bytes: Int64 = Field(67_108_864, ge=1)
    """How much may be fetched ahead of the application, of all partitions together. Exceeded by at
    most one batch a broker. (Kafka's consumer has no such limit, librdkafka has
    ``queued.max.messages.kbytes``.)"""
    check_crcs: bool = True
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"

    request_timeout_ms: Int32 = Field(30_000, ge=1)
    default_api_timeout_ms: Int64 = Field(60_000, ge=1)
    """How long calls like ``commit`` or ``committed`` go on trying."""
    retry_backoff_ms: Int64 = Field(100, ge=1)
    retry_backoff_max_ms: Int64 = Field(1_000, ge=1)
    metadata_max_age_ms: Int64 = Field(300_000, ge=1)
    metadata_recovery_strategy: Literal["none", "rebootstrap"] = "rebootstrap"
    """What to do when no broker that is known is of any use: ``rebootstrap`` closes all connections
    and begins anew from ``bootstrap_servers``, whose names are resolved anew (KIP-899)."""
    metadata_recovery_rebootstrap_trigger_ms: Int64 = Field(300_000, ge=0)
    """For how long no broker may have given usable metadata before that (KIP-1102)."""
    connections_max_idle_ms: Int64 | None = Field(540_000, ge=1)
    allow_auto_create_topics: bool = True
    """Whether subscribing to a topic that does not exist may create it (if the broker agrees)."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    ssl_context: ssl.SSLContext | None = None
    sasl_mechanism: Literal["PLAIN", "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = (
        "PLAIN"
    )
    sasl_plain_username: WireText | None = None
    sasl_plain_password: WireText | None = Field(None, repr=False)
    sasl_kerberos_service_name: str = "kafka"
    sasl_kerberos_domain_name: str | None = None
    sasl_oauth_token_provider: Any = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> ConsumerConfig:
        """Check ``settings``. Raises ``ConfigError``."""
        given = dict(settings)
        strict = given.pop("strict", False)
        if not isinstance(strict, bool):
            raise ConfigError(f"strict = {shown(strict)}: must be True or False")
        classic = {name: given.pop(name) for name in list(given) if name in CLASSIC_ONLY}
        _report_classic({name for name, value in classic.items() if value is not None}, strict)
        for name in given:
            if name not in cls.model_fields:
                raise ConfigError(_unknown(name))
        try:
            return cls(**given)
        except ValidationError as err:
            raise ConfigError(_explain(err)) from err

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

    @property
    def security(self) -> dict[str, Any]:
        """What aiokafka's connections take for TLS and SASL; without SASL nothing about it."""
        kinds = ("ssl_", "sasl_") if self.security_protocol.startswith("SASL") else ("ssl_",)
        names = [name for name in type(self).model_fields if name.startswith(kinds)]
        return {name: getattr(self, name) for name in ("security_protocol", *names)}

    @field_validator("bootstrap_servers", mode="before")
    @classmethod
    def _take_any_sequence(cls, value: Any) -> Any:
        bootstrap_addresses(value)
        return value if isinstance(value, str) else tuple(value)

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

    @field_validator("metadata_recovery_strategy", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("client_rack", "group_remote_assignor")
    @classmethod
    def _empty_is_none(cls, value: str | None) -> str | None:
        return value or None

    @field_validator("auto_offset_reset")
    @classmethod
    def _known_reset(cls, value: str) -> str:
        policy = value if value.startswith("by_duration:") else value.lower()
        if policy.startswith("by_duration:"):
            parse_duration_ms(policy.removeprefix("by_duration:"))
        elif policy not in ("earliest", "latest", "none"):
            raise ValueError("must be earliest, latest, none or by_duration:<ISO 8601 duration>")
        return policy

    @model_validator(mode="after")
    def _tls_fits(self) -> ConsumerConfig:
        protocol = self.security_protocol
        if protocol in ("SSL", "SASL_SSL") and self.ssl_context is None:
            raise ValueError(f"security_protocol {protocol} needs an ssl_context")
        if protocol in ("PLAINTEXT", "SASL_PLAINTEXT") and self.ssl_context is not None:
            tls = "SSL" if protocol == "PLAINTEXT" else "SASL_SSL"
            raise ValueError(
                f"an ssl_context is given, but security_protocol {protocol} connects in the clear; "
                f"set security_protocol to {tls}, or leave ssl_context out"
            )
        return self

    @model_validator(mode="after")
    def _credentials_fit(self) -> ConsumerConfig:
        if not self.security_protocol.startswith("SASL"):
            return self
        mechanism = self.sasl_mechanism
        if mechanism == "OAUTHBEARER":
            if not callable(getattr(self.sasl_oauth_token_provider, "token", None)):
                raise ValueError(
                    "OAUTHBEARER needs sasl_oauth_token_provider: an object whose coroutine "
                    "token() returns the token"
                )
        elif mechanism == "GSSAPI":
            if importlib.util.find_spec("gssapi") is None:
                raise ValueError("GSSAPI needs the package gssapi, which is not installed")
        elif not self.sasl_plain_username or self.sasl_plain_password is None:
            raise ValueError(f"{mechanism} needs sasl_plain_username and sasl_plain_password")
        return self


def parse_duration_ms(text: str) -> int:
    """An ISO 8601 duration of days, hours, minutes and seconds (``P1DT2H30M5.5S``) in ms.

    Raises ``ValueError`` for anything else, negative ones included.
    """
    found = _DURATION.fullmatch(text.upper())
    if found is None or not any(found.groups()):
        raise ValueError(f"{text!r} is not an ISO 8601 duration such as PT1H30M")
    parts = zip(found.groups(), (86_400_000, 3_600_000, 60_000, 1_000), strict=True)
    return round(sum(float(number) * scale for number, scale in parts if number))


def _report_classic(names: set[str], strict: bool) -> None:
    if not names:
        return
    told = "; ".join(f"{name} ({CLASSIC_ONLY[name]})" for name in sorted(names))
    if strict:
        raise ConfigError(f"no meaning under KIP-848: {told}")
    _log.warning("settings without a meaning under KIP-848 are ignored: %s", told)


def _unknown(name: str) -> str:
    known = [*ConsumerConfig.model_fields, *CLASSIC_ONLY, "strict"]
    near = difflib.get_close_matches(name.replace(".", "_"), known, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"unknown setting {name!r}{hint}"


def _explain(error: ValidationError) -> str:
    parts: list[str] = []
    for each in error.errors(include_url=False):
        name = ".".join(str(step) for step in each["loc"][:1]) or "settings"
        said = "" if "password" in name or not each["loc"] else f" = {shown(each['input'])}"
        parts.append(f"{name}{said}: {each['msg'].removeprefix('Value error, ')}")
    return "; ".join(parts)
