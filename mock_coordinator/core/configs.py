"""DescribeConfigs (key 32) and IncrementalAlterConfigs (key 44) for topics, brokers and groups.

Resource types: 2 topic, 4 broker (an empty name means all brokers), 32 group. Loggers (8) and
client metrics (16) are described as a broker without any describes them, and cannot be altered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kip848_client.errors import ConfigError
from kip848_client.wire import ErrorCode, default_message
from kip848_client.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResponseDescribeConfigsResourceResult,
    DescribeConfigsResponseDescribeConfigsResult,
    DescribeConfigsResponseDescribeConfigsSynonym,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)
from mock_coordinator.core.broker import Broker
from mock_coordinator.core.broker_settings import BROKER_SETTINGS
from mock_coordinator.core.described_configs import (
    DescribedConfig,
    described_broker,
    described_cluster,
    described_group,
    described_topic,
)
from mock_coordinator.core.settings import CONFIG_TYPES, Setting
from mock_coordinator.core.topic_config import (
    group_setting_of,
    topic_config_problem,
    topic_setting_of,
    topic_text,
)
from mock_coordinator.core.topic_names import name_problem

__all__ = ["alter_configs", "describe_configs"]

_TOPIC: Final = 2
_BROKER: Final = 4
_LOGGER: Final = 8
_CLIENT_METRICS: Final = 16
_GROUP: Final = 32

_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SUBTRACT: Final = 3

_Resource = IncrementalAlterConfigsRequestAlterConfigsResource
_Change = IncrementalAlterConfigsRequestAlterableConfig
_Altered = IncrementalAlterConfigsResponseAlterConfigsResourceResponse

_CLIENT_METRICS_DEFAULTS: Final = (
    Setting("interval.ms", "INT", "300000", "-", "4.0", "live"),
    Setting("match", "LIST", "", "-", "4.0", "live"),
    Setting("metrics", "LIST", "", "-", "4.0", "live"),
)


class _ConfigRefused(Exception):
    """A resource is not described or altered: an error code and the broker's words."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(code.name, message)
        self.code = code
        self.message = message


# -- describing ----------------------------------------------------------------------------------


