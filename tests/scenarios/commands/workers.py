"""worker-...: Connect workers on the group protocol (KIP-848 for Connect; not in Kafka).

Items are written like partitions: ``A[c,0-2]`` is connector A itself and its tasks 0 to 2,
``A@3[0,1]`` two tasks of its generation 3 (0 unless given).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from kip848_client.core.connect import ITSELF, resource_of
from kip848_client.core.types import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatRequestAssignor,
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupInstallAssignmentRequestMember,
    ConnectGroupItems,
    ConnectGroupPrepareAssignmentRequest,
)
from tests.scenarios.commands.computing import offers
from tests.scenarios.notation import Arguments, NotationError, partitions_text, read_numbers
from tests.scenarios.scenario_run import DEFAULT_GROUP, Member, ScenarioRun

__all__ = [
    "worker_heartbeat",
    "worker_install",
    "worker_join",
    "worker_leave",
    "worker_prepare",
    "worker_stabilize",
]

_ITEMS: Final = re.compile(
    r"(?P<connector>[\w.-]*)(?:@(?P<generation>-?\d+))?\[(?P<list>[c\d,-]*)\]"
)
_ROUNDS_MAX: Final = 12


def worker_join(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """A heartbeat with epoch 0.

    worker-join W1
    worker-join W1 offers=(inc:1-2 eager:0-0) instance=i1 timeout=10s

    Unless given, the worker offers ``inc:1-2``, its rebalance timeout is 30 s and it owns ``()``.
    Offers are those of ``join``.
    """
    arguments.options.setdefault("owned", [])
    arguments.options.setdefault("timeout", "30s")
    arguments.options.setdefault("offers", "inc:1-2")
    arguments.options.setdefault("epoch", str(JOIN_EPOCH))
    return worker_heartbeat(scenario, arguments)


def worker_heartbeat(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """Any other heartbeat, in the epoch of the last answer and with nothing else unless it is
    given.

    worker-heartbeat W1
    worker-heartbeat W1 owned=(A[c,0-1] B@2[0]) offers=inc:1-2!1 epoch=3 assignor=uniform

    Prints the new epoch, and the items when the response has an assignment.
    """
    member = _member(scenario, arguments)
    owned = arguments.words("owned")
    request = ConnectGroupHeartbeatRequest(
        group_id=scenario.group_id(member.group),
        member_id=member.member_id,
        member_epoch=arguments.number("epoch", member.epoch),
        instance_id=arguments.text("instance"),
        rebalance_timeout_ms=arguments.duration("timeout", None),
        server_assignor=arguments.text("assignor"),
        client_assignors=_offers(arguments.words("offers")),
        owned=None if owned is None else _items(scenario, owned),
    )
    response = scenario.request(request, 0)
    _remember(member, request, response)
    return [_report(scenario, member, response)]


def worker_leave(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """A heartbeat with epoch -1; with ``temporarily`` -2, which a static member sends.

    worker-leave W1
    worker-leave W1 temporarily instance=i1
    """
    temporarily = arguments.flag("temporarily")
    epoch = STATIC_LEAVE_EPOCH if temporarily else LEAVE_EPOCH
    arguments.options.setdefault("epoch", str(epoch))
    return worker_heartbeat(scenario, arguments)


def worker_stabilize(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """Every worker heartbeats and acknowledges until nothing changes. Prints where each ends.

    worker-stabilize
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    workers = [each for each in scenario.members.values() if each.group == group and each.epoch > 0]
    workers.sort(key=lambda each: each.member_id)
    for _ in range(_ROUNDS_MAX):
        before = [(each.epoch, each.owned, each.must_acknowledge) for each in workers]
        for each in workers:
            owned = _items(scenario, _texts(each)) if each.must_acknowledge else None
            request = ConnectGroupHeartbeatRequest(
                group_id=scenario.group_id(group),
                member_id=each.member_id,
                member_epoch=each.epoch,
                owned=owned,
            )
            response = scenario.request(request, 0)
            _remember(each, request, response)
            if response.error_code:
                return [_report(scenario, each, response)]
        if before == [(each.epoch, each.owned, each.must_acknowledge) for each in workers]:
            return [
                f"{scenario.shown(each.member_id)}: epoch {each.epoch}, runs {_text(each.owned)}"
                for each in workers
            ]
    raise NotationError(f"the group did not settle in {_ROUNDS_MAX} rounds")


