"""Rules for settings: DescribeConfigs, AlterConfigs, IncrementalAlterConfigs,
ListConfigResources."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.config_resources import (
    AlterConfigsResponseAlterConfigsResourceResponse,
    ListConfigResourcesResponse,
)
from kip848_client.core.wire.messages.configs import (
    DescribeConfigsResponseDescribeConfigsResult,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)
from kip848_client.error_codes import ErrorCode, default_message
from mock_coordinator.core.authorization.requester import (
    ADMITTED,
    Admission,
    Admitted,
    Denied,
    Requester,
    admitted_in_part,
)
from mock_coordinator.core.security.acls import CLUSTER_NAME, Operation, ResourceType

__all__ = [
    "admit_alter_configs",
    "admit_describe_configs",
    "admit_incremental_alter_configs",
    "admit_list_config_resources",
]

_TOPIC: Final = 2
_BROKER: Final = 4
_LOGGER: Final = 8
_GROUP: Final = 32

_DENIED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
_PROTECTED_AS: Final = {
    _TOPIC: ResourceType.TOPIC,
    _BROKER: ResourceType.CLUSTER,
    _LOGGER: ResourceType.CLUSTER,
    _GROUP: ResourceType.GROUP,
}
"""The settings of brokers belong to the cluster; unknown types belong to no resource."""


def _denied(requester: Requester, operation: Operation, resource: Any) -> ErrorCode | None:
    kind = _PROTECTED_AS.get(resource.resource_type)
    if kind is None:
        return None
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else resource.resource_name
    return None if requester.may(operation, kind, name) else _DENIED[kind]


def admit_describe_configs(requester: Requester, request: Any) -> Admission:
    """DESCRIBE_CONFIGS; what is denied comes last."""
    kept: list[Any] = []
    denied: list[DescribeConfigsResponseDescribeConfigsResult] = []
    for resource in request.resources:
        code = _denied(requester, Operation.DESCRIBE_CONFIGS, resource)
        if code is None:
            kept.append(resource)
            continue
        denied.append(
            DescribeConfigsResponseDescribeConfigsResult(
                error_code=code,
                error_message=default_message(code),
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return admitted_in_part(request, "resources", kept, "results", denied)


def admit_incremental_alter_configs(requester: Requester, request: Any) -> Admission:
    return _alter(requester, request, IncrementalAlterConfigsResponseAlterConfigsResourceResponse)


def admit_alter_configs(requester: Requester, request: Any) -> Admission:
    return _alter(requester, request, AlterConfigsResponseAlterConfigsResourceResponse)


def _alter(requester: Requester, request: Any, result: type[Any]) -> Admission:
    """ALTER_CONFIGS. What is malformed (twice the same resource, a null value) is refused before;
    the order of the request is kept."""
    keys = [(resource.resource_type, resource.resource_name) for resource in request.resources]
    named = Counter(keys)
    denied: dict[int, Message] = {}
    for index, resource in enumerate(request.resources):
        malformed = named[keys[index]] > 1 or _is_malformed(resource)
        code = None if malformed else _denied(requester, Operation.ALTER_CONFIGS, resource)
        if code is not None:
            silent = (
                resource.resource_type == _BROKER and requester.broker.profile.silent_broker_denial
            )
            denied[index] = result(
                error_code=code,
                error_message=None if silent else default_message(code),
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
    kept = tuple(r for index, r in enumerate(request.resources) if index not in denied)

    def complete(response: Any) -> Any:
        answered = iter(response.responses)
        merged = tuple(
            denied[index] if index in denied else next(answered)
            for index in range(len(request.resources))
        )
        return replace(response, responses=merged)

    return Admitted(replace(request, resources=kept), complete)


def _is_malformed(resource: Any) -> bool:
    names = [change.name for change in resource.configs]
    if len(names) != len(dict.fromkeys(names)):
        return True
    return any(
        change.value is None and getattr(change, "config_operation", 0) != 1
        for change in resource.configs
    )


def admit_list_config_resources(requester: Requester, _request: Any) -> Admission:
    if requester.may_cluster(Operation.DESCRIBE_CONFIGS):
        return ADMITTED
    return Denied(ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
