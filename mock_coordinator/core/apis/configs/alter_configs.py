"""AlterConfigs (key 33) and IncrementalAlterConfigs (key 44) of all resources.

Resource types: 2 topic, 4 broker (an empty name means all brokers), 8 loggers of a broker, 32
group. AlterConfigs replaces all settings of a resource; it is carried out as the equivalent
incremental change (KIP-339).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kip848_client.core.assignors import string_map_order
from kip848_client.core.wire.messages.config_resources import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
)
from kip848_client.core.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import ConfigError
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.apis.configs.group_config import check_group_config
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.settings.setting import Setting
from mock_coordinator.core.settings.tables.broker import BROKER_SETTINGS
from mock_coordinator.core.settings.topic_config import (
    group_setting_of,
    topic_config_problem,
    topic_default,
    topic_setting_of,
)
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.state.loggers import alter_loggers

__all__ = ["alter_configs", "incremental_alter_configs"]

_TOPIC: Final = 2
_BROKER: Final = 4
_LOGGER: Final = 8
_GROUP: Final = 32

_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SUBTRACT: Final = 3

_Resource = IncrementalAlterConfigsRequestAlterConfigsResource
_Change = IncrementalAlterConfigsRequestAlterableConfig
_Altered = IncrementalAlterConfigsResponseAlterConfigsResourceResponse


def alter_configs(call: ApiCall[AlterConfigsRequest]) -> AlterConfigsResponse:
    """Give each resource these settings and no others."""
    broker, request = call.broker, call.request
    resources = [_replacement(broker, resource) for resource in request.resources]
    return AlterConfigsResponse(
        responses=tuple(
            AlterConfigsResponseAlterConfigsResourceResponse(
                error_code=result.error_code,
                error_message=result.error_message,
                resource_type=result.resource_type,
                resource_name=result.resource_name,
            )
            for result in _alter_all(broker, resources, dry_run=request.validate_only, whole=True)
        )
    )


def _replacement(broker: Broker, resource: AlterConfigsRequestAlterConfigsResource) -> _Resource:
    """The incremental changes that leave a resource with the given settings alone."""
    given = [config.name for config in resource.configs]
    own = _own(broker, resource.resource_type, resource.resource_name)
    removed = [
        _Change(name=name, config_operation=_DELETE, value=None)
        for name in own
        if name not in given
    ]
    return _Resource(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=(
            *(_Change(name=c.name, config_operation=_SET, value=c.value) for c in resource.configs),
            *removed,
        ),
    )


def _own(broker: Broker, kind: int, name: str) -> Mapping[str, str]:
    """What is set for a resource; nothing for one that does not exist."""
    config = broker.config
    if kind == _TOPIC:
        topic = broker.catalog.topic(name)
        return {} if topic is None else topic.config
    if kind == _BROKER:
        return config.broker_overrides if name else config.cluster_overrides
    if kind == _GROUP:
        return config.group_overrides(name)
    return {}


def incremental_alter_configs(
    call: ApiCall[IncrementalAlterConfigsRequest],
) -> IncrementalAlterConfigsResponse:
    """Apply the changes of each resource as a whole, or none of them."""
    broker, request = call.broker, call.request
    results = _alter_all(broker, request.resources, dry_run=request.validate_only, whole=False)
    return IncrementalAlterConfigsResponse(responses=tuple(results))


def _alter_all(
    broker: Broker, resources: Sequence[_Resource], *, dry_run: bool, whole: bool
) -> list[_Altered]:
    seen: dict[tuple[int, str], int] = {}
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        seen[key] = seen.get(key, 0) + 1
    results: list[_Altered] = []
    for resource in resources:
        result = _Altered(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            times = seen[resource.resource_type, resource.resource_name]
            _alter(broker, resource, times, dry_run=dry_run, whole=whole)
        except Refused as refused:
            result.error_code, result.error_message = refused.code, refused.message
        results.append(result)
    return results


def _alter(broker: Broker, resource: _Resource, times: int, *, dry_run: bool, whole: bool) -> None:
    if times > 1:
        raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    names = [change.name for change in resource.configs]
    if len(names) != len(dict.fromkeys(names)):
        raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = [
        c.name for c in resource.configs if c.config_operation != _DELETE and c.value is None
    ]
    if missing:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(missing)}"
        )
    kind, name = resource.resource_type, resource.resource_name
    if kind == _TOPIC:
        _alter_topic(broker, name, resource.configs, dry_run=dry_run)
    elif kind == _BROKER:
        _alter_broker(broker, name, resource.configs, dry_run=dry_run)
    elif kind == _GROUP:
        _alter_group(broker, name, resource.configs, dry_run=dry_run)
    elif kind == _LOGGER and not whole:
        _require_this_node(broker, name)
        alter_loggers(broker.loggers, resource.configs, dry_run=dry_run)
    else:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def _changed(
    own: Mapping[str, str],
    changes: tuple[_Change, ...],
    setting_of: Callable[[str], Setting | None],
    in_effect: Callable[[str], str | None],
) -> dict[str, str]:
    """The resource's own settings after the changes."""
    result = dict(own)
    by_name = {change.name: change for change in changes}
    for change in (by_name[name] for name in string_map_order(by_name)):
        if change.config_operation == _DELETE:
            result.pop(change.name, None)
        elif change.config_operation == _SET:
            result[change.name] = change.value or ""
        elif change.config_operation in (_APPEND, _SUBTRACT):
            setting = setting_of(change.name)
            word = "APPEND" if change.config_operation == _APPEND else "SUBTRACT"
            if setting is None or setting.type != "LIST":
                raise Refused(
                    ErrorCode.INVALID_CONFIG,
                    f"Can't {word} to key {change.name} because its type is not LIST.",
                )
            present = [v for v in (in_effect(change.name) or "").split(",") if v]
            for part in _split(change.value or ""):
                if word == "APPEND" and part not in present:
                    present.append(part)
                elif word == "SUBTRACT" and part in present:
                    present.remove(part)
            result[change.name] = ",".join(present)
        else:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    return result


