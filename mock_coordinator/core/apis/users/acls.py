"""CreateAcls (key 30), DescribeAcls (29) and DeleteAcls (31): administration of access control
lists (KIP-140, KIP-290)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kip848_client.core.wire.messages.acls import (
    CreateAclsRequest,
    CreateAclsRequestAclCreation,
    CreateAclsResponse,
    CreateAclsResponseAclCreationResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeleteAclsResponseDeleteAclsFilterResult,
    DeleteAclsResponseDeleteAclsMatchingAcl,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeAclsResponseAclDescription,
    DescribeAclsResponseDescribeAclsResource,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from mock_coordinator.core.security.authorizer import Authorizer
from mock_coordinator.core.state.broker import Broker

__all__ = ["ACL_REQUESTS", "create_acls", "delete_acls", "describe_acls", "is_unreadable"]

ACL_REQUESTS: Final = (CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest)

_UNKNOWN: Final = 0
_ANY: Final = 1
_MATCH: Final = 2

_NO_AUTHORIZER: Final = "No Authorizer is configured."
_NO_AUTHORIZER_HERE: Final = "No Authorizer is configured on the broker"


def is_unreadable(request: Any) -> bool:
    """Whether a request names an unknown type (0), which closes its connection."""
    if isinstance(request, CreateAclsRequest):
        return any(
            _UNKNOWN
            in (
                each.resource_type,
                each.resource_pattern_type,
                each.operation,
                each.permission_type,
            )
            for each in request.creations
        )
    filters = request.filters if isinstance(request, DeleteAclsRequest) else (request,)
    return any(
        _UNKNOWN
        in (
            each.resource_type_filter,
            each.pattern_type_filter,
            each.operation,
            each.permission_type,
        )
        for each in filters
    )


# -- creating --------------------------------------------------------------------------------------


def create_acls(call: ApiCall[CreateAclsRequest]) -> CreateAclsResponse:
    """Add entries, each on its own. Adding an existing entry is not an error."""
    broker, request = call.broker, call.request
    authorizer = broker.disk.security.authorizer
    results: list[CreateAclsResponseAclCreationResult] = []
    for creation in request.creations:
        result = CreateAclsResponseAclCreationResult(error_message="")
        if authorizer is None:
            result.error_code = ErrorCode.SECURITY_DISABLED
            result.error_message = _NO_AUTHORIZER
        else:
            problem = _problem(broker, creation)
            if problem is None:
                authorizer.table.add(_acl(creation))
            else:
                result.error_code, result.error_message = problem
        results.append(result)
    return CreateAclsResponse(results=tuple(results))


def _problem(
    broker: Broker, creation: CreateAclsRequestAclCreation
) -> tuple[ErrorCode, str | None] | None:
    cluster = creation.resource_type == ResourceType.CLUSTER
    if cluster and creation.resource_name != CLUSTER_NAME:
        text = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return ErrorCode.INVALID_REQUEST, text
    if not creation.resource_name:
        return ErrorCode.INVALID_REQUEST, "Invalid empty resource name"
    numbers = (
        ("resourceType", creation.resource_type, tuple(ResourceType)),
        ("patternType", creation.resource_pattern_type, tuple(PatternType)),
        ("operation", creation.operation, tuple(Operation)),
        ("permissionType", creation.permission_type, tuple(Permission)),
    )
    # what only a filter may say fails inside Kafka before anything is looked at
    if any(number in (_ANY, _MATCH) and number not in known for _, number, known in numbers):
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    for what, number, known in numbers:
        if number not in known:
            return ErrorCode.INVALID_REQUEST, f"Invalid {what} UNKNOWN"
    if ":" not in creation.principal:
        text = (
            f"Could not parse principal from `{creation.principal}` (no colon is present "
            "separating the principal type from the principal name)"
        )
        return ErrorCode.INVALID_REQUEST, text
    if not creation.host and broker.profile.acl_hosts_required:
        return ErrorCode.INVALID_REQUEST, "Host pattern cannot be null or empty"
    return None


def _acl(creation: CreateAclsRequestAclCreation) -> Acl:
    return Acl(
        ResourceType(creation.resource_type),
        creation.resource_name,
        PatternType(creation.resource_pattern_type),
        creation.principal,
        creation.host,
        Operation(creation.operation),
        Permission(creation.permission_type),
    )


# -- finding ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Filter:
    """Which entries are meant; 1 in a number and ``None`` in a text stand for anything."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @classmethod
    def of(cls, asked: Any) -> _Filter:
        return cls(
            asked.resource_type_filter,
            asked.resource_name_filter,
            asked.pattern_type_filter,
            asked.principal_filter,
            asked.host_filter,
            asked.operation,
            asked.permission_type,
        )

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (_ANY, acl.resource_type)
            and self._matches_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (_ANY, acl.operation)
            and self.permission in (_ANY, acl.permission)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        """MATCH finds every entry that covers the name; any other type finds the name as it
        stands."""
        if self.pattern_type not in (_ANY, _MATCH, acl.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type != _MATCH:
            return self.name == acl.name
        if acl.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name in (self.name, WILDCARD)


def describe_acls(call: ApiCall[DescribeAclsRequest]) -> DescribeAclsResponse:
    """The entries that a filter matches, by resource pattern."""
    broker, request = call.broker, call.request
    authorizer = broker.disk.security.authorizer
    if authorizer is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=_NO_AUTHORIZER_HERE
        )
    wanted = _Filter.of(request)
    found: dict[tuple[ResourceType, str, PatternType], list[Acl]] = {}
    for acl in authorizer.table:
        if wanted.matches(acl):
            found.setdefault((acl.resource_type, acl.name, acl.pattern_type), []).append(acl)
    return DescribeAclsResponse(
        error_message="",
        resources=tuple(
            DescribeAclsResponseDescribeAclsResource(
                resource_type=kind,
                resource_name=name,
                pattern_type=pattern,
                acls=tuple(
                    DescribeAclsResponseAclDescription(
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission,
                    )
                    for acl in acls
                ),
            )
            for (kind, name, pattern), acls in found.items()
        ),
    )


