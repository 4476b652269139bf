"""DescribeClientQuotas (key 48) and AlterClientQuotas (key 49), with the checks of KIP-546."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from typing import Final

from kip848_client.core.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasRequestComponentData,
    DescribeClientQuotasResponse,
    DescribeClientQuotasResponseEntityData,
    DescribeClientQuotasResponseEntryData,
    DescribeClientQuotasResponseValueData,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.state.quota_store import QuotaEntity, quota_entity

__all__ = ["alter_client_quotas", "describe_client_quotas"]

_Component = DescribeClientQuotasRequestComponentData
_Entry = AlterClientQuotasRequestEntryData

_TYPES: Final = ("user", "client-id", "ip")
_EXACT: Final = 0
_DEFAULT: Final = 1
_SPECIFIED: Final = 2
_EPSILON: Final = 1e-6
_MOST: Final = {"LONG": 2**63 - 1, "INT": 2**31 - 1}

_CLIENT_KEYS: Final = {
    "producer_byte_rate": "LONG",
    "consumer_byte_rate": "LONG",
    "request_percentage": "DOUBLE",
    "controller_mutation_rate": "DOUBLE",
}
_ADDRESS_KEYS: Final = {"connection_creation_rate": "INT"}


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)


# -- describing ------------------------------------------------------------------------------------


def describe_client_quotas(
    call: ApiCall[DescribeClientQuotasRequest],
) -> DescribeClientQuotasResponse:
    """The quotas of every entity that each component matches; ``strict`` wants no other part."""
    broker, request = call.broker, call.request
    try:
        components = _checked(request.components)
    except Refused as refused:
        return DescribeClientQuotasResponse(
            error_code=refused.code, error_message=refused.message, entries=None
        )
    return DescribeClientQuotasResponse(
        entries=tuple(
            _described(entity, values)
            for entity, values in broker.disk.quotas.quotas.items()
            if _matches(entity, components, strict=request.strict)
        ),
    )


def _checked(components: tuple[_Component, ...]) -> dict[str, _Component]:
    by_type: dict[str, _Component] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in by_type:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in _TYPES:
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(component)
        by_type[kind] = component
    if "ip" in by_type and len(by_type) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return by_type


def _check_match(component: _Component) -> None:
    kind, text = component.match_type, component.match
    if kind == _EXACT and text is None:
        raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    if kind in (_DEFAULT, _SPECIFIED) and text is not None:
        name = "DEFAULT" if kind == _DEFAULT else "SPECIFIED"
        raise _invalid(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")
    if kind not in (_EXACT, _DEFAULT, _SPECIFIED):
        raise _invalid(f"Unknown match type {kind}")


def _matches(entity: QuotaEntity, components: Mapping[str, _Component], *, strict: bool) -> bool:
    parts = dict(entity)
    if strict and len(parts) != len(components):
        return False
    for kind, component in components.items():
        if kind not in parts:
            return False
        if component.match_type == _EXACT and parts[kind] != component.match:
            return False
        if component.match_type == _DEFAULT and parts[kind] is not None:
            return False
    return True


def _described(
    entity: QuotaEntity, values: Mapping[str, float]
) -> DescribeClientQuotasResponseEntryData:
    return DescribeClientQuotasResponseEntryData(
        entity=tuple(
            DescribeClientQuotasResponseEntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        ),
        values=tuple(
            DescribeClientQuotasResponseValueData(key=key, value=value)
            for key, value in values.items()
        ),
    )


# -- altering --------------------------------------------------------------------------------------


def alter_client_quotas(call: ApiCall[AlterClientQuotasRequest]) -> AlterClientQuotasResponse:
    """Change the quotas of each entity whose changes are all acceptable."""
    broker, request = call.broker, call.request
    results: dict[QuotaEntity, AlterClientQuotasResponseEntryData] = {}
    for entry in request.entries:
        entity = quota_entity((part.entity_type, part.entity_name) for part in entry.entity)
        result = AlterClientQuotasResponseEntryData(
            error_message=None,
            entity=tuple(
                AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=name)
                for kind, name in entity
            ),
        )
        try:
            changes = _changes(broker, entity, entry, again=entity in results)
            if not request.validate_only:
                broker.disk.quotas.alter(entity, changes)
        except Refused as refused:
            result.error_code, result.error_message = refused.code, refused.message
        results[entity] = result
    return AlterClientQuotasResponse(entries=tuple(results.values()))


def _changes(
    broker: Broker, entity: QuotaEntity, entry: _Entry, *, again: bool
) -> dict[str, float | None]:
    keys = [op.key for op in entry.ops]
    if again or len(keys) != len(dict.fromkeys(keys)):
        parts = ", ".join(f"{kind}={name or 'null'}" for kind, name in entity)
        raise _invalid(f"Ignoring duplicate entity ClientQuotaEntity(entries={{{parts}}})")
    known = _keys_of(entity)
    changes: dict[str, float | None] = {}
    for op in entry.ops:
        if op.remove:
            changes[op.key] = None
        else:
            _check_value(broker, known, op.key, op.value)
            changes[op.key] = op.value
    return changes


def _keys_of(entity: QuotaEntity) -> Mapping[str, str]:
    """The quotas that an entity may have, with their types."""
    parts = dict(entity)
    if not parts:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in _TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if "ip" not in parts:
        return _CLIENT_KEYS
    if len(parts) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    address = parts["ip"]
    if address is not None and not _is_address(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return _ADDRESS_KEYS


def _is_address(text: str) -> bool:
    """An address, or the one name that resolves everywhere; other names are not looked up."""
    if text == "localhost":
        return True
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(broker: Broker, known: Mapping[str, str], key: str, value: float) -> None:
    kind = known.get(key)
    if kind is None:
        raise _invalid(f"Invalid configuration key {key}")
    if broker.profile.quotas_must_be_finite and not math.isfinite(value):
        raise _invalid(f"Quota {key} must be a finite number")
    if value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    most = _MOST.get(kind)
    if most is None or math.isnan(value):
        return
    if value > most:
        article = "an" if kind == "INT" else "a"
        raise _invalid(f"Proposed value for {key} is too large for {article} {kind}.")
    if abs(int(value + _EPSILON) - value) > _EPSILON:
        raise _invalid(f"{key} cannot be a fractional value.")
