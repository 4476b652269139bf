"""The assignor that docs/reference/connect-assignors.md shows can be used as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kip848_client.core.connect import (
    AssignorFailed,
    GroupWorker,
    Items,
    WorkerGroup,
    WorkerMetadata,
    computed_target,
    group_worker,
)
from tests.support.connect.group import shown

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "connect-assignors.md"


def _assignor(capacity: int) -> Any:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    return names["ByCapacity"](capacity)


def _worker(capacity: int) -> GroupWorker:
    said = _assignor(capacity).metadata()
    metadata = WorkerMetadata("http://w", 1, version=said.version, data=said.data)
    return group_worker(1, Items(), type(said)(metadata.encode(), said.version))


def test_the_page_shows_an_assignor() -> None:
    group = WorkerGroup(1, {"w1": _worker(1), "w2": _worker(2)}, {"A": 2, "B": 2})
    target = computed_target(_assignor(1), group, None).target
    assert {each: shown(items) for each, items in target.workers.items()} == {
        "w1": "A B / A[0]",
        "w2": "- / A[1] B[0]",
    }
    assert shown(target.deferred) == "- / B[1]"


def test_what_it_does_not_think_of_is_told() -> None:
    with pytest.raises(AssignorFailed, match=r"assign\(\) raised ValueError: min\(\)"):
        computed_target(_assignor(1), WorkerGroup(1, {}, {"A": 1}), None)
