"""One error for a whole request, for every API and version."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.wire import APIS, Api, decode, encode
from kip848_client.core.wire._fields import field_specs
from kip848_client.core.wire.messages.fetch import FetchResponse
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kip848_client.core.wire.messages.groups import DescribeGroupsRequest, DescribeGroupsResponse
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kip848_client.core.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kip848_client.core.wire.messages.produce import ProduceRequest, ProduceResponse
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.faults import refusal

CODE = ErrorCode.NOT_COORDINATOR
WITHOUT_ROWS = {"DescribeTopicPartitions", "AlterReplicaLogDirs", "DeleteAcls", "CreateAcls"}


def filled(cls: type[Any], version: int) -> Any:
    """A message with one row in every array."""
    values: dict[str, Any] = {}
    for name, spec, default in field_specs(cls):
        if version not in spec.versions and version not in spec.tagged:
            continue
        if spec.kind == "array":
            element = spec.element
            if isinstance(element, type):
                values[name] = (filled(element, version),)
            else:
                values[name] = ({"string": "x", "uuid": b"i" * 16}.get(str(element), 7),)
        elif spec.kind == "struct" and isinstance(spec.element, type):
            values[name] = filled(spec.element, version)
        elif spec.kind == "string":
            values[name] = "x"
        elif default is None:
            values[name] = b""
    return cls(**values)


def errors(value: Any) -> list[int]:
    """All error codes in a message."""
    found: list[int] = []
    for name, spec, _ in field_specs(type(value)):
        inner = getattr(value, name)
        if name in ("error_code", "partition_error_code"):
            found.append(inner)
        elif isinstance(spec.element, type):
            for each in inner if isinstance(inner, tuple) else [inner] if inner else []:
                found += errors(each)
    return found


def every_version() -> list[tuple[Api, int]]:
    return [
        (api, version)
        for api in APIS.values()
        for version in range(api.versions[0], api.versions[1] + 1)
    ]


@pytest.mark.parametrize(
    ("api", "version"), every_version(), ids=lambda each: getattr(each, "name", str(each))
)
def test_every_response_can_carry_it(api: Api, version: int) -> None:
    response = refusal(filled(api.request, version), version, CODE)
    assert isinstance(response, api.response)
    again = decode(api.response, version, encode(response, version))
    carried = errors(again)
    assert set(carried) <= {CODE, 0}
    if api.name not in WITHOUT_ROWS:
        assert CODE in carried, "the client must learn of the error"


def test_rows_are_those_of_the_request() -> None:
    request = filled(OffsetCommitRequest, 9)
    response = refusal(request, 9, CODE)
    assert isinstance(response, OffsetCommitResponse)
    (topic,) = response.topics
    assert topic.name == "x"
    assert topic.partitions[0].partition_index == request.topics[0].partitions[0].partition_index
    produced = refusal(filled(ProduceRequest, 9), 9, CODE, "no")
    assert isinstance(produced, ProduceResponse)
    row = produced.responses[0].partition_responses[0]
    assert (row.error_code, row.error_message, row.base_offset) == (CODE, "no", -1)
    described = refusal(DescribeGroupsRequest(groups=("g", "h")), 5, CODE)
    assert isinstance(described, DescribeGroupsResponse)
    assert [each.group_id for each in described.groups] == ["g", "h"]
    found = refusal(FindCoordinatorRequest(coordinator_keys=("g",)), 4, CODE)
    assert isinstance(found, FindCoordinatorResponse)
    assert (found.coordinators[0].key, found.coordinators[0].node_id) == ("g", -1)


def test_an_error_of_the_row_stands_for_what_is_inside() -> None:
    response = refusal(filled(OffsetFetchRequest, 9), 9, CODE)
    assert isinstance(response, OffsetFetchResponse)
    (group,) = response.groups
    assert (group.group_id, group.error_code, group.topics) == ("x", CODE, ())
    fetched = refusal(filled(APIS[1].request, 13), 13, CODE)
    assert isinstance(fetched, FetchResponse)
    assert (fetched.error_code, fetched.responses) == (CODE, ())
