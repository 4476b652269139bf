"""Broker settings that exist in several units: the finest one that is set takes precedence.

``log.retention.ms`` comes first, then ``log.retention.minutes``, then ``log.retention.hours``; the
default of a topic's ``retention.ms`` is the result in milliseconds. DescribeConfigs shows the
coarser ones among the synonyms of a finer one, but only if the finer one itself is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mock_coordinator.core.settings.broker_config import BrokerConfig

__all__ = ["coarser_names", "effective_text", "is_overshadowed"]

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000

_FAMILIES: Final[tuple[Mapping[str, int], ...]] = (
    {
        "log.retention.ms": 1,
        "log.retention.minutes": _MINUTE_MS,
        "log.retention.hours": _HOUR_MS,
    },
    {"log.roll.ms": 1, "log.roll.hours": _HOUR_MS},
    {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": _HOUR_MS},
    {"log.flush.interval.ms": 1, "log.flush.scheduler.interval.ms": 1},
)
"""Milliseconds in a unit, the finest setting first."""

_FAMILY_OF: Final = {name: family for family in _FAMILIES for name in family}


def coarser_names(name: str) -> tuple[str, ...]:
    """The settings used, in that order, if a broker setting is not given."""
    names = tuple(_FAMILY_OF.get(name, {}))
    return names[names.index(name) + 1 :] if names else ()


def effective_text(config: BrokerConfig, name: str) -> str | None:
    """The value of a broker setting as text, from a coarser setting if it is not given itself. A
    negative time stays -1: without a limit."""
    for member, unit_ms in _FAMILY_OF.get(name, {name: 1}).items():
        text = config.text(member)
        if text is None:
            continue
        if unit_ms == 1:
            return text
        count = int(text)
        return str(count * unit_ms) if count >= 0 else "-1"
    return None


def is_overshadowed(config: BrokerConfig, name: str) -> bool:
    """Whether a finer setting was altered at runtime: a broker then reads its settings again,
    without the coarser ones in its file."""
    names = tuple(_FAMILY_OF.get(name, {}))
    finer = names[: names.index(name)] if names else ()
    return any(
        config.dynamic_text(each) is not None or each in config.cluster_overrides for each in finer
    )