def _split(text: str) -> list[str]:
    """As Java splits: an empty text is one empty part, empty parts at the end are left out."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if parts[0] or len(parts) > 1 or not text else []


def _alter_topic(broker: Broker, name: str, changes: tuple[_Change, ...], *, dry_run: bool) -> None:
    topic = broker.catalog.topic(name)
    own = {} if topic is None else topic.config
    config = _changed(
        own,
        changes,
        lambda key: topic_setting_of(broker.profile, key),
        lambda key: own.get(key, topic_default(broker.config, key)),
    )
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    problem = topic_config_problem(broker.profile, config)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, problem)
    if topic is None:  # Kafka's controller asks for the topic last
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if not dry_run:
        topic.config = config


def _alter_broker(
    broker: Broker, name: str, changes: tuple[_Change, ...], *, dry_run: bool
) -> None:
    config = broker.config
    if name:
        _require_this_broker(broker, name)
    own = config.broker_overrides if name else config.cluster_overrides
    _check_min_isr(broker, name, changes)
    altered = _changed(own, changes, BROKER_SETTINGS.get, config.text)
    fixed = [
        change.name
        for change in changes
        if change.name in BROKER_SETTINGS and BROKER_SETTINGS[change.name].kind != "live"
    ]
    if fixed:
        listed = broker.profile.refused_settings_form.format(", ".join(fixed))
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {listed}"
        )
    try:
        if name:
            config.replace_overrides(broker=altered, dry_run=dry_run)
        else:
            config.replace_overrides(cluster=altered, dry_run=dry_run)
    except ConfigError as err:
        raise Refused(ErrorCode.INVALID_REQUEST, str(err)) from err


def _check_min_isr(broker: Broker, name: str, changes: tuple[_Change, ...]) -> None:
    """The cluster's setting cannot be taken away from eligible leader replicas (KIP-966)."""
    if "eligible.leader.replicas.version" not in broker.profile.finalized_features:
        return
    for change in changes:
        if change.name != "min.insync.replicas":
            continue
        if name:
            text = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            raise Refused(ErrorCode.INVALID_CONFIG, text)
        if change.config_operation == _DELETE:
            text = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            raise Refused(ErrorCode.INVALID_CONFIG, text)


def _node_named(name: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        ) from None


def _require_this_broker(broker: Broker, name: str) -> None:
    if _node_named(name) != broker.node_id:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker.node_id}, but received {name}",
        )


def _require_this_node(broker: Broker, name: str) -> None:
    if _node_named(name) != broker.node_id:
        named = name if broker.profile.foreign_logger_named else broker.node_id
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected node id. Expected {broker.node_id}, but received {named}",
        )


def _alter_group(broker: Broker, name: str, changes: tuple[_Change, ...], *, dry_run: bool) -> None:
    config = broker.config
    altered = _changed(
        config.group_overrides(name),
        changes,
        lambda key: group_setting_of(broker.profile, key),
        lambda key: config.group_overrides(name).get(key),
    )
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    check_group_config(broker, altered)
    if not dry_run:
        config.set_group_overrides(name, altered)