def describe_configs(broker: Broker, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """The settings asked for of each resource, all of them when no names are given."""
    results: list[DescribeConfigsResponseDescribeConfigsResult] = []
    for resource in request.resources:
        result = DescribeConfigsResponseDescribeConfigsResult(
            error_message="",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            found = _described(broker, resource)
            result.configs = tuple(
                _config_result(config, synonyms=request.include_synonyms) for config in found
            )
        except _ConfigRefused as refused:
            result.error_code, result.error_message = refused.code, refused.message
        results.append(result)
    return DescribeConfigsResponse(results=tuple(results))


def _described(
    broker: Broker, resource: DescribeConfigsRequestDescribeConfigsResource
) -> list[DescribedConfig]:
    name = resource.resource_name
    found = _all_described(broker, resource.resource_type, name)
    keys = resource.configuration_keys
    return found if keys is None else [config for config in found if config.name in keys]


def _all_described(broker: Broker, resource_type: int, name: str) -> list[DescribedConfig]:
    if resource_type == _TOPIC:
        problem = name_problem(name)
        if problem is not None:
            raise _ConfigRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        topic = broker.catalog.topic(name)
        if topic is None:
            raise _ConfigRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return described_topic(broker.config, topic)
    if resource_type == _BROKER:
        if not name:
            return described_cluster(broker.config)
        _require_this_broker(broker, name, "Broker id", " or empty string")
        return described_broker(broker.config)
    if resource_type == _GROUP:
        if not name:
            raise _ConfigRefused(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return described_group(broker.config, name)
    if resource_type == _LOGGER:
        _require_this_broker(broker, name, "Broker id", "")
        return []
    if resource_type == _CLIENT_METRICS:
        if not name:
            raise _ConfigRefused(
                ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"
            )
        return [DescribedConfig(s, s.default, 5, False, ()) for s in _CLIENT_METRICS_DEFAULTS]
    raise _ConfigRefused(ErrorCode.INVALID_REQUEST, default_message(ErrorCode.INVALID_REQUEST))


def _config_result(
    config: DescribedConfig, *, synonyms: bool
) -> DescribeConfigsResponseDescribeConfigsResourceResult:
    return DescribeConfigsResponseDescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=config.read_only,
        config_source=config.source,
        is_sensitive=config.is_sensitive,
        synonyms=tuple(
            DescribeConfigsResponseDescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in (config.synonyms if synonyms else ())
        ),
        config_type=CONFIG_TYPES[config.setting.type],
        documentation=None,
    )


def _require_this_broker(broker: Broker, name: str, what: str, otherwise: str) -> None:
    try:
        node = int(name)
    except ValueError:
        raise _ConfigRefused(
            ErrorCode.INVALID_REQUEST, f"{what} must be an integer, but it is: {name}"
        ) from None
    if node != broker.node_id:
        raise _ConfigRefused(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker.node_id}{otherwise}, but received {name}",
        )


# -- altering ------------------------------------------------------------------------------------


def alter_configs(
    broker: Broker, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Apply the changes of each resource as a whole, or none of them."""
    seen: dict[tuple[int, str], int] = {}
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        seen[key] = seen.get(key, 0) + 1
    results: list[_Altered] = []
    for resource in request.resources:
        result = _Altered(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            times = seen[resource.resource_type, resource.resource_name]
            _alter(broker, resource, times, dry_run=request.validate_only)
        except _ConfigRefused as refused:
            result.error_code, result.error_message = refused.code, refused.message
        results.append(result)
    return IncrementalAlterConfigsResponse(responses=tuple(results))


def _alter(broker: Broker, resource: _Resource, times: int, *, dry_run: bool) -> None:
    if times > 1:
        raise _ConfigRefused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    names = [change.name for change in resource.configs]
    if len(names) != len(dict.fromkeys(names)):
        raise _ConfigRefused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = [
        c.name for c in resource.configs if c.config_operation != _DELETE and c.value is None
    ]
    if missing:
        raise _ConfigRefused(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(missing)}"
        )
    kind, name = resource.resource_type, resource.resource_name
    if kind == _TOPIC:
        _alter_topic(broker, name, resource.configs, dry_run=dry_run)
    elif kind == _BROKER:
        _alter_broker(broker, name, resource.configs, dry_run=dry_run)
    elif kind == _GROUP:
        _alter_group(broker, name, resource.configs, dry_run=dry_run)
    elif kind == _LOGGER:
        for change in resource.configs:
            raise _ConfigRefused(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    elif kind == _CLIENT_METRICS:
        for change in resource.configs:
            raise _ConfigRefused(
                ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {change.name}"
            )
    else:
        raise _ConfigRefused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def _changed(
    own: Mapping[str, str],
    changes: tuple[_Change, ...],
    setting_of: Callable[[str], Setting | None],
    in_effect: Callable[[str], str | None],
) -> dict[str, str]:
    """The resource's own settings after the changes."""
    result = dict(own)
    for change in changes:
        if change.config_operation == _DELETE:
            result.pop(change.name, None)
        elif change.config_operation == _SET:
            result[change.name] = change.value or ""
        elif change.config_operation in (_APPEND, _SUBTRACT):
            setting = setting_of(change.name)
            word = "APPEND" if change.config_operation == _APPEND else "SUBTRACT"
            if setting is None or setting.type != "LIST":
                raise _ConfigRefused(
                    ErrorCode.INVALID_CONFIG,
                    f"Can't {word} to key {change.name} because its type is not LIST.",
                )
            present = [v for v in (in_effect(change.name) or "").split(",") if v]
            given = [v for v in (change.value or "").split(",") if v]
            if word == "APPEND":
                present += [v for v in given if v not in present]
            else:
                present = [v for v in present if v not in given]
            result[change.name] = ",".join(present)
        else:
            raise _ConfigRefused(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    return result


def _alter_topic(broker: Broker, name: str, changes: tuple[_Change, ...], *, dry_run: bool) -> None:
    if not name:
        raise _ConfigRefused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    topic = broker.catalog.topic(name)
    if topic is None:
        raise _ConfigRefused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )
    config = _changed(
        topic.config,
        changes,
        lambda key: topic_setting_of(broker.profile, key),
        lambda key: topic_text(broker.config, topic, key),
    )
    problem = topic_config_problem(broker.profile, config)
    if problem is not None:
        raise _ConfigRefused(ErrorCode.INVALID_CONFIG, problem)
    if not dry_run:
        topic.config = config


def _alter_broker(
    broker: Broker, name: str, changes: tuple[_Change, ...], *, dry_run: bool
) -> None:
    config = broker.config
    if name:
        _require_this_broker(broker, name, "Node id", "")
    own = config.broker_overrides if name else config.cluster_overrides
    altered = _changed(own, changes, BROKER_SETTINGS.get, config.text)
    fixed = [
        change.name
        for change in changes
        if change.name in BROKER_SETTINGS and BROKER_SETTINGS[change.name].kind != "live"
    ]
    if fixed:
        listed = broker.profile.refused_settings_form.format(", ".join(fixed))
        raise _ConfigRefused(
            ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {listed}"
        )
    try:
        if name:
            config.replace_overrides(broker=altered, dry_run=dry_run)
        else:
            config.replace_overrides(cluster=altered, dry_run=dry_run)
    except ConfigError as err:
        raise _ConfigRefused(ErrorCode.INVALID_REQUEST, str(err)) from err


_GROUP_BOUNDS: Final = {
    "consumer.session.timeout.ms": "session.timeout.ms",
    "consumer.heartbeat.interval.ms": "heartbeat.interval.ms",
    "consumer.assignment.interval.ms": "assignment.interval.ms",
}


def _alter_group(broker: Broker, name: str, changes: tuple[_Change, ...], *, dry_run: bool) -> None:
    if not name:
        raise _ConfigRefused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    config = broker.config
    altered = _changed(
        config.group_overrides(name),
        changes,
        lambda key: group_setting_of(broker.profile, key),
        lambda key: config.group_overrides(name).get(key),
    )
    for key in altered:
        if group_setting_of(broker.profile, key) is None:
            raise _ConfigRefused(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {key}")
    for key, text in altered.items():
        setting = group_setting_of(broker.profile, key)
        try:
            value = None if setting is None else setting.parse(text)
        except ValueError as err:
            raise _ConfigRefused(ErrorCode.INVALID_CONFIG, str(err)) from err
        if key in _GROUP_BOUNDS and isinstance(value, int):
            _require_in_bounds(broker, key, value)
    if not dry_run:
        config.set_group_overrides(name, altered)


def _require_in_bounds(broker: Broker, key: str, value: int) -> None:
    """A group may only choose what the broker's administrator allows (KIP-848)."""
    what = _GROUP_BOUNDS[key]
    lowest, highest = (f"group.consumer.{end}.{what}" for end in ("min", "max"))
    low, high = broker.config.integer(lowest), broker.config.integer(highest)
    if low <= value <= high:
        return
    if not broker.profile.group_bounds_named:
        text = f"{key} must be in the range {low} to {high} inclusive."
    elif value < low:
        text = f"{key} must be greater than or equal to {lowest}"
    else:
        text = f"{key} must be less than or equal to {highest}"
    raise _ConfigRefused(ErrorCode.INVALID_CONFIG, text)
