"""Which settings a group may have (resource type GROUP, KIP-848).

Checked in a broker's order: all names, then all values in the order of the table, then the limits
that the brokers' settings impose, then whether session timeouts are longer than heartbeat
intervals. Only the first error is returned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.settings.tables.group import GROUP_SETTINGS
from mock_coordinator.core.settings.topic_config import group_setting_of
from mock_coordinator.core.state.broker import Broker

__all__ = ["check_group_config"]

_SHARE_RESET: Final = "share.auto.offset.reset"
_DURATION: Final = re.compile(r"by_duration:[-+]?p(\d+d)?(t(\d+h)?(\d+m)?(\d+(\.\d+)?s)?)?")
_STANDBYS: Final = "streams.num.standby.replicas"
_MOST_STANDBYS: Final = "group.streams.max.standby.replicas"
_BOUNDED: Final = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    _STANDBYS,
    "streams.assignment.interval.ms",
)
"""Settings that brokers bound, in the order in which they are looked at."""


def check_group_config(broker: Broker, altered: Mapping[str, str]) -> None:
    """Raises ``Refused`` when a group may not have these settings of its own."""
    for key in altered:
        if group_setting_of(broker.profile, key) is None:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {key}")
    numbers: dict[str, int] = {}
    for key in GROUP_SETTINGS:
        setting = group_setting_of(broker.profile, key)
        if setting is None or key not in altered:
            continue
        try:
            value = setting.parse(altered[key])
        except ValueError as err:
            raise Refused(ErrorCode.INVALID_CONFIG, str(err)) from err
        if key == _SHARE_RESET:
            _check_share_reset(broker.profile, altered[key])
        if isinstance(value, int):
            numbers[key] = value
    for key in _BOUNDED:
        if key in numbers:
            _require_in_bounds(broker, key, numbers[key])
    for kind in ("consumer", "share", "streams"):
        _require_longer_session(broker, kind, numbers)


def _require_in_bounds(broker: Broker, key: str, value: int) -> None:
    """A group may only choose what the broker's administrator allows."""
    kind, _, what = key.partition(".")
    lowest, highest = (f"group.{kind}.{end}.{what}" for end in ("min", "max"))
    if key == _STANDBYS:
        lowest, highest = "", _MOST_STANDBYS
    low = broker.config.integer(lowest) if lowest else 0
    high = broker.config.integer(highest)
    if low <= value <= high:
        return
    if broker.profile.group_bounds_named:
        above = f"{key} must be greater than or equal to {lowest}"
        below = f"{key} must be less than or equal to {highest}"
    else:
        above = f"{key} must be in the range {low} to {high} inclusive."
        below = above if lowest else f"{key} must be less than or equal to {high}"
    raise Refused(ErrorCode.INVALID_CONFIG, above if value < low else below)


def _require_longer_session(broker: Broker, kind: str, numbers: Mapping[str, int]) -> None:
    names = (f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms")
    if any(group_setting_of(broker.profile, name) is None for name in names):
        return
    session_ms, heartbeat_ms = (
        numbers.get(name, broker.config.integer(f"group.{name}")) for name in names
    )
    if session_ms <= heartbeat_ms:
        text = f"{names[0]} must be greater than {names[1]}"
        raise Refused(ErrorCode.INVALID_CONFIG, text)


def _check_share_reset(profile: Profile, text: str) -> None:
    """Where a share group begins (KIP-932, KIP-1106)."""
    if text in ("earliest", "latest") or _DURATION.fullmatch(text.lower()):
        return
    raise Refused(
        ErrorCode.INVALID_CONFIG,
        f"Invalid value {text} for configuration {_SHARE_RESET}: Invalid value `{text}` for "
        f"configuration {_SHARE_RESET}. The value must be either 'earliest', 'latest' or of the "
        f"format 'by_duration:<{profile.duration_form}>'.",
    )
