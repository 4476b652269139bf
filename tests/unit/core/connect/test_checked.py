"""What an assignor of somebody's own returns: each mistake is told, and only told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kip848_client.core.connect import (
    DATA_MAX,
    AssignmentMetadata,
    AssignorFailed,
    AssignorMetadata,
    Computed,
    ConnectorTaskId,
    GroupWorker,
    Items,
    NewWorkerAssignment,
    TargetAssignment,
    WorkerGroup,
    checked_target,
    computed_target,
)

A_0, A_1 = ConnectorTaskId("A", 0), ConnectorTaskId("A", 1)
GROUP = WorkerGroup(3, {"w1": GroupWorker(2), "w2": GroupWorker(2)}, {"A": 2})
WHOLE = Items(("A",), (A_1, A_0))

OWN_ERROR = 5
"""One of the assignor's own, and none of Kafka's."""
TOO_HIGH = 128
TOO_LOW = -1


class _Own:
    """Returns or raises what it is told to."""

    name = "own"
    minimum_version = 3
    maximum_version = 3

    def __init__(self, result: object) -> None:
        self.result = result
        self.given: list[object] = []

    def metadata(self) -> AssignorMetadata:
        return AssignorMetadata(version=3)

    def assign(self, group: WorkerGroup, memory: object) -> Any:
        self.given += [group, memory]
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def on_assignment(self, assignment: NewWorkerAssignment) -> None:
        pass


def _target(**fields: Any) -> Computed:
    return Computed(TargetAssignment(**fields), "kept")


def test_all_workers_get_their_items_in_order() -> None:
    own = _Own(_target(workers={"w1": WHOLE}, delay_ms=7))
    done = computed_target(own, GROUP, "before")
    assert own.given == [GROUP, "before"]
    in_order = Items(("A",), (A_0, A_1))
    assert done == Computed(TargetAssignment({"w1": in_order, "w2": Items()}, Items(), 7), "kept")


def test_plain_pairs_are_tasks_and_items_may_be_deferred() -> None:
    pairs: Any = [("A", 1)]
    done = checked_target(
        GROUP, _target(workers={"w2": Items((), pairs)}, deferred=Items(("A",), (A_0,)))
    )
    assert done.target.workers["w2"].tasks == (A_1,)
    assert str(done.target.workers["w2"].tasks[0]) == "A-1"
    assert done.target.deferred == Items(("A",), (A_0,))


_Said: Any = AssignmentMetadata


def test_what_is_said_is_of_the_version_that_the_worker_writes_if_none_is_named() -> None:
    workers = {"w1": GroupWorker(2, metadata=AssignorMetadata(version=2)), "w2": GroupWorker(2)}
    group = WorkerGroup(3, workers, {"A": 2})
    said = {
        "w1": _Said(bytearray(b"x"), error=OWN_ERROR),
        "w2": AssignmentMetadata(b"y", 7),
    }
    done = checked_target(group, _target(workers={"w1": WHOLE}, metadata=said))
    assert done.target.metadata == {
        "w1": AssignmentMetadata(b"x", 2, OWN_ERROR),
        "w2": AssignmentMetadata(b"y", 7),
    }
    assert type(done.target.metadata["w1"].data) is bytes


def test_an_error_of_its_own_comes_alone() -> None:
    done = checked_target(GROUP, _target(workers={"nobody": WHOLE}, error=OWN_ERROR))
    assert done.target == TargetAssignment(error=OWN_ERROR)


class _Harmful(Mapping[str, Items]):
    def __getitem__(self, key: str) -> Items:
        raise RuntimeError(key)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no")

    def __len__(self) -> int:
        return 1


_Items: Any = Items
_Computed: Any = Computed  # without types: these are mistakes


def _said(metadata: Any) -> Computed:
    return _target(workers={"w1": WHOLE}, metadata=metadata)


BAD: list[tuple[object, str]] = [
    (None, "it returned None; expected Computed"),
    ((TargetAssignment(), None), "it returned .*; expected Computed"),
    (_Computed("x", None), "its target is 'x'; expected a TargetAssignment"),
    (_target(workers=[WHOLE]), "expected items by member id"),
    (_target(workers={"w9": WHOLE}), "there is no worker 'w9' in the group"),
    (_target(workers={7: WHOLE}), "there is no worker 7 in the group"),
    (_target(workers={"w1": "A"}), "w1: 'A'; expected Items"),
    (_target(workers={"w1": WHOLE}, deferred=None), "the deferred items: None; expected Items"),
    (_target(workers={"w1": WHOLE, "w2": Items(("A",))}), "A is given twice, to w1 and to w2"),
    (_target(workers={"w1": WHOLE, "w2": Items((), (A_1,))}), "A-1 is given twice, to w1 and to"),
    (_target(workers={"w1": WHOLE}, deferred=Items((), (A_0,))), "A-0 is given twice, .* deferred"),
    (_target(workers={"w1": Items(("A",), (A_0, A_1, A_0))}), "w1: an item is there twice"),
    (_target(workers={"w1": Items(("A", "A"), (A_0, A_1))}), "w1: an item is there twice"),
    (_target(workers={"w1": Items((), (A_0, A_1))}), "A is forgotten: no worker has it"),
    (_target(workers={"w1": Items(("A",), (A_0,))}), "A-1 is forgotten"),
    (_target(), "A is forgotten"),
    (_target(workers={"w1": WHOLE, "w2": Items(("B",))}), "w2: B is not configured"),
    (_target(workers={"w1": Items((), (ConnectorTaskId("A", 2),))}), "w1: A-2 is not configured"),
    (_target(workers={"w1": Items((), (ConnectorTaskId("A", -1),))}), "has a negative number"),
    (_target(workers={"w1": _Items("A")}), "connectors = 'A'; expected a tuple"),
    (_target(workers={"w1": _Items((7,))}), "connector 7; expected its name"),
    (_target(workers={"w1": _Items((), ("A-0",))}), "task 'A-0'; expected"),
    (_target(workers={"w1": _Items((), (("A", True),))}), "expected"),
    (_target(workers={"w1": WHOLE}, delay_ms=-1), "delay_ms = -1: expected a number from 0"),
    (_target(workers={"w1": WHOLE}, delay_ms=2**31), "delay_ms = 2147483648"),
    (_target(workers={"w1": WHOLE}, delay_ms=1.5), "delay_ms = 1.5"),
    (_target(error=TOO_HIGH), "error = 128: expected a number from 0 to 127"),
    (_said(None), r"metadata = None: expected AssignmentMetadata by member id"),
    (_said({"w9": AssignmentMetadata()}), "there is no worker 'w9' in the group"),
    (_said({"w1": b"x"}), "w1: expected AssignmentMetadata, got b'x'"),
    (_said({"w1": _Said("x", 1)}), "w1: data = 'x': expected bytes"),
    (_said({"w1": _Said(b"x", True)}), "w1: version = True"),
    (_said({"w1": AssignmentMetadata(b"x", -1)}), "w1: version = -1: expected a number from 0"),
    (_said({"w1": AssignmentMetadata(b"x", 32_768)}), "w1: version = 32768"),
    (_said({"w1": AssignmentMetadata(b"x", 0)}), "w1: metadata of version 0 cannot have data"),
    (_said({"w1": AssignmentMetadata(b"x")}), "w1: metadata of version 0 cannot have data"),
    (_said({"w1": AssignmentMetadata(error=TOO_LOW)}), "w1: error = -1: expected a number from 0"),
    (_said({"w1": AssignmentMetadata(error=TOO_HIGH)}), "w1: error = 128"),
    (
        _said({"w1": AssignmentMetadata(bytes(DATA_MAX + 1), 1)}),
        "1000001 bytes of data, the limit is 1000000",
    ),
    (_target(workers=_Harmful()), "what it returned cannot be read: RuntimeError: no"),
    (OverflowError("what"), r"assign\(\) raised OverflowError: what"),
]


@pytest.mark.parametrize(("result", "told"), BAD)
def test_what_cannot_be(result: object, told: str) -> None:
    with pytest.raises(AssignorFailed, match=told):
        computed_target(_Own(result), GROUP, None)


def test_a_coroutine_is_for_who_can_await_it() -> None:
    async def later() -> Computed:
        return _target(workers={"w1": WHOLE})

    with pytest.raises(AssignorFailed, match="it returned <coroutine"):
        computed_target(_Own(later()), GROUP, None)
