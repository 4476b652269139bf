"""The commands of scenario files: one handler each.

A handler takes the run and the split command line and returns the lines it prints; nothing is
printed as ``ok``. Its docstring is the command's reference, with examples. What else has been
answered in the meantime follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.scenarios.commands.classic import (
    group_heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from tests.scenarios.commands.clock import advance, settle
from tests.scenarios.commands.computing import install, prepare
from tests.scenarios.commands.groups import (
    delete_group,
    describe,
    describe_classic,
    list_groups,
    targets,
)
from tests.scenarios.commands.inspection import crash, records, state, timers
from tests.scenarios.commands.membership import heartbeat, join, leave, stabilize
from tests.scenarios.commands.offsets import commit, delete_offsets, fetch
from tests.scenarios.commands.topics import group_config, topic
from tests.scenarios.commands.transactions import end, producer, txn_commit
from tests.scenarios.commands.workers import (
    worker_heartbeat,
    worker_install,
    worker_join,
    worker_leave,
    worker_prepare,
    worker_stabilize,
)
from tests.scenarios.notation import Arguments, NotationError
from tests.scenarios.scenario_run import ScenarioRun

__all__ = ["COMMANDS", "Handler", "run"]

Handler = Callable[[ScenarioRun, Arguments], list[str]]

COMMANDS: Final[Mapping[str, Handler]] = {
    "join": join,
    "heartbeat": heartbeat,
    "leave": leave,
    "stabilize": stabilize,
    "prepare": prepare,
    "install": install,
    "worker-join": worker_join,
    "worker-heartbeat": worker_heartbeat,
    "worker-leave": worker_leave,
    "worker-stabilize": worker_stabilize,
    "worker-prepare": worker_prepare,
    "worker-install": worker_install,
    "join-group": join_group,
    "sync-group": sync_group,
    "group-heartbeat": group_heartbeat,
    "leave-group": leave_group,
    "commit": commit,
    "fetch": fetch,
    "delete-offsets": delete_offsets,
    "producer": producer,
    "txn-commit": txn_commit,
    "end": end,
    "describe": describe,
    "targets": targets,
    "describe-classic": describe_classic,
    "list": list_groups,
    "delete-group": delete_group,
    "topic": topic,
    "group-config": group_config,
    "advance": advance,
    "settle": settle,
    "state": state,
    "timers": timers,
    "records": records,
    "crash": crash,
}


def run(scenario: ScenarioRun, line: str) -> list[str]:
    """Run one command line. Raises ``NotationError`` for one that cannot be read."""
    arguments = Arguments.parse(line)
    handler = COMMANDS.get(arguments.command)
    if handler is None:
        raise NotationError(f"no command {arguments.command!r}; there are {', '.join(COMMANDS)}")
    printed = handler(scenario, arguments) or ["ok"]
    arguments.done()
    return printed + scenario.late_answers()
