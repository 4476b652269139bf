"""Release lines are numbers, and a profile is what its line changed over the one before."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from mock_coordinator.core.profile import Profile
from mock_coordinator.core.profiles import DEFAULT_PROFILE, PROFILES
from mock_coordinator.core.release_line import ReleaseLine
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.settings.setting import read_table
from mock_coordinator.core.settings.topic_config import topic_setting_of

IMAGINARY = replace(PROFILES["4.4"], release="4.10.1")


def test_lines_are_compared_as_numbers() -> None:
    assert ReleaseLine.of("4.9") < ReleaseLine.of("4.10.2") < ReleaseLine.of("5.0")
    assert sorted(["4.9", "4.10"]) == ["4.10", "4.9"], "as texts they are in another order"


def test_the_line_comes_from_the_release() -> None:
    assert (IMAGINARY.name, IMAGINARY.line) == ("4.10", (4, 10))
    assert [profile.line for profile in PROFILES.values()] == sorted(
        profile.line for profile in PROFILES.values()
    )
    assert PROFILES[DEFAULT_PROFILE].name == DEFAULT_PROFILE


def test_a_line_after_4_9_has_what_4_9_has() -> None:
    """What 4.10 knows: the newest row of each setting, not the rows of 4.0."""
    setting = read_table("a INT 1 - 4.0 live\na INT 2 - 4.2 live\na INT 3 - 4.9 live")["a"]
    defaults = {
        name: found.default if (found := setting.at(ReleaseLine.of(name))) else None
        for name in ("3.9", "4.0", "4.1", "4.2", "4.8", "4.9", "4.10", "5.0")
    }
    assert defaults == {
        "3.9": None,
        "4.0": "1",
        "4.1": "1",
        "4.2": "2",
        "4.8": "2",
        "4.9": "3",
        "4.10": "3",
        "5.0": "3",
    }
    assert BrokerConfig(IMAGINARY).text("group.coordinator.append.linger.ms") == "-1"
    assert topic_setting_of(IMAGINARY, "max.decompressed.message.bytes") is not None


def test_an_older_line_may_have_a_setting_that_a_newer_one_lacks() -> None:
    """4.2.2 was published after 4.3.1 and has a setting that came with 4.4."""
    for name, has in (("4.1", False), ("4.2", True), ("4.3", False), ("4.4", True)):
        setting = topic_setting_of(PROFILES[name], "max.decompressed.message.bytes")
        assert (setting is not None) is has, name


@pytest.mark.parametrize(
    ("name", "linger"), [("4.0", "10"), ("4.1", "5"), ("4.2", "-1"), ("4.4", "-1")]
)
def test_a_default_follows_its_line(name: str, linger: str) -> None:
    config = BrokerConfig(PROFILES[name])
    assert config.text("share.coordinator.append.linger.ms") == linger


def test_a_fact_is_what_4_0_does_until_a_line_changes_it() -> None:
    oldest = PROFILES["4.0"]
    given = {
        "release",
        "line",
        "name",
        "api_versions",
        "supported_features",
        "finalized_features",
        "finalized_features_epoch",
    }
    for fact in fields(Profile):
        if fact.name not in given:
            assert getattr(oldest, fact.name) == fact.default, fact.name
            values = [getattr(profile, fact.name) for profile in PROFILES.values()]
            assert len(set(values)) > 1, f"{fact.name} differs between no two lines"
