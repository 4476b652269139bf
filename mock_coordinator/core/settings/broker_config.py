"""The broker's configuration: Kafka's names in, typed and checked values out.

Theory of operation
===================

Every value is kept as the given text and, parsed, under its Kafka name; reading one is a dictionary
look-up. Three layers determine a broker setting (altered at runtime, given at start, default), and
a group has one more before them (``consumer.session.timeout.ms`` overrides
``group.consumer.session.timeout.ms``, KIP-848). A change that would make the configuration
inconsistent is refused as a whole and changes nothing.

A name that Kafka does not know is an error that lists similar names. A Kafka setting without effect
in this broker is accepted, so that an existing server.properties can be reused, and listed in
``without_effect``, so that users can be warned.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Final, cast

from kip848_client.core.assignors import Assignor
from kip848_client.errors import ConfigError
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.profiles import DEFAULT_PROFILE, profile_named
from mock_coordinator.core.settings.setting import Setting, SettingValue
from mock_coordinator.core.settings.tables.broker import BROKER_SETTINGS
from mock_coordinator.core.settings.tables.group import GROUP_SETTINGS

__all__ = ["EFFECTIVE", "BrokerConfig", "near_names"]

EFFECTIVE: Final = frozenset(
    {
        "advertised.listeners",
        "authorizer.class.name",
        "auto.create.topics.enable",
        "broker.id",
        "broker.rack",
        "connection.failed.authentication.delay.ms",
        "connections.max.idle.ms",
        "connections.max.reauth.ms",
        "delete.topic.enable",
        "fetch.max.bytes",
        "group.consumer.assignment.interval.ms",
        "group.consumer.assignors",
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.max.assignment.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
        "group.consumer.max.session.timeout.ms",
        "group.consumer.max.size",
        "group.consumer.migration.policy",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.regex.refresh.interval.ms",
        "group.consumer.session.timeout.ms",
        "group.coordinator.rebalance.protocols",
        "group.initial.rebalance.delay.ms",
        "group.max.session.timeout.ms",
        "group.max.size",
        "group.min.session.timeout.ms",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.type",
        "log.segment.bytes",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "max.incremental.fetch.session.cache.slots",
        "message.max.bytes",
        "node.id",
        "num.partitions",
        "offset.metadata.max.bytes",
        "offsets.retention.check.interval.ms",
        "offsets.retention.minutes",
        "offsets.topic.num.partitions",
        "producer.id.expiration.check.interval.ms",
        "producer.id.expiration.ms",
        "replica.selector.class",
        "sasl.server.max.receive.size",
        "socket.request.max.bytes",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "transaction.max.timeout.ms",
        "transaction.partition.verification.enable",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transaction.state.log.num.partitions",
        "transactional.id.expiration.ms",
    }
)
"""The settings with an effect in this broker. All others of Kafka's are accepted and ignored."""

# (setting, bound below, bound above): Kafka refuses to start when a default is outside its bounds
_BOUNDED: Final = tuple(
    (f"group.consumer.{what}.ms", f"group.consumer.min.{what}.ms", f"group.consumer.max.{what}.ms")
    for what in ("session.timeout", "heartbeat.interval", "assignment.interval")
)


def near_names(name: str, known: Iterable[str]) -> str:
    """``"; did you mean a, b?"``, or nothing when no known name is near."""
    near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


