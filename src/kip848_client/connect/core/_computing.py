"""Computes the target of a group of workers (rounds: ``kip848_client.core.assignor_rounds``).

The coordinator does not know the items to distribute: they come from the configuration of the
computing worker, which has to know as much of it as any other worker. Therefore an empty assignment
would be taken as valid, and stop everything. If an assignor fails, the group keeps its assignment
and gets the error; this worker requests another attempt after a growing pause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kip848_client.connect.core._commands import (
    AbandonComputation,
    ComputeTarget,
    InstallTarget,
    PrepareTarget,
    ReadConfiguration,
    WorkerCommand,
)
from kip848_client.connect.core._events import (
    ComputingImpossible,
    ComputingLost,
    TargetComputed,
    TargetInstalled,
    WorkersPrepared,
)
from kip848_client.connect.core._model import (
    AssignedItem,
    Configuration,
    InstallableTarget,
    PreparedWorkers,
    WorkerRow,
    WorkerSettings,
)
from kip848_client.core.assignor_rounds import ComputingRounds, ComputingSettings
from kip848_client.core.client_assignors import ASSIGNOR_FAILED
from kip848_client.core.connect import (
    ITSELF,
    AssignmentMetadata,
    GroupWorker,
    Items,
    TargetAssignment,
    WorkerAssignment,
    WorkerGroup,
    checked_target,
)
from kip848_client.core.member import Report, Severity
from kip848_client.core.types import MemberId
from kip848_client.errors import Kip848Error

__all__ = ["Answer", "Computing"]

Answer = WorkersPrepared | TargetComputed | TargetInstalled | ComputingLost | ComputingImpossible

_NOTHING_MORE: Final = AssignmentMetadata()
RETRY_MS: Final = 250
RETRY_MAX_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class _Held:
    """A computation that waits for the configuration."""

    number: int
    group: PreparedWorkers
    until_ms: int


class _Questions:
    """The questions of a round as commands, with the assignor's arguments and memory. ``emit``
    takes the commands."""

    def __init__(
        self,
        settings: WorkerSettings,
        member_id: MemberId,
        emit: Callable[[WorkerCommand | Report], None],
        suspect_coordinator: Callable[[str], None],
        remaining_delay_ms: Callable[[int], int],
    ) -> None:
        self._worker = settings
        self._member_id = member_id
        self._emit = emit
        self.suspect_coordinator = suspect_coordinator
        self._remaining_delay_ms = remaining_delay_ms
        self.now_ms = 0
        self.memory: object = None
        """The assignor's memory from one computation to the next."""
        self._configuration = Configuration()
        self._held: _Held | None = None
        self._given = WorkerGroup(0, {}, {})
        """The group that was passed to the assignor."""
        self._given_of = self._configuration
        """The configuration at that time. A target belongs to it, even if a newer one is read
        meanwhile."""

    def know(self, configuration: Configuration) -> None:
        """The worker has read this configuration: continue the computation that waits for it."""
        self._configuration = configuration
        held, self._held = self._held, None
        if held is not None:
            self.compute(held.number, held.group, held.until_ms - self.now_ms)

    def prepare(self, number: int, member_epoch: int, timeout_ms: int) -> None:
        """See ``Questions``."""
        self._emit(PrepareTarget(number, member_epoch, timeout_ms))

    def compute(self, number: int, group: PreparedWorkers, timeout_ms: int) -> None:
        """See ``Questions``. A worker that knows less than another one reads the configuration
        first. If it cannot, the round ends."""
        known = [each.config_offset for each in group.workers.values()]
        newest = max((offset for offset in known if offset is not None), default=-1)
        if newest > self._configuration.offset:
            self._held = _Held(number, group, self.now_ms + timeout_ms)
            self._emit(ReadConfiguration(newest))
            return
        self._given_of = self._configuration
        self._given = WorkerGroup(
            group_epoch=group.group_epoch,
            workers=group.workers,
            connectors={
                name: tasks.count for name, tasks in self._configuration.connectors.items()
            },
            now_ms=self.now_ms,
            deferred=group.deferred,
            remaining_delay_ms=self._remaining_delay_ms(self.now_ms),
            scheduled_rebalance_max_delay_ms=self._worker.scheduled_rebalance_max_delay_ms,
        )
        question = ComputeTarget(number, group.assignor, self._given, self.memory, timeout_ms)
        self._emit(question)

    def abandon(self, number: int) -> None:
        """See ``Questions``."""
        if self._held is not None and self._held.number == number:
            self._held = None  # it was not begun
            return
        self._emit(AbandonComputation(number))

    def install(
        self,
        number: int,
        member_epoch: int,
        group: PreparedWorkers,
        result: InstallableTarget,
        timeout_ms: int,
    ) -> None:
        """See ``Questions``."""
        epoch = group.group_epoch
        self._emit(InstallTarget(number, member_epoch, epoch, result, timeout_ms))

    def check(self, group: PreparedWorkers, returned: object) -> InstallableTarget:
        """See ``Questions``."""
        target, memory = checked_target(self._given, returned)
        if target.error:
            return InstallableTarget(error=target.error, memory=memory)
        rows = tuple(
            self._row(member_id, group.workers[member_id], items, target)
            for member_id, items in target.workers.items()
        )
        return InstallableTarget(rows, self._items(target.deferred), memory=memory)

    def failed(self, *, again: bool) -> InstallableTarget:
        """See ``Questions``. The group keeps its assignment, ``again`` or not."""
        del again
        return InstallableTarget(error=ASSIGNOR_FAILED)

    def is_meant_to_be_refused(self, result: InstallableTarget) -> bool:
        """See ``Questions``: never."""
        del result
        return False

    def report(self, error: Kip848Error) -> None:
        """See ``Questions``."""
        self._emit(Report(error, Severity.NOTICE))

    def _row(
        self, member_id: str, worker: GroupWorker, items: Items, target: TargetAssignment
    ) -> WorkerRow:
        more = target.metadata.get(member_id, _NOTHING_MORE)
        version = worker.metadata.version if more.version is None else more.version
        said = WorkerAssignment(
            leader=self._member_id,
            leader_url=self._worker.url,
            config_offset=self._given_of.offset,
            assigned=None if version else Items(),  # the items are sent separately
            revoked=None,
            delay_ms=target.delay_ms,
            version=version,
            data=more.data,
        )
        return WorkerRow(member_id, self._items(items), version, said.encode(), more.error)

    def _items(self, items: Items) -> tuple[AssignedItem, ...]:
        found = [AssignedItem(connector) for connector in items.connectors]
        for connector, task in items.tasks:
            generation = self._given_of.connectors[connector].generation
            assert task != ITSELF, "a connector among tasks"
            found.append(AssignedItem(connector, task, generation))
        return tuple(found)