def delete_acls(call: ApiCall[DeleteAclsRequest]) -> DeleteAclsResponse:
    """Remove what each filter matches. Filters see the table as it was before the request."""
    broker, request = call.broker, call.request
    authorizer = broker.disk.security.authorizer
    if authorizer is None:
        result = DeleteAclsResponseDeleteAclsFilterResult(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=_NO_AUTHORIZER
        )
        return DeleteAclsResponse(filter_results=(result,) * len(request.filters))
    to_delete: dict[Acl, None] = {}
    results = tuple(_deleted(authorizer, asked, to_delete) for asked in request.filters)
    for acl in to_delete:
        authorizer.table.remove(acl)
    return DeleteAclsResponse(filter_results=results)


def _deleted(
    authorizer: Authorizer, asked: Any, to_delete: dict[Acl, None]
) -> DeleteAclsResponseDeleteAclsFilterResult:
    unknown = _unknown_part(asked)
    if unknown:
        return DeleteAclsResponseDeleteAclsFilterResult(
            error_code=ErrorCode.INVALID_REQUEST, error_message=f"Unknown {unknown}."
        )
    wanted = _Filter.of(asked)
    matching = [acl for acl in authorizer.table if wanted.matches(acl)]
    to_delete.update(dict.fromkeys(matching))
    return DeleteAclsResponseDeleteAclsFilterResult(
        error_message=None,
        matching_acls=tuple(
            DeleteAclsResponseDeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in matching
        ),
    )


def _unknown_part(asked: Any) -> str:
    known_types = (_ANY, *ResourceType)
    known_patterns = (_ANY, _MATCH, *PatternType)
    if asked.resource_type_filter not in known_types or asked.pattern_type_filter not in (
        known_patterns
    ):
        return "patternFilter"
    known = asked.operation in (_ANY, *Operation) and asked.permission_type in (_ANY, *Permission)
    return "" if known else "entryFilter"