class BrokerConfig:
    """The settings of one broker and of its groups.

    ``values`` maps Kafka's broker setting names to texts. Raises ``ConfigError`` for an unknown
    name, a value of the wrong type or range, or values that contradict each other.

    ``client_assignors``: whether members may compute assignments, and whether there are Connect
    groups, whose workers do. No Kafka release offers that. It is not a setting, so that clients see
    only settings that Kafka has.

    ``assignors``: those that ``group.consumer.assignors`` may name in addition to Kafka's own, by
    that name.
    """

    def __init__(
        self,
        profile: Profile | None = None,
        values: Mapping[str, str] | None = None,
        *,
        client_assignors: bool = True,
        assignors: Mapping[str, Assignor] | None = None,
    ) -> None:
        self.client_assignors: Final = client_assignors
        self.assignors: Final[Mapping[str, Assignor]] = assignors or {}
        self.profile: Final = profile or profile_named(DEFAULT_PROFILE)
        self._static: dict[str, str] = _texts(values or {})
        node_id = self._static.get("node.id") or self._static.get("broker.id") or "1"
        self._static.update({"node.id": node_id, "broker.id": node_id})
        self._dynamic: dict[str, str] = {}
        self._cluster: dict[str, str] = {}
        if "eligible.leader.replicas.version" in self.profile.finalized_features:
            self._cluster["min.insync.replicas"] = "1"  # KIP-966 pins it when it is switched on
        self._groups: dict[str, dict[str, str]] = {}
        self._siblings: list[BrokerConfig] = [self]
        self._parsed = self._parse_all(self._cluster, self._dynamic)

    def sibling(self, node_id: int, rack: str | None) -> BrokerConfig:
        """The settings of another broker of the same cluster, started with the same values except
        its id, rack and address. Both share what is set at runtime for all brokers and for groups;
        what is set for one broker is its own."""
        values = {name: text for name, text in self._static.items() if name != "broker.rack"}
        values |= {"node.id": str(node_id), "broker.id": str(node_id)}
        if rack is not None:
            values["broker.rack"] = rack
        other = BrokerConfig(
            self.profile,
            values,
            client_assignors=self.client_assignors,
            assignors=self.assignors,
        )
        other._cluster = self._cluster
        other._groups = self._groups
        other._siblings = self._siblings
        other.refresh()
        self._siblings.append(other)
        return other

    def _parse_all(
        self, cluster: Mapping[str, str], dynamic: Mapping[str, str]
    ) -> dict[str, SettingValue]:
        given = {**self._static, **cluster, **dynamic}
        for name in self._static:
            if name not in BROKER_SETTINGS:
                raise ConfigError(
                    f"unknown broker setting {name!r}{near_names(name, BROKER_SETTINGS)}"
                )
        try:
            parsed = {
                name: setting.parse(given.get(name, setting.default))
                for name, setting in ((each, self._setting(each)) for each in BROKER_SETTINGS)
            }
        except ValueError as err:
            raise ConfigError(str(err)) from err
        for name, low, high in _BOUNDED:
            self._require_between(parsed, name, low, high)
        if _as_int(parsed["group.consumer.session.timeout.ms"]) <= _as_int(
            parsed["group.consumer.heartbeat.interval.ms"]
        ):
            raise ConfigError(
                "group.consumer.heartbeat.interval.ms must be less than "
                "group.consumer.session.timeout.ms"
            )
        return parsed

    @staticmethod
    def _require_between(
        parsed: Mapping[str, SettingValue], name: str, low: str, high: str
    ) -> None:
        value, least, most = (_as_int(parsed[key]) for key in (name, low, high))
        if most < least:
            raise ConfigError(f"{high} must be greater than or equal to {low}")
        if value < least:
            raise ConfigError(f"{name} must be greater than or equal to {low}")
        if value > most:
            raise ConfigError(f"{name} must be less than or equal to {high}")

    # -- reading ---------------------------------------------------------------------------------

    def default_text(self, name: str) -> str | None:
        """The default of a broker setting in this profile, as text."""
        return self._setting(name).default

    def _setting(self, name: str) -> Setting:
        """Return a broker setting in this profile; one that only later lines have is taken from
        there."""
        setting = BROKER_SETTINGS[name]
        return setting.at(self.profile.line) or setting

    def text(self, name: str) -> str | None:
        """The value in effect as text, ``None`` when there is none."""
        for layer in (self._dynamic, self._cluster, self._static):
            if name in layer:
                return layer[name]
        return self.default_text(name)

    def integer(self, name: str) -> int:
        """The value of an INT, SHORT or LONG setting. Raises ``KeyError`` for an unknown name."""
        return _as_int(self._parsed[name])

    def boolean(self, name: str) -> bool:
        """The value of a BOOLEAN setting."""
        return self._parsed[name] is True

    def listing(self, name: str) -> tuple[str, ...]:
        """The values of a LIST setting."""
        value = self._parsed[name]
        return value if isinstance(value, tuple) else ()

    @property
    def node_id(self) -> int:
        """This broker's id: ``node.id``, the older ``broker.id``, or 1."""
        return self.integer("node.id")

    @property
    def rack(self) -> str | None:
        """``broker.rack``."""
        return self.text("broker.rack")

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The given settings that exist in Kafka and have no effect here; sorted."""
        idle = [
            name
            for name in self._static
            if name not in EFFECTIVE or BROKER_SETTINGS[name].at(self.profile.line) is None
        ]
        return tuple(sorted(idle))

    def static_text(self, name: str) -> str | None:
        """The value given at start, ``None`` if there was none."""
        return self._static.get(name)

    def dynamic_text(self, name: str) -> str | None:
        """The value set for this broker at runtime, ``None`` if there is none."""
        return self._dynamic.get(name)

    @property
    def cluster_overrides(self) -> Mapping[str, str]:
        """The values set for all brokers at runtime, by name."""
        return self._cluster

    @property
    def broker_overrides(self) -> Mapping[str, str]:
        """The values set for this broker at runtime, by name."""
        return self._dynamic

    # -- altering --------------------------------------------------------------------------------

    def replace_overrides(
        self,
        *,
        broker: Mapping[str, str] | None = None,
        cluster: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> None:
        """Replace the values set at runtime, for this broker or for all; ``None`` keeps them.

        Names that Kafka does not know are kept and do nothing, as in Kafka. Raises ``ConfigError``
        and changes nothing when the result would not be valid.
        """
        dynamic = self._dynamic if broker is None else dict(broker)
        everywhere = self._cluster if cluster is None else dict(cluster)
        parsed = self._parse_all(everywhere, dynamic)
        if dry_run:
            return
        self._dynamic, self._parsed = dynamic, parsed
        if cluster is not None:
            self._cluster.clear()
            self._cluster.update(everywhere)
            for other in self._siblings:
                other.refresh()

    def refresh(self) -> None:
        """Apply changes made for all brokers."""
        self._parsed = self._parse_all(self._cluster, self._dynamic)

    # -- groups ----------------------------------------------------------------------------------

    def group_setting(self, group_id: str, name: str) -> int:
        """A group's INT setting: its own override, or the broker's default."""
        setting: Setting = GROUP_SETTINGS[name]
        own = self._groups.get(group_id)
        if own is not None and name in own:
            return _as_int(setting.parse(own[name]))
        if setting.broker_name is None:
            return _as_int(setting.parse(setting.default))
        return self.integer(setting.broker_name)

    def consumer_session_timeout_ms(self, group_id: str) -> int:
        """The session timeout of this group's members."""
        return self.group_setting(group_id, "consumer.session.timeout.ms")

    def consumer_heartbeat_interval_ms(self, group_id: str) -> int:
        """The heartbeat interval that members of this group get."""
        return self.group_setting(group_id, "consumer.heartbeat.interval.ms")

    def consumer_assignment_interval_ms(self, group_id: str) -> int:
        """The least time between two target assignments; 0 in profiles without it (KIP-1263)."""
        if not self.profile.has_assignment_interval:
            return 0
        return self.group_setting(group_id, "consumer.assignment.interval.ms")

    def group_overrides(self, group_id: str) -> Mapping[str, str]:
        """The settings that were altered for a group, by name."""
        return self._groups.get(group_id, {})

    def set_group_overrides(self, group_id: str, overrides: Mapping[str, str]) -> None:
        """Replace a group's overrides; the caller has checked them (see ``configs``)."""
        if overrides or self.profile.emptied_groups_stay_listed:
            self._groups[group_id] = dict(overrides)
        else:
            self._groups.pop(group_id, None)

    @property
    def groups_with_overrides(self) -> tuple[str, ...]:
        """Groups that have settings of their own, sorted."""
        return tuple(sorted(self._groups))


def _as_int(value: SettingValue) -> int:
    return value if isinstance(value, int) else 0


def _texts(values: Mapping[str, str]) -> dict[str, str]:
    """The settings that a user gave. Raises ``ConfigError`` for a number that is not a text."""
    for name, value in cast("Mapping[str, object]", values).items():
        if not isinstance(value, str):
            raise ConfigError(f"{name} = {value!r}: expected a string, as Kafka's files have")
    return dict(values)
