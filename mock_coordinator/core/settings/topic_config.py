"""Topic settings: allowed values, and values in effect (the topic's, the broker's, the default)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from mock_coordinator.core.profile import Profile
from mock_coordinator.core.release_line import ReleaseLine
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.settings.families import effective_text
from mock_coordinator.core.settings.setting import Setting, SettingValue
from mock_coordinator.core.settings.tables.group import GROUP_SETTINGS
from mock_coordinator.core.settings.tables.topic import TOPIC_SETTINGS
from mock_coordinator.core.topics.catalog import Topic

__all__ = [
    "group_setting_of",
    "topic_config_problem",
    "topic_default",
    "topic_integer",
    "topic_setting_of",
    "topic_text",
    "topic_value",
]


def topic_setting_of(profile: Profile, name: str) -> Setting | None:
    """Return the topic setting of that name, ``None`` if this profile does not have it."""
    return _in_profile(profile, TOPIC_SETTINGS.get(name))


def group_setting_of(profile: Profile, name: str) -> Setting | None:
    """Return the group setting of that name, ``None`` if this profile does not have it."""
    return _in_profile(profile, GROUP_SETTINGS.get(name))


def _in_profile(profile: Profile, newest: Setting | None) -> Setting | None:
    setting = None if newest is None else newest.at(profile.line)
    if setting is None:
        return None
    if setting.type == "LIST" and setting.check != "replicas" and profile.list_values_distinct:
        return replace(setting, distinct=True)
    return setting


def topic_config_problem(profile: Profile, config: Mapping[str, str]) -> str | None:
    """Return the broker's error for a topic's own settings: names first, then values in the order
    of the table, then contradictions."""
    settings: dict[str, Setting] = {}
    for name in config:
        setting = topic_setting_of(profile, name)
        if setting is None:
            return f"Unknown topic config name: {name}"
        settings[name] = setting
    for name in (name for name in TOPIC_SETTINGS if name in config):
        try:
            settings[name].parse(config[name])
        except ValueError as err:
            return str(err)
    low, high = (
        _integer(TOPIC_SETTINGS[name].parse(config.get(name, TOPIC_SETTINGS[name].default)))
        for name in ("min.compaction.lag.ms", "max.compaction.lag.ms")
    )
    if low > high:
        return (
            f"conflict topic config setting min.compaction.lag.ms ({low}) > "
            f"max.compaction.lag.ms ({high})"
        )
    return None


def topic_default(config: BrokerConfig, name: str) -> str | None:
    """Return the text of a topic setting from the brokers' files. A controller uses it as the base
    when appending to a list: values altered at runtime are ignored."""
    setting = _setting(config.profile.line, name)
    if setting.broker_name is None:
        return setting.default
    given = config.static_text(setting.broker_name)
    return config.default_text(setting.broker_name) if given is None else given


def topic_text(config: BrokerConfig, topic: Topic, name: str) -> str | None:
    """The text of a topic setting."""
    own = topic.config.get(name)
    if own is not None:
        return own
    setting = _setting(config.profile.line, name)
    if setting.broker_name is None:
        return setting.default
    return effective_text(config, setting.broker_name)


def _setting(line: ReleaseLine, name: str) -> Setting:
    """Return the topic setting of a line; one that only later lines have is taken from there."""
    newest = TOPIC_SETTINGS[name]
    return newest.at(line) or newest


def topic_value(config: BrokerConfig, topic: Topic, name: str) -> SettingValue:
    """The typed value of a topic setting."""
    return _parsed(config.profile.line, name, topic_text(config, topic, name))


@lru_cache(maxsize=1024)
def _parsed(line: ReleaseLine, name: str, text: str | None) -> SettingValue:
    """Parse a topic setting. Cached, because several are looked up for each produced batch."""
    return _setting(line, name).parse(text)


def topic_integer(config: BrokerConfig, topic: Topic, name: str) -> int:
    """The value of an INT or LONG topic setting."""
    return _integer(topic_value(config, topic, name))


def _integer(value: SettingValue) -> int:
    return value if isinstance(value, int) else 0
