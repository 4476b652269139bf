"""The bytes of worker metadata and assignments: golden ones, and what comes of bad ones."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.connect import (
    ConnectorTaskId,
    ConnectProtocol,
    Items,
    WorkerAssignment,
    WorkerMetadata,
)
from kip848_client.errors import WireError
from tests.support.connect.values import assignments, metadata
from tests.support.examples import examples

URL = "http://h1:8083/"
SMALL = WorkerAssignment("L", "u", 7, Items(("A",), (ConnectorTaskId("A", 0),)))
LARGE = WorkerAssignment(
    "leader-1",
    URL,
    42,
    Items(
        ("A", "B"),
        (
            ConnectorTaskId("A", 0),
            ConnectorTaskId("B", 1),
            ConnectorTaskId("A", 2),
            ConnectorTaskId("C", 0),
        ),
    ),
    Items(("D",), (ConnectorTaskId("D", 0),)),
    300_000,
)

# Written by Kafka's Java classes.
GOLDEN: list[tuple[WorkerMetadata | WorkerAssignment, str]] = [
    (
        WorkerMetadata(URL, 42, version=0),
        "0000000f687474703a2f2f68313a383038332f000000000000002a",
    ),
    (
        WorkerMetadata(URL, 42, version=1),
        "0001000f687474703a2f2f68313a383038332f000000000000002affffffff",
    ),
    (
        WorkerMetadata(URL, 42),
        "0002000f687474703a2f2f68313a383038332f000000000000002affffffff",
    ),
    (
        replace(SMALL, version=0),
        "0000000000014c00017500000000000000070000000100014100000002ffffffff00000000",
    ),
    (
        SMALL,
        (
            "0002000000014c00017500000000000000070000000100014100000002ffffffff"
            "000000000000000000000000"
        ),
    ),
    (
        WorkerMetadata("u", 7, SMALL),
        (
            "000200017500000000000000070000002d"
            "0002000000014c00017500000000000000070000000100014100000002ffffffff"
            "000000000000000000000000"
        ),
    ),
    (
        LARGE,
        (
            "0002000000086c65616465722d31000f687474703a2f2f68313a383038332f000000000000002a"
            "0000000300014100000003ffffffff000000000000000200014200000002ffffffff00000001"
            "00014300000001000000000000000100014400000002ffffffff00000000000493e0"
        ),
    ),
    (
        replace(LARGE, version=0),
        (
            "0000000000086c65616465722d31000f687474703a2f2f68313a383038332f000000000000002a"
            "0000000300014100000003ffffffff000000000000000200014200000002ffffffff00000001"
            "0001430000000100000000"
        ),
    ),
]


@pytest.mark.parametrize(("said", "golden"), GOLDEN)
def test_the_bytes_are_kafkas(said: WorkerMetadata | WorkerAssignment, golden: str) -> None:
    assert said.encode().hex() == golden
    read = type(said).decode(bytes.fromhex(golden), version=said.version)
    assert read.encode().hex() == golden


def test_version_1_differs_in_its_number_only() -> None:
    one, two = replace(LARGE, version=1).encode(), LARGE.encode()
    assert (one[:2], one[2:]) == (b"\0\1", two[2:])


@given(said=metadata())
def test_metadata_comes_back(said: WorkerMetadata) -> None:
    read = WorkerMetadata.decode(said.encode(), version=said.version)
    assert (read.url, read.config_offset, read.version) == (
        said.url,
        said.config_offset,
        said.version,
    )
    assert (read.allocation is None) == (said.allocation is None)


@given(said=assignments())
def test_an_assignment_comes_back_with_the_order_that_matters(said: WorkerAssignment) -> None:
    read = WorkerAssignment.decode(said.encode(), version=said.version)
    for theirs, ours in ((read.assigned, said.assigned), (read.revoked, said.revoked)):
        assert theirs is not None
        assert ours is not None
        assert set(theirs.connectors) == set(ours.connectors)
        for connector in {name for name, _ in ours.tasks}:
            of_it = [task for name, task in ours.tasks if name == connector]
            assert [task for name, task in theirs.tasks if name == connector] == of_it
    bare = replace(read, assigned=None, revoked=None)
    assert bare == replace(said, assigned=None, revoked=None)


def test_items_may_be_null_where_they_travel_elsewhere() -> None:
    said = WorkerAssignment("L", "u", 7, None, None, 40)
    assert WorkerAssignment.decode(said.encode()) == said
    with pytest.raises(WireError, match="version 0"):
        replace(said, version=0).encode()
    eager = replace(SMALL, version=0, assigned=Items()).encode()
    with pytest.raises(WireError, match="null in version 0"):
        WorkerAssignment.decode(eager[:-4] + b"\xff\xff\xff\xff")


def test_what_is_missing_at_the_end_is_null_or_none() -> None:
    whole = WorkerAssignment("L", "u", 7, Items(), Items(), 0)
    head = len(whole.encode()) - 12
    assert WorkerAssignment.decode(whole.encode()[:head]) == replace(
        whole, assigned=None, revoked=None
    )
    assert WorkerMetadata.decode(WorkerMetadata("u", 7).encode()[:-4]) == WorkerMetadata("u", 7)


def test_what_follows_is_left_alone() -> None:
    assert WorkerAssignment.decode(SMALL.encode() + b"more") == replace(SMALL, data=b"more")
    eager = replace(SMALL, version=0)
    assert WorkerAssignment.decode(eager.encode() + b"more") == eager
    later = b"\0\3" + WorkerMetadata("u", 7, SMALL).encode()[2:] + b"more"
    assert WorkerMetadata.decode(later) == WorkerMetadata("u", 7, SMALL, 3, b"more")


def test_an_assignor_may_say_more_than_kafkas() -> None:
    said = WorkerMetadata("u", 7, version=3, data=b"capacity=4")
    assert WorkerMetadata.decode(said.encode(), version=3) == said
    with pytest.raises(WireError, match="version 0 cannot have more data"):
        replace(said, version=0).encode()


def test_an_assignor_may_say_more_than_kafkas_to_a_worker() -> None:
    told = replace(SMALL, version=3, data=b"share=2")
    assert WorkerAssignment.decode(told.encode(), version=3) == told
    assert told.encode() == replace(told, data=b"").encode() + b"share=2"
    with pytest.raises(WireError, match="version 0 cannot have more data"):
        replace(told, version=0).encode()
    inside = WorkerMetadata("u", 7, told, 3)
    assert WorkerMetadata.decode(inside.encode()).allocation == replace(told, data=b"")


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "version would have at least 2 bytes, and 0 are left"),
        (b"\xff\xff", "version -1 is negative"),
        (b"\0\1\xff\xff", "url has a length of -1"),
        (b"\0\1\0\1", "url would have at least 1 bytes"),
        (b"\0\1\0\1\xff", "url is not UTF-8"),
        (
            b"\0\1\0\1u" + bytes(8) + b"\x7f\xff\xff\xff",
            "allocation would have at least",
        ),
    ],
)
def test_metadata_that_cannot_be_read(raw: bytes, told: str) -> None:
    with pytest.raises(WireError, match=f"worker metadata: {told}"):
        WorkerMetadata.decode(raw)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (struct.pack(">i", 2**31 - 1), "assigned would have at least 12884901882 bytes"),
        (struct.pack(">ih1si", 1, 1, b"A", -1), "tasks of A in assigned have a length of -1"),
        (struct.pack(">ih1si", 1, 1, b"A", 2**30), "tasks of A would have at least"),
        (struct.pack(">ih1sii", 1, 1, b"A", 1, -2), "task -2 of A in assigned"),
        (struct.pack(">iii", -1, -1, -1), "the delay is -1 ms"),
    ],
)
def test_an_assignment_that_cannot_be_read(rows: bytes, told: str) -> None:
    raw = WorkerAssignment("L", "u", 7, Items(), Items(), 0).encode()[:-12] + rows
    with pytest.raises(WireError, match=f"worker assignment: {told}"):
        WorkerAssignment.decode(raw)


def test_a_version_that_is_not_what_was_announced() -> None:
    with pytest.raises(WireError, match="it says version 2, and was sent as version 1"):
        WorkerMetadata.decode(WorkerMetadata("u", 7).encode(), version=1)
    with pytest.raises(WireError, match="it says version 2, and was sent as version 0"):
        WorkerAssignment.decode(SMALL.encode(), version=0)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (replace(SMALL, version=-1), "version -1 is negative"),
        (replace(SMALL, version=2**15), "version = 32768"),
        (replace(SMALL, leader="x" * 32_768), "leader has 32768 bytes"),
        (replace(SMALL, leader="\ud800"), "leader: .*surrogates not allowed"),
        (replace(SMALL, delay_ms=2**31), "delay = 2147483648"),
        (replace(SMALL, config_offset=2**63), "config offset"),
        (replace(SMALL, assigned=Items((), (ConnectorTaskId("A", 2**31),))), "tasks of A"),
    ],
)
def test_what_does_not_fit(said: WorkerAssignment, told: str) -> None:
    with pytest.raises(WireError, match=told):
        said.encode()


@settings(max_examples=examples(1_000))
@given(st.binary(max_size=80), st.none() | st.integers(-1, 3))
def test_rubbish_is_a_wire_error(raw: bytes, version: int | None) -> None:
    for kind in (WorkerMetadata, WorkerAssignment):
        try:
            kind.decode(raw, version=version)
        except WireError:
            continue


@settings(max_examples=examples(300))
@given(st.data(), metadata(), assignments())
def test_harmed_bytes_are_a_wire_error_or_another_value(
    data: st.DataObject, worker: WorkerMetadata, told: WorkerAssignment
) -> None:
    for said in (worker, told):
        whole = bytearray(said.encode())
        at = data.draw(st.integers(0, len(whole) - 1))
        harm = data.draw(st.sampled_from(["cut", "changed", "repeated"]))
        if harm == "cut":
            del whole[at:]
        elif harm == "changed":
            whole[at] ^= data.draw(st.integers(1, 255))
        else:
            whole[at:at] = whole[: data.draw(st.integers(1, len(whole)))]
        try:
            type(said).decode(bytes(whole)).encode()
        except WireError:
            continue


def test_the_longest_names_and_many_tasks_fit() -> None:
    tasks = tuple(ConnectorTaskId("x" * 32_767, number) for number in range(1_000))
    said = replace(SMALL, assigned=Items((), tasks))
    read = WorkerAssignment.decode(said.encode()).assigned
    assert read is not None
    assert read.tasks == tasks


def test_the_names_of_the_protocols() -> None:
    assert [each.group_protocol for each in ConnectProtocol.SESSIONED.offered] == [
        "sessioned",
        "compatible",
        "default",
    ]
    assert ConnectProtocol.EAGER.offered == (ConnectProtocol.EAGER,)
    assert ConnectProtocol.of_group_protocol("compatible") is ConnectProtocol.COMPATIBLE
    assert not ConnectProtocol.of_group_protocol("default").is_incremental
    with pytest.raises(ValueError, match="'eager' is not an embedded protocol"):
        ConnectProtocol.of_group_protocol("eager")
