"""DescribeConfigs (key 32) of topics, brokers, loggers and groups.

Resource types: 2 topic, 4 broker (an empty name means all brokers), 8 loggers of a broker, 32
group.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResponseDescribeConfigsResourceResult,
    DescribeConfigsResponseDescribeConfigsResult,
    DescribeConfigsResponseDescribeConfigsSynonym,
)
from kip848_client.error_codes import ErrorCode, default_message
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.apis.configs.described_configs import (
    DescribedConfig,
    described_broker,
    described_cluster,
    described_group,
    described_loggers,
    described_topic,
)
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.settings.setting import CONFIG_TYPES
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.topics.topic_names import name_problem

__all__ = ["describe_configs"]

_Found = tuple[DescribeConfigsResponseDescribeConfigsResourceResult, ...]

_TOPIC: Final = 2
_BROKER: Final = 4
_LOGGER: Final = 8
_GROUP: Final = 32
_PLAINTEXT: Final = "PLAINTEXT"


def describe_configs(call: ApiCall[DescribeConfigsRequest]) -> DescribeConfigsResponse:
    """The settings asked for of each resource, all of them when no names are given. What is asked
    for again and again is looked up once."""
    broker, request = call.broker, call.request
    known: dict[tuple[int, str, tuple[str, ...] | None], _Found] = {}
    results: list[DescribeConfigsResponseDescribeConfigsResult] = []
    for resource in request.resources:
        result = DescribeConfigsResponseDescribeConfigsResult(
            error_message="",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        place = (resource.resource_type, resource.resource_name, resource.configuration_keys)
        try:
            if place not in known:
                found = _described(broker, resource)
                known[place] = tuple(
                    _config_result(config, synonyms=request.include_synonyms) for config in found
                )
            result.configs = known[place]
        except Refused as refused:
            result.error_code, result.error_message = refused.code, refused.message
        results.append(result)
    return DescribeConfigsResponse(results=tuple(results))


def _described(
    broker: Broker, resource: DescribeConfigsRequestDescribeConfigsResource
) -> list[DescribedConfig]:
    name = resource.resource_name
    found = _all_described(broker, resource.resource_type, name)
    keys = resource.configuration_keys
    return [config for config in found if config.name in keys] if keys else found


def _all_described(broker: Broker, resource_type: int, name: str) -> list[DescribedConfig]:
    if resource_type == _TOPIC:
        problem = name_problem(name)
        if problem is not None:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        topic = broker.catalog.topic(name)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return described_topic(broker.config, topic)
    if resource_type == _BROKER:
        if not name:
            return described_cluster(broker.config)
        _require_this_broker(broker, name, " or empty string,")
        return described_broker(broker.config, _listener_settings(broker))
    if resource_type == _GROUP:
        if not name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return described_group(broker.config, name)
    if resource_type == _LOGGER:
        if not name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _require_this_broker(broker, name, "")
        return described_loggers(broker.loggers)
    raise Refused(ErrorCode.INVALID_REQUEST, default_message(ErrorCode.INVALID_REQUEST))


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
        documentation=config.documentation,
    )


def _require_this_broker(broker: Broker, name: str, otherwise: str) -> None:
    try:
        node = int(name)
    except ValueError:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        ) from None
    if node != broker.node_id:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker.node_id}{otherwise} but received {name}",
        )


def _listener_settings(broker: Broker) -> dict[str, str]:
    """``listeners`` and ``advertised.listeners`` of one broker, as if its file had named the
    addresses that it has bound (``NAME://host:port``, with commas); nothing without a port."""
    node = broker.node
    if node.port == 0:
        return {}
    places = {_PLAINTEXT: (node.host, node.port)}
    for name, by_node in broker.disk.security.addresses.items():
        if node.node_id in by_node:
            places[name] = by_node[node.node_id]
    text = ",".join(f"{name}://{_host(host)}:{port}" for name, (host, port) in places.items())
    return {"listeners": text, "advertised.listeners": text}


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
