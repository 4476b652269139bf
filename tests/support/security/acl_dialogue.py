"""Requests about access control lists that an administrator sends, sensible ones and others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from kip848_client.core.wire import api_named
from tests.support.plain_message import message
from tests.support.security.play import plain
from tests.support.security.principals import Right
from tests.support.security.sides import SecureSide
from tests.support.wire_connection import ConnectionLostError

__all__ = ["acl_answers"]

_Entry = tuple[int, str, int, str, str, int, int]
"""Resource (type, name, pattern type), principal, host, operation and permission type."""
_CREATED: Final = api_named("CreateAcls").response
_DELETED: Final = api_named("DeleteAcls").response
_PATIENCE_S: Final = 20.0

_CREATIONS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"resource_type": 0},
    {"resource_type": 1},
    {"resource_type": 77},
    {"resource_pattern_type": 0},
    {"resource_pattern_type": 1},
    {"resource_pattern_type": 2},
    {"resource_pattern_type": 99},
    {"operation": 0},
    {"operation": 1},
    {"operation": 99},
    {"permission_type": 0},
    {"permission_type": 1},
    {"permission_type": 99},
    {"principal": ""},
    {"principal": "alice"},
    {"principal": ":"},
    {"host": ""},
    {"host": "10.0.0.1"},
    {"resource_type": 4, "resource_name": "x", "resource_pattern_type": 3},
    {"resource_type": 4, "resource_name": "kafka-cluster", "resource_pattern_type": 4},
    {"resource_name": "*", "resource_pattern_type": 3},
    {"resource_name": "*", "resource_pattern_type": 4},
    {"resource_name": "yes-a", "resource_pattern_type": 3, "permission_type": 2},
    {"resource_type": 3, "operation": 4},
    {"resource_type": 7, "operation": 14},
    {"resource_name": ""},
    {"resource_name": "", "principal": "alice"},
)

_FILTERS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"resource_type_filter": 0},
    {"resource_type_filter": 2},
    {"resource_type_filter": 77},
    {"pattern_type_filter": 0},
    {"pattern_type_filter": 2, "resource_name_filter": "yes-a", "resource_type_filter": 2},
    {"pattern_type_filter": 2},
    {"pattern_type_filter": 3, "resource_name_filter": "yes"},
    {"pattern_type_filter": 4, "resource_name_filter": "yes"},
    {"pattern_type_filter": 1, "resource_name_filter": "*"},
    {"pattern_type_filter": 99},
    {"operation": 0},
    {"operation": 3},
    {"operation": 99},
    {"permission_type": 0},
    {"permission_type": 2},
    {"permission_type": 99},
    {"principal_filter": "alice"},
    {"principal_filter": ""},
    {"principal_filter": "User:x", "host_filter": "10.0.0.1"},
    {"principal_filter": "User:x", "host_filter": ""},
    {"host_filter": "*"},
)


def acl_answers(side: SecureSide) -> dict[str, Any]:
    """What the broker answers to each request, in a fixed order; ``None`` where it hung up."""
    answers: dict[str, Any] = {}
    kept = _entries(side)
    for number, request in enumerate(_requests()):
        with side.connect() as admin:
            try:
                answer = admin.request(request, 3)
            except ConnectionLostError:
                answer = None
            else:
                _keep(kept, request, answer)
        answers[f"{number} {type(request).__name__} {request}"] = plain(answer)
        _await_entries(side, kept)
    return answers


def _keep(kept: set[_Entry], request: Any, answer: Any) -> None:
    if type(answer) is _CREATED:
        made = zip(request.creations, answer.results, strict=True)
        kept |= {_entry(each, each) for each, result in made if result.error_code == 0}
    elif type(answer) is _DELETED:
        gone = (each for result in answer.filter_results for each in result.matching_acls)
        kept -= {_entry(each, each) for each in gone if each.error_code == 0}


def _await_entries(side: SecureSide, kept: set[_Entry]) -> None:
    """A broker hears of changes from its controller, after whoever asked for them was answered."""
    deadline = time.monotonic() + _PATIENCE_S
    while (found := _entries(side)) != kept:
        assert time.monotonic() < deadline, (found - kept, kept - found)
        time.sleep(0.02)


def _entries(side: SecureSide) -> set[_Entry]:
    with side.connect() as admin:
        found = admin.request(message("DescribeAcls", **_everything()), 3)
    return {_entry(resource, acl) for resource in found.resources for acl in resource.acls}


def _entry(resource: Any, acl: Any) -> _Entry:
    kind = getattr(resource, "pattern_type", None) or resource.resource_pattern_type
    of_acl = (acl.principal, acl.host, acl.operation, acl.permission_type)
    return resource.resource_type, resource.resource_name, kind, *of_acl


def _requests() -> Iterator[Any]:
    for change in _CREATIONS:
        creation = {**Right("TOPIC", "READ").acl("User:x"), **change}
        yield message("CreateAcls", creations=[creation])
    yield message("CreateAcls", creations=[])
    twice = Right("TOPIC", "READ").acl("User:twice")
    yield message("CreateAcls", creations=[twice, twice])
    for change in _FILTERS:
        yield message("DescribeAcls", **{**_everything(), **change})
    for change in _FILTERS[1:]:
        if change.get("resource_type_filter") != 2 and change != {"pattern_type_filter": 2}:
            yield message("DeleteAcls", filters=[{**_everything(), **change}])
            yield message("DescribeAcls", **_everything())
    yield message("DeleteAcls", filters=[_everything(), _everything()])
    yield message("DescribeAcls", **_everything())


def _everything() -> dict[str, Any]:
    return {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