class Computing(ComputingRounds[PreparedWorkers, InstallableTarget]):
    """This worker's round, if any.

    ``remaining_delay_ms`` returns the rest of the delay that the last assignment announced;
    ``suspect_coordinator``: called if a request shows that the coordinator moved or cannot be
    reached.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        member_id: MemberId,
        backoff_ms: Callable[[int], int],
        emit: Callable[[WorkerCommand | Report], None],
        *,
        suspect_coordinator: Callable[[str], None],
        remaining_delay_ms: Callable[[int], int],
    ) -> None:
        self._numbers = 0
        rounds = ComputingSettings(
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            assignor_timeout_ms=settings.rebalance_timeout_ms,
            request_timeout_ms=settings.request_timeout_ms,
            timeout_setting="rebalance.timeout.ms",
        )
        self._worker_questions = _Questions(
            settings, member_id, emit, suspect_coordinator, remaining_delay_ms
        )
        super().__init__(rounds, self._next, backoff_ms, self._worker_questions)
        self._tries = 0
        self.retry_ms: int | None = None
        """When to request another attempt after the assignor has failed."""

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    # -- events ------------------------------------------------------------------------------

    def answered(self, now_ms: int, answer: Answer) -> None:
        """The driver answered a question. An answer to one that is not open any more is ignored."""
        self._worker_questions.now_ms = now_ms
        match answer:
            case ComputingLost():
                self.lost(now_ms, answer.number, answer.why)
            case ComputingImpossible():
                self.impossible(now_ms, answer.number, answer.error)
            case TargetComputed():
                self.computed(now_ms, answer.number, answer.returned, answer.failure)
            case WorkersPrepared(group=PreparedWorkers() as group):
                self.prepared(now_ms, answer.number, group)
            case TargetInstalled(refusal=None):
                self._on_installed(now_ms, answer.number)
            case WorkersPrepared() | TargetInstalled():
                if answer.refusal is not None:
                    self.refused(now_ms, answer.number, answer.refusal)

    def know(self, now_ms: int, configuration: Configuration) -> None:
        """The worker has read this configuration."""
        self._worker_questions.now_ms = now_ms
        self._worker_questions.know(configuration)

    def another_computed(self) -> None:
        """Another worker computed the newest assignment, so the memory of our assignor is
        outdated."""
        self._worker_questions.memory = None

    def put_out(self) -> None:
        """This worker is not in the group any more, and other workers may compute meanwhile. When
        it comes back, a new assignment is computed in any case."""
        self.another_computed()
        self._tries, self.retry_ms = 0, None

    def take_retry(self, now_ms: int) -> bool:
        """Whether to request another attempt now; true once."""
        if self.retry_ms is None or now_ms < self.retry_ms:
            return False
        self.retry_ms = None
        return True

    def _on_installed(self, now_ms: int, number: int) -> None:
        result = self.installed(now_ms, number)
        if result is None:
            return
        if result.error:
            pause_ms = min(RETRY_MS << min(self._tries, 16), RETRY_MAX_MS)
            self.retry_ms = now_ms + pause_ms
            self._tries += 1
        else:
            self._worker_questions.memory = result.memory
            self._tries, self.retry_ms = 0, None
