"""The description of one resource in DescribeConfigs: values in effect, and where each comes from.

A value's synonyms are the settings that could supply it, the effective one first. For a topic's
``max.message.bytes`` for example: the topic's own, the broker's at runtime, the cluster's at
runtime, the broker's file, Kafka's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from mock_coordinator.core.release_line import ReleaseLine
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.settings.families import (
    coarser_names,
    effective_text,
    is_overshadowed,
)
from mock_coordinator.core.settings.setting import Setting
from mock_coordinator.core.settings.tables.broker import BROKER_SETTINGS
from mock_coordinator.core.settings.tables.group import GROUP_SETTINGS
from mock_coordinator.core.settings.tables.topic import TOPIC_SETTINGS
from mock_coordinator.core.settings.topic_config import group_setting_of, topic_setting_of
from mock_coordinator.core.topics.catalog import Topic

__all__ = [
    "DescribedConfig",
    "described_broker",
    "described_cluster",
    "described_group",
    "described_loggers",
    "described_topic",
]

_TOPIC: Final = 1
_BROKER: Final = 2
_CLUSTER: Final = 3
_STATIC: Final = 4
_DEFAULT: Final = 5
_LOGGER: Final = 6
_GROUP: Final = 8

Synonym = tuple[str, str | None, int]


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """One setting of one resource. ``source`` is DescribeConfigs' number; ``synonyms`` are
    ``(name, value, source)``, the deciding one first."""

    setting: Setting
    value: str | None
    source: int
    read_only: bool = False
    synonyms: tuple[Synonym, ...] = ()
    documentation: str | None = None

    @property
    def name(self) -> str:
        """The setting's name for this kind of resource."""
        return self.setting.name

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is a secret and withheld."""
        return self.setting.type == "PASSWORD"


def described_topic(
    config: BrokerConfig, topic: Topic, *, as_given: bool = False
) -> list[DescribedConfig]:
    """All settings of a topic, sorted by name; its own as they were understood, or as given."""
    own = topic.config
    return [
        _layered(
            config,
            setting,
            own.get(name) if as_given else setting.canonical(own.get(name)),
            _TOPIC,
        )
        for name in sorted(TOPIC_SETTINGS)
        if (setting := topic_setting_of(config.profile, name)) is not None
    ]


def described_group(config: BrokerConfig, group_id: str) -> list[DescribedConfig]:
    """All settings of a group, sorted by name; the group need not exist."""
    texts = config.group_overrides(group_id)
    by_broker = config.profile.group_synonyms_name_broker_settings
    found: list[DescribedConfig] = []
    for name in sorted(GROUP_SETTINGS):
        setting = group_setting_of(config.profile, name)
        if setting is None:
            continue
        own = {name: setting.canonical(texts[name])} if name in texts else {}
        if by_broker and setting.broker_name is not None:
            found.append(_layered(config, setting, own.get(setting.name), _GROUP))
            continue
        if by_broker:
            layers: list[Synonym] = [(setting.name, setting.default, _DEFAULT)]
            if setting.name in own:
                layers.insert(0, (setting.name, own[setting.name], _GROUP))
            found.append(_described(setting, layers, setting.default))
            continue
        default = (
            setting.default if setting.broker_name is None else config.text(setting.broker_name)
        )
        synonyms: list[Synonym] = [(setting.name, default, _DEFAULT)]
        if setting.name in own:
            synonyms = [(setting.name, own[setting.name], _GROUP)]
        found.append(_described(setting, synonyms, default))
    return found


def described_broker(
    config: BrokerConfig, started_with: Mapping[str, str] = MappingProxyType({})
) -> list[DescribedConfig]:
    """All settings of the broker, sorted by name. ``started_with`` are settings that count as
    given in its file unless they are given there."""
    found: list[DescribedConfig] = []
    for newest in BROKER_SETTINGS.values():
        setting = newest.at(config.profile.line)
        if setting is not None and setting.kind != "internal":
            value = config.text(setting.name)
            synonyms = _broker_synonyms(config, setting.name)
            if setting.name in started_with and config.static_text(setting.name) is None:
                synonyms.append((setting.name, started_with[setting.name], _STATIC))
                synonyms.sort(key=_source)
            read_only = setting.kind == "fixed"
            described = _described(setting, synonyms, value, read_only=read_only)
            if is_overshadowed(config, setting.name):
                described = replace(described, value=config.default_text(setting.name))
            found.append(described)
    return found


def described_cluster(config: BrokerConfig) -> list[DescribedConfig]:
    """The settings that were altered for all brokers at runtime, sorted by name."""
    return [
        _described(BROKER_SETTINGS[name], [(name, value, _CLUSTER)], value)
        for name, value in sorted(config.cluster_overrides.items())
        if name in BROKER_SETTINGS
    ]


def described_loggers(levels: Mapping[str, str]) -> list[DescribedConfig]:
    """The level of each logger."""
    since = ReleaseLine(4, 0)
    return [
        DescribedConfig(Setting(name, "UNKNOWN", None, "-", since, "live"), level, _LOGGER)
        for name, level in levels.items()
    ]


def _layered(
    config: BrokerConfig, setting: Setting, own: str | None, own_source: int
) -> DescribedConfig:
    synonyms: list[Synonym] = [] if own is None else [(setting.name, own, own_source)]
    default = setting.default
    if setting.broker_name is not None:
        synonyms += _broker_synonyms(config, setting.broker_name)
        default = effective_text(config, setting.broker_name)
    return _described(setting, synonyms, default)


def _broker_synonyms(config: BrokerConfig, name: str) -> list[Synonym]:
    """What a setting is given, and after that what the coarser ones of its family are."""
    given = _layers(config, name)
    if not given:
        return []
    return given + [each for other in coarser_names(name) for each in _layers(config, other)]


def _layers(config: BrokerConfig, name: str) -> list[Synonym]:
    layers = (
        (config.dynamic_text(name), _BROKER),
        (config.cluster_overrides.get(name), _CLUSTER),
        (config.static_text(name), _STATIC),
        (config.default_text(name), _DEFAULT),
    )
    return [(name, value, source) for value, source in layers if value is not None]


def _source(synonym: Synonym) -> int:
    return synonym[2]


def _described(
    setting: Setting, synonyms: list[Synonym], value: str | None, *, read_only: bool = False
) -> DescribedConfig:
    source = _DEFAULT
    if synonyms:
        _, value, source = synonyms[0]
    if setting.type == "PASSWORD":
        value, synonyms = None, [(name, None, layer) for name, _, layer in synonyms]
    return DescribedConfig(setting, value, source, read_only, tuple(synonyms))
