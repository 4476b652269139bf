"""The Kafka release lines that a broker can emulate: one profile per line, one file per profile.

Each file has the changes from the previous line: version ranges and features as brokers of the
release answer ApiVersions when they are formatted with their newest metadata version, reduced to
what is served here; and the facts that ``Profile`` names. CONTRIBUTING.md lists what a new line
needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kip848_client.errors import ConfigError
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.profiles import kafka_4_0, kafka_4_1, kafka_4_2, kafka_4_3, kafka_4_4

__all__ = ["DEFAULT_PROFILE", "PROFILES", "profile_named"]

_LINES: Final = (kafka_4_0, kafka_4_1, kafka_4_2, kafka_4_3, kafka_4_4)

PROFILES: Final[Mapping[str, Profile]] = {line.PROFILE.name: line.PROFILE for line in _LINES}
"""By name, the oldest line first."""

DEFAULT_PROFILE: Final = "4.4"
"""The newest profile that the test-suite has compared with a real broker of its release."""


def profile_named(name: str) -> Profile:
    """The profile of a release line, e.g. ``"4.3"``. Raises ``ConfigError`` that lists them all."""
    profile = PROFILES.get(name)
    if profile is None:
        raise ConfigError(f"unknown profile {name!r}; expected one of {', '.join(PROFILES)}")
    return profile
