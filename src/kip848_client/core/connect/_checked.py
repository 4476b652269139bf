"""Checks the result of an assignor before it is sent, while the error can still be attributed to
the assignor. The coordinator does not know which items exist, so it cannot notice a missing one.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, cast

from kip848_client.core.client_assignors import AssignorFailed
from kip848_client.core.connect._items import ITSELF, ConnectorTaskId, Items, item_name
from kip848_client.core.connect._model import (
    AssignmentMetadata,
    Computed,
    ConnectAssignor,
    TargetAssignment,
    WorkerGroup,
)
from kip848_client.core.short import error_text, short

__all__ = ["DATA_MAX", "checked_target", "computed_target"]

DATA_MAX: Final = 1_000_000
"""The size limit for an assignor's data, from or to a worker. Coordinators store it in records,
which may have 1,048,588 bytes in total (``message.max.bytes``)."""

_INT16_MAX: Final = 32_767
_INT8_MAX: Final = 127
_INT32_MAX: Final = 2**31 - 1
_DEFERRED: Final = "the deferred items"


def computed_target(assignor: ConnectAssignor, group: WorkerGroup, memory: object) -> Computed:
    """Run an assignor whose ``assign`` is a plain method, and check the result.

    Raises ``AssignorFailed`` if it raises or returns something invalid.
    """
    try:
        returned: Any = assignor.assign(group, memory)
    except Exception as err:  # anything that user code raises
        raise AssignorFailed(f"assign() raised {error_text(err)}") from err
    if inspect.iscoroutine(returned):
        returned.close()
    return checked_target(group, returned)


def checked_target(group: WorkerGroup, returned: object) -> Computed:
    """The target that ``returned`` describes for ``group``: all workers, with their items in order.

    Raises ``AssignorFailed`` if it is invalid: another type, an unknown worker or item, an item at
    two workers, an item that is neither assigned nor deferred, or metadata that cannot be sent.
    """
    try:
        return _checked(group, returned)
    except AssignorFailed:
        raise
    except Exception as err:  # from a mapping or collection class of the user
        raise AssignorFailed(f"what it returned cannot be read: {error_text(err)}") from err


def _checked(group: WorkerGroup, returned: object) -> Computed:
    if not isinstance(returned, Computed):
        raise AssignorFailed(f"it returned {short(returned)}; expected Computed(target, memory)")
    target = cast("Any", returned.target)
    if not isinstance(target, TargetAssignment):
        raise AssignorFailed(f"its target is {short(target)}; expected a TargetAssignment")
    error = _number(target.error, _INT8_MAX, "error")
    if error:
        return Computed(TargetAssignment(error=error), returned.memory)
    delay_ms = _number(target.delay_ms, _INT32_MAX, "delay_ms")
    workers = cast("Any", target.workers)
    if not isinstance(workers, Mapping):
        raise AssignorFailed(f"workers = {short(workers)}: expected items by member id")
    taken: dict[tuple[str, int], str] = {}
    found = dict.fromkeys(group.workers, Items())
    for worker, items in cast("Mapping[Any, object]", workers).items():
        if not isinstance(worker, str) or worker not in group.workers:
            raise AssignorFailed(f"there is no worker {short(worker)} in the group")
        found[worker] = _items(group, worker, items, taken)
    deferred = _items(group, _DEFERRED, target.deferred, taken)
    for connector, count in group.connectors.items():
        for task in range(ITSELF, count):
            if (connector, task) not in taken:
                name = item_name(connector, task)
                raise AssignorFailed(f"{name} is forgotten: no worker has it, nor is it deferred")
    said = _metadata(group, target.metadata)
    return Computed(TargetAssignment(found, deferred, delay_ms, metadata=said), returned.memory)


def _metadata(group: WorkerGroup, given: Any) -> dict[str, AssignmentMetadata]:
    if not isinstance(given, Mapping):
        raise AssignorFailed(f"metadata = {short(given)}: expected AssignmentMetadata by member id")
    found: dict[str, AssignmentMetadata] = {}
    rows: Mapping[Any, Any] = given
    for worker, said in rows.items():
        if not isinstance(worker, str) or worker not in group.workers:
            raise AssignorFailed(f"there is no worker {short(worker)} in the group")
        if not isinstance(said, AssignmentMetadata):
            raise AssignorFailed(f"{worker}: expected AssignmentMetadata, got {short(said)}")
        error = _number(said.error, _INT8_MAX, f"{worker}: error")
        version = group.workers[worker].metadata.version if said.version is None else said.version
        version = _number(version, _INT16_MAX, f"{worker}: version")
        data = cast("Any", said.data)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise AssignorFailed(f"{worker}: data = {short(data)}: expected bytes")
        data = bytes(data)
        if data and version == 0:
            raise AssignorFailed(f"{worker}: metadata of version 0 cannot have data")
        if len(data) > DATA_MAX:
            raise AssignorFailed(f"{worker}: {len(data)} bytes of data, the limit is {DATA_MAX}")
        found[worker] = AssignmentMetadata(data, version, error)
    return found


def _items(
    group: WorkerGroup, holder: str, items: object, taken: dict[tuple[str, int], str]
) -> Items:
    if not isinstance(items, Items):
        raise AssignorFailed(f"{holder}: {short(items)}; expected Items")
    for connector, task in _pairs(holder, items):
        if task not in range(ITSELF, group.connectors.get(connector, ITSELF)):
            raise AssignorFailed(f"{holder}: {item_name(connector, task)} is not configured")
        other = taken.setdefault((connector, task), holder)
        if other is not holder:
            name = item_name(connector, task)
            raise AssignorFailed(f"{name} is given twice, to {other} and to {holder}")
    tasks = sorted(ConnectorTaskId(*each) for each in items.tasks)
    kept = Items(tuple(sorted(items.connectors)), tuple(tasks))
    if len(set(kept.connectors)) + len(set(tasks)) < len(kept):
        raise AssignorFailed(f"{holder}: an item is there twice in {short(kept)}")
    return kept


def _pairs(holder: str, items: Items) -> Iterator[tuple[str, int]]:
    for what, given in (("connectors", items.connectors), ("tasks", items.tasks)):
        if isinstance(cast("Any", given), str) or not isinstance(cast("Any", given), Collection):
            raise AssignorFailed(f"{holder}: {what} = {short(given)}; expected a tuple")
    for connector in cast("Collection[Any]", items.connectors):
        if not isinstance(connector, str):
            raise AssignorFailed(f"{holder}: connector {short(connector)}; expected its name")
        yield connector, ITSELF
    for each in cast("Collection[Any]", items.tasks):
        pair: tuple[Any, ...] = each if isinstance(each, tuple) else ()
        if len(pair) != 2 or not isinstance(pair[0], str) or type(pair[1]) is not int:
            raise AssignorFailed(f"{holder}: task {short(each)}; expected (connector, number)")
        if pair[1] < 0:
            raise AssignorFailed(f"{holder}: task {short(each)} has a negative number")
        yield pair[0], pair[1]


def _number(value: object, high: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise AssignorFailed(f"{what} = {short(value)}: expected a number from 0 to {high}")
    return value
