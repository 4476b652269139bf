"""A group of Connect workers in ``kip848 groups``, as tables and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kip848_client.admin.core._model import (
    ConnectDescription,
    GroupDescription,
    MemberDescription,
    WorkerDescription,
    WorkerItem,
)
from kip848_client.cli.core._tables import NOTHING, Column, Fit, Form, Table
from kip848_client.cli.groups.core import _views as views

__all__ = [
    "items_data",
    "items_table",
    "workers_data",
    "workers_state_data",
    "workers_state_table",
    "workers_table",
]

_WORKER: Final = Column("WORKER-ID", grows=True, fit=Fit.SHORTENED)
_URL: Final = Column("URL", grows=True, fit=Fit.SHORTENED)
_HOST: Final = Column("HOST", grows=True, fit=Fit.SHORTENED, may_go=True)
_ITEMS_WIDTH: Final = 20
_NOTHING_TOLD: Final = ConnectDescription(None, None)
_NO_WORKER: Final = WorkerDescription(None, None, ())


def _of(group: GroupDescription) -> ConnectDescription:
    return group.connect or _NOTHING_TOLD


def _worker(member: MemberDescription) -> WorkerDescription:
    return member.worker or _NO_WORKER


# -- items -----------------------------------------------------------------------------------------


def _rows(group: GroupDescription) -> list[tuple[WorkerItem, MemberDescription | None, str]]:
    """Each item with its worker and its state."""
    found: list[tuple[WorkerItem, MemberDescription | None, str]] = []
    for member in group.members:
        worker = _worker(member)
        found += [(item, member, "Running") for item in worker.assignment]
        found += [(item, member, "Stopping") for item in worker.revoking]
    held = {item for item, _, _ in found}
    deferred = {*_of(group).deferred}
    found += [(item, None, "Deferred") for item in deferred - held]
    awaited = {item for each in group.members for item in _worker(each).target_assignment or ()}
    found += [(item, None, "Waiting") for item in awaited - held - deferred]
    return sorted(found, key=_by_item)


def _by_item(row: tuple[WorkerItem, MemberDescription | None, str]) -> tuple[str, int, str]:
    item, member, _ = row
    task = -1 if item.task is None else item.task
    return item.connector, task, "" if member is None else member.member_id


def items_table(group: GroupDescription, *, types: bool = False) -> Table:
    """Connectors and tasks, and where they run."""
    columns = [
        views.GROUP,
        views.type_column(types=types),
        Column("CONNECTOR", grows=True, fit=Fit.FOLDED),
        Column("TASK", 5),
        Column("GENERATION", 11, short="GEN"),
        Column("STATE", 9),
        _WORKER,
        _URL,
        _HOST,
    ]
    rows = [
        (
            group.group_id,
            views.type_text(group),
            item.connector,
            item.task,
            item.generation,
            state,
            *(
                (None, None, None)
                if member is None
                else (member.member_id, _worker(member).url or None, member.host)
            ),
        )
        for item, member, state in _rows(group)
    ]
    return Table(columns, rows)


def items_data(group: GroupDescription) -> list[dict[str, Any]]:
    """The data for ``--json``."""
    return [
        {
            **_item(item),
            "state": state,
            "worker_id": None if member is None else member.member_id,
            "url": None if member is None else _worker(member).url,
        }
        for item, member, state in _rows(group)
    ]


def _item(item: WorkerItem) -> dict[str, Any]:
    return {"connector": item.connector, "task": item.task, "generation": item.generation}


# -- workers ---------------------------------------------------------------------------------------


def _text(items: Iterable[WorkerItem] | None) -> str:
    """``orders,orders-0,orders-1``."""
    return ",".join(map(str, items or ())) or NOTHING


_EPOCHS_AND_ITEMS: Final = (
    Column("STATE", 11),
    Column("CURRENT-EPOCH", short="EPOCH"),
    Column("CURRENT-ITEMS", _ITEMS_WIDTH, grows=True, short="ITEMS", fit=Fit.FOLDED),
    Column("TARGET-EPOCH", short="OF"),
    Column("TARGET-ITEMS", _ITEMS_WIDTH, grows=True, form=Form.PLAIN),
    Column("TARGET", fit=Fit.FOLDED, form=Form.FITTED),
)


def workers_table(group: GroupDescription, *, verbose: bool, types: bool = False) -> Table:
    """The workers."""
    tells = group.type == "Connect"
    columns: list[Column] = [
        views.GROUP,
        views.type_column(types=types),
        _WORKER,
        Column("GROUP-INSTANCE-ID", 17, grows=True, short="INSTANCE-ID", may_go=True),
        _URL,
        _HOST,
        Column("CLIENT-ID", grows=True, fit=Fit.SHORTENED, may_go=True),
        Column("#ITEMS", 7, short="N"),
        *(_EPOCHS_AND_ITEMS if verbose else ()),
        *(views.SAID if verbose and tells else ()),
    ]
    rows = [
        (
            group.group_id,
            views.type_text(group),
            each.member_id,
            each.instance_id,
            _worker(each).url or None,
            each.host,
            each.client_id,
            len(_worker(each).assignment),
            *(_epochs_and_items(group, each) if verbose else ()),
            *(views.said_cells(group, each) if verbose and tells else ()),
        )
        for each in group.members
    ]
    return Table(columns, rows)


def _epochs_and_items(group: GroupDescription, member: MemberDescription) -> Sequence[object]:
    worker = _worker(member)
    has, target = _text(worker.assignment), _text(worker.target_assignment)
    return (
        worker.state,
        member.epoch,
        has,
        None if worker.target_assignment is None else group.target_assignment_epoch,
        target,
        "same" if worker.target_assignment == worker.assignment else target,
    )


def workers_data(group: GroupDescription) -> list[dict[str, Any]]:
    """The data for ``--json``."""
    return [
        {
            "worker_id": each.member_id,
            "group_instance_id": each.instance_id,
            "url": _worker(each).url,
            "host": each.host,
            "client_id": each.client_id,
            "config_offset": _worker(each).config_offset,
            "metadata_version": _worker(each).metadata_version,
            "state": _worker(each).state,
            "current_epoch": each.epoch,
            "current_items": _items(_worker(each).assignment),
            "revoking_items": _items(_worker(each).revoking),
            "target_epoch": group.target_assignment_epoch,
            "target_items": _items(_worker(each).target_assignment),
            "is_classic": each.is_classic,
            "assignor_said": views.said_data(each.said),
            "assignor_said_with_target": views.said_data(each.target_said),
        }
        for each in group.members
    ]


def _items(items: Iterable[WorkerItem] | None) -> list[dict[str, Any]] | None:
    return None if items is None else [*map(_item, items)]


# -- state -----------------------------------------------------------------------------------------


def workers_state_table(group: GroupDescription, *, verbose: bool, types: bool = False) -> Table:
    """The group as a whole."""
    node, connect = group.coordinator, _of(group)
    epochs = [Column("GROUP-EPOCH", short="EPOCH"), Column("TARGET-EPOCH", short="TARGET")]
    more = [Column("ERROR", 6), Column("COMPUTING", grows=True, fit=Fit.SHORTENED)]
    columns = [
        views.GROUP,
        views.type_column(types=types),
        Column("COORDINATOR (ID)", 25, grows=True, fit=Fit.SHORTENED),
        Column("ASSIGNMENT-STRATEGY", 20, grows=True, short="ASSIGNOR", fit=Fit.SHORTENED),
        Column("STATE", 20),
        Column("LEADER", grows=True, fit=Fit.SHORTENED),
        Column("#DEFERRED", 10, short="DEFERRED"),
        Column("DELAY-MS", 9),
        *((*epochs, *more) if verbose else ()),
        Column("#MEMBERS", 0),
    ]
    row = (
        group.group_id,
        views.type_text(group),
        f"{node.host}:{node.port}  ({node.node_id})",
        group.assignor or NOTHING,
        group.state,
        connect.leader_url or connect.leader,
        len(connect.deferred) if group.type == "Connect" else None,
        connect.delay_ms,
        *((group.group_epoch, group.target_assignment_epoch) if verbose else ()),
        *((connect.assignor_error, connect.computing) if verbose else ()),
        len(group.members),
    )
    return Table(columns, [row])


def workers_state_data(group: GroupDescription) -> dict[str, Any]:
    """The data for ``--json``."""
    connect = _of(group)
    return {
        **views.state_data(group),
        "leader": connect.leader,
        "leader_url": connect.leader_url,
        "computing": connect.computing,
        "assignor_error": connect.assignor_error,
        "deferred": _items(connect.deferred),
        "delay_ms": connect.delay_ms,
    }