def worker_prepare(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """The worker that was asked to compute takes the group as it is.

    worker-prepare W1
    """
    member = _member(scenario, arguments)
    request = ConnectGroupPrepareAssignmentRequest(
        group_id=scenario.group_id(member.group),
        member_id=member.member_id,
        member_epoch=arguments.number("epoch", member.epoch),
    )
    response = scenario.request(request, 0)
    shown = scenario.shown(member.member_id)
    if response.error_code:
        return [f"{shown}: {scenario.error_text(response.error_code, response.error_message)}"]
    member.prepared_epoch = response.group_epoch
    deferred = f", deferred {_rows_text(response.deferred)}" if response.deferred else ""
    what = f"group epoch {response.group_epoch}, assignor {response.assignor_name}{deferred}"
    lines = [f"{shown}: {what}"]
    for each in sorted(response.members, key=lambda each: each.member_id):
        pieces = [f"epoch {each.member_epoch}"]
        pieces += [f"instance {each.instance_id}"] if each.instance_id is not None else []
        pieces += [f"version {each.version}"]
        pieces += [f"reason {each.reason}"] if each.reason else []
        pieces.append(f"target {_rows_text(each.items)}")
        lines.append(f"  {scenario.shown(each.member_id)}: {', '.join(pieces)}")
    return lines


def worker_install(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """The worker returns what it computed: the items of each worker, and the deferred ones.

    worker-install W1 W1=A[c,0-1] W2=B[c,0]
    worker-install W1 W1=(A[c] B[0]) deferred=B[c] epoch=1 prepared=2 version=1
    worker-install W1 error=1

    ``prepared`` is the group epoch; it and the member epoch are those of the last answers.
    ``told=W2:5`` gives a worker an error of its own.
    """
    member = _member(scenario, arguments)
    shown = scenario.shown(member.member_id)
    version = arguments.number("version", 2)
    told, _, error = (arguments.text("told") or "").partition(":")
    epoch = arguments.number("epoch", member.epoch)
    group_epoch = arguments.number("prepared", member.prepared_epoch)
    failed = arguments.number("error", 0)
    deferred = _items(scenario, arguments.words("deferred") or ())
    request = ConnectGroupInstallAssignmentRequest(
        group_id=scenario.group_id(member.group),
        member_id=member.member_id,
        member_epoch=epoch,
        group_epoch=group_epoch,
        error=failed,
        members=tuple(
            ConnectGroupInstallAssignmentRequestMember(
                member_id=name,
                error=int(error) if name == told else 0,
                items=_items(scenario, arguments.words(name) or ()),
                version=version,
            )
            for name in list(arguments.options)
        ),
        deferred=deferred,
    )
    response = scenario.request(request, 0)
    if response.error_code:
        return [f"{shown}: {scenario.error_text(response.error_code, response.error_message)}"]
    return [f"{shown}: installed"]


def _member(scenario: ScenarioRun, arguments: Arguments) -> Member:
    name = arguments.word("a worker")
    return scenario.member(name, arguments.text("group", DEFAULT_GROUP) or "")


def _offers(
    texts: tuple[str, ...] | None,
) -> tuple[ConnectGroupHeartbeatRequestAssignor, ...] | None:
    found = offers(texts)
    if found is None:
        return None
    return tuple(
        ConnectGroupHeartbeatRequestAssignor(
            name=each.name,
            minimum_version=each.minimum_version,
            maximum_version=each.maximum_version,
            reason=each.reason,
            version=each.metadata_version,
        )
        for each in found
    )


def _items(scenario: ScenarioRun, texts: Iterable[str]) -> tuple[ConnectGroupItems, ...]:
    rows: list[ConnectGroupItems] = []
    for text in texts:
        match = _ITEMS.fullmatch(text)
        if match is None:
            raise NotationError(f"not items: {text!r}")
        connector, generation = match["connector"], int(match["generation"] or 0)
        pieces = match["list"].split(",")
        tasks = read_numbers(",".join(piece for piece in pieces if piece != "c"))
        row = ConnectGroupItems(
            connector=connector, generation=generation, runs_connector="c" in pieces, tasks=tasks
        )
        scenario.name_resource(resource_of(connector, ITSELF), connector)
        scenario.name_resource(resource_of(connector, generation), _shown_name(row))
        rows.append(row)
    return tuple(rows)


def _shown_name(row: ConnectGroupItems) -> str:
    return row.connector if row.generation == 0 else f"{row.connector}@{row.generation}"


def _by_name(rows: Iterable[ConnectGroupItems]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for row in rows:
        if row.runs_connector:
            found[row.connector] = (ITSELF, *found.get(row.connector, ()))
        if row.tasks:
            name = _shown_name(row)
            found[name] = (*found.get(name, ()), *row.tasks)
    return found


def _text(owned: dict[str, tuple[int, ...]]) -> str:
    return partitions_text(owned)


def _texts(member: Member) -> list[str]:
    return [partitions_text({name: numbers}) for name, numbers in member.owned.items()]


def _rows_text(rows: Iterable[ConnectGroupItems]) -> str:
    return _text(_by_name(rows))


def _remember(member: Member, request: ConnectGroupHeartbeatRequest, response: Any) -> None:
    if response.error_code:
        return
    member.epoch = response.member_epoch
    if request.owned is not None:
        member.must_acknowledge = False
    if response.assignment is not None:
        member.owned = _by_name(response.assignment.items)
        member.must_acknowledge = True


def _report(scenario: ScenarioRun, member: Member, response: Any) -> str:
    shown = scenario.shown(member.member_id)
    if response.error_code:
        return f"{shown}: {scenario.error_text(response.error_code, response.error_message)}"
    line = f"{shown}: epoch {response.member_epoch}"
    if response.assignment is not None:
        line += f", runs {_rows_text(response.assignment.items)}"
        if response.assignment.error:
            line += f", error {response.assignment.error} of the assignor"
    return f"{line}, computes" if response.should_compute_assignment else line
