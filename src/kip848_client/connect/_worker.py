"""``Worker``: shares the configured connectors and tasks with the other workers of its group."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self, Unpack, cast

from kip848_client.config import WorkerConfig, WorkerOptions
from kip848_client.config._client import checked_for_the_wire
from kip848_client.connect._assignor_metadata import offered_versions
from kip848_client.connect._classic_requests import ClassicRequests
from kip848_client.connect._listener import WorkerRebalanceListener, checked_listener
from kip848_client.connect._observers import WorkerObservers
from kip848_client.connect._protocol_selection import (
    GroupProtocol,
    chosen_protocol,
    classic_settings,
    connect_settings,
)
from kip848_client.connect._requests import WorkerRequests
from kip848_client.connect._worker_driver import WorkerDriver
from kip848_client.connect.core._classic_core import ClassicWorkerCore
from kip848_client.connect.core._core import WorkerCore
from kip848_client.connect.core._events import ConfigurationRead, JoinRequested, RebalanceRequested
from kip848_client.connect.core._model import (
    AssignedItem,
    Configuration,
    ConnectorTasks,
)
from kip848_client.core.connect import (
    ConnectAssignor,
    IncrementalCooperativeAssignor,
    RebalanceReason,
)
from kip848_client.core.member import LeaveMode, LeaveRequested, MemberState
from kip848_client.core.short import repr_at_any_time, short
from kip848_client.core.types import GroupId
from kip848_client.core.wire import api_named
from kip848_client.errors import ConfigError, LocalProtocolError
from kip848_client.observe.core.watching import Lifecycle, WorkerHealth
from kip848_client.runtime._backoff import jittered
from kip848_client.runtime._membership import new_member_id
from kip848_client.runtime.arguments import checked_count, checked_timeout_ms
from kip848_client.runtime.client._event_streams import EventHub, EventStream
from kip848_client.runtime.client._parts import connection_options
from kip848_client.runtime.client._runtime import ClientRuntime
from kip848_client.runtime.net._transport import KafkaTransport

__all__ = ["Worker"]

_HEARTBEAT: Final = api_named("ConnectGroupHeartbeat")
_LEAVE_MS: Final = 1_000
"""The time for leaving the group after the listener has stopped everything."""
_REASONS: Final = range(1, 128)
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1


class Worker:
    """One worker of a group that shares the names of connectors and tasks.

    Your program decides what it runs under a name (docs/reference/draft-protocols.md). On Kafka
    4.0 and later the worker is a member of a classic group, like Kafka Connect's own workers. On
    the bundled broker it uses this project's draft of Connect on KIP-848.

    ::

        class Items:
            async def on_assigned(self, items): ...  # start these
            async def on_revoked(self, items): ...  # stop these; then others start them
            async def on_lost(self, items): ...  # stop these at once

        async with Worker({"orders": 3}, Items(), group_id="copiers") as worker:
            await worker.run()  # until it is stopped, or an error that ends it

    Args:
        connectors: The connectors to run: by name, the number of tasks or ``ConnectorTasks``. Must
            be the same in all workers.
        listener: Starts and stops the assigned items.
        version: The version of ``connectors``, from 0. A higher one is newer.
        **options: The fields of ``kip848_client.config.WorkerConfig``, which explains each.

    Raises:
        ConfigError: An option is unknown or wrong, ``connectors`` or ``version`` is invalid, or
            the listener lacks a method.
    """

    def __init__(
        self,
        connectors: Mapping[str, int | ConnectorTasks],
        listener: WorkerRebalanceListener,
        *,
        version: int = 1,
        **options: Unpack[WorkerOptions],
    ) -> None:
        self._config: Final = WorkerConfig.of(options)
        self._configuration = _configuration(connectors, version)
        self._listener: Final = checked_listener(listener)
        given = self._config.assignors or (IncrementalCooperativeAssignor(),)
        self._assignors: Final[dict[str, ConnectAssignor]] = {each.name: each for each in given}
        self._offers = tuple(offered_versions(each) for each in self._assignors.values())
        self._runtime: Final = ClientRuntime("worker")
        self._events: Final = EventHub()
        self._driver: WorkerDriver | None = None

    @repr_at_any_time
    def __repr__(self) -> str:
        return f"<Worker of group {self._config.group_id} at {self._config.bootstrap_servers}>"

    # -- properties --------------------------------------------------------------------------

    @property
    def assigned(self) -> frozenset[AssignedItem]:
        """The items that the listener was called to start, and not yet to stop."""
        return frozenset() if self._driver is None else frozenset(self._driver.runs)

    @property
    def state(self) -> MemberState:
        """The state of the membership."""
        return MemberState.UNSUBSCRIBED if self._driver is None else self._driver.core.state

    @property
    def generation(self) -> int | None:
        """The member epoch, or a classic group's generation.

        ``None`` if not in the group.
        """
        return None if self._driver is None else self._driver.core.member_epoch

    @property
    def group_protocol(self) -> str | None:
        """The group protocol in use: ``connect`` or ``classic``; ``None`` before the start."""
        if self._driver is None:
            return None
        return "classic" if isinstance(self._driver.core, ClassicWorkerCore) else "connect"

    @property
    def member_id(self) -> str | None:
        """The member id; ``None`` before the start.

        The worker generates it; in a classic group the coordinator assigns it, and it is empty
        until then.
        """
        return None if self._driver is None else self._driver.core.member_id

    @property
    def leader_url(self) -> str:
        """The URL of the worker that computed the newest assignment."""
        return "" if self._driver is None else self._driver.core.leader_url

    @property
    def remaining_delay_ms(self) -> int:
        """In how many milliseconds the group computes a new assignment.

        Positive if the newest assignment keeps items for workers that may return, else 0.
        """
        return 0 if self._driver is None else self._driver.remaining_delay_ms

    def health(self) -> WorkerHealth:
        """Get the health: facts, and ``live``, ``ready``, ``problems`` for probes.

        May be called in any state, including before the start (live, not ready) and after a failure
        or stop, and in any thread. Raises nothing.

        Returns:
            A frozen snapshot.
        """
        runtime, driver = self._runtime, self._driver
        fatal = runtime.failure if driver is None else driver.fatal or runtime.failure
        state: MemberState | Lifecycle
        if driver is None or runtime.is_closed:
            state = Lifecycle.STARTING if runtime.was_started else Lifecycle.NOT_STARTED
            if runtime.was_stopped:
                state = Lifecycle.CLOSED
            return WorkerHealth(
                state=state,
                member_epoch=0,
                assigned=0,
                coordinator=None,
                heartbeat_age_ms=None,
                heartbeat_interval_ms=None,
                unreachable_ms=0,
                event_loop_late_ms=0,
                consecutive_fences=0,
                fatal_error=fatal,
            )
        last_ms = driver.last_heartbeat_ms
        return WorkerHealth(
            state=driver.core.state if fatal is None else MemberState.FATAL,
            member_epoch=driver.core.member_epoch or 0,
            assigned=len(driver.core.assigned),
            coordinator=runtime.transport.coordinator_address,
            heartbeat_age_ms=None if last_ms is None else runtime.clock.now_ms() - last_ms,
            heartbeat_interval_ms=driver.core.heartbeat_interval_ms,
            unreachable_ms=driver.unreachable_ms,
            event_loop_late_ms=self._observers.event_loop_late_ms,
            consecutive_fences=driver.consecutive_fences,
            fatal_error=fatal,
            waits=driver.problems(),
        )

    def events(self, *, size: int = 1_000, heartbeats: bool = False) -> EventStream:
        """Stream the events of the membership from now on; iterate with ``async for``.

        Call it before ``start`` to miss nothing. The stream ends when the worker is stopped. Each
        stream has its own queue; a slow reader never delays the worker.

        Args:
            size: How many events the queue holds. If it is full, the oldest are dropped, and the
                reader gets an ``EventsMissed`` with their number.
            heartbeats: Add an event for each heartbeat, with its latency.

        Returns:
            The stream. Its events are those of ``kip848_client.observe``, and ``ItemsAssigned``,
            ``ItemsRevoked`` and ``ItemsLost`` of ``kip848_client.connect``, each with its time and
            the member epoch (in a classic group, the generation).

        Raises:
            ConfigError: ``size`` is not a positive integer.
        """
        return self._events.stream(checked_count(size, "size"), heartbeats=heartbeats)

    async def client_instance_id(self, timeout_ms: int | None = None) -> str:
        """Get the id under which brokers report this client's metrics (KIP-714).

        Waits until a broker has assigned it (Kafka's GetTelemetrySubscriptions). The text is as in
        brokers' logs.

        Args:
            timeout_ms: How long to wait, in milliseconds. Default: ``request_timeout_ms``.

        Returns:
            The id as URL-safe Base64 without padding.

        Raises:
            LocalProtocolError: This worker pushes no metrics, or does not run. Pushing requires the
                setting ``metrics`` and the extra ``telemetry``.
            UnsupportedVersion: The brokers do not accept metrics.
            RequestTimedOut: No broker has answered in time.
        """
        limit_ms: float = self._config.request_timeout_ms
        if timeout_ms is not None:
            limit_ms = checked_timeout_ms(timeout_ms)
        self._running()
        return await self._observers.telemetry.instance_id(int(limit_ms))

    # -- life cycle --------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, and begin to join the group.

        If it raises, everything it had opened is closed: create a new worker. Call ``run`` next.

        Raises:
            BootstrapFailed: No broker answers; the message has the reason for each server.
            BrokerError: The brokers refuse the credentials.
            ProtocolUnsupported: The broker does not have ``group_protocol``.
            ConfigError: The options need a feature that the classic protocol lacks.
            LocalProtocolError: ``start`` or ``stop`` was called before, or ``stop`` while it ran.
        """
        self._runtime.begin()
        config, clock = self._config, self._runtime.clock
        transport = KafkaTransport(
            config.bootstrap_servers, config.group_id, connection_options(config), clock
        )
        hub = self._events.checked_by(self._runtime.home.check)
        observers = self._observers = WorkerObservers(config, clock, hub)
        observers.connected(transport)
        self._runtime.connect(transport, observers)
        await self._runtime.open(self._open, self.stop)

    async def _open(self) -> None:
        link = await self._runtime.transport.bootstrap()
        driver = self._new_driver(chosen_protocol(self._config, link))
        self._observers.chosen(driver.core, lambda: driver.runs)
        self._driver = driver
        self._runtime.run(driver.run())
        await driver.begun()
        driver.post(JoinRequested(self._configuration))
        self._observers.telemetry.begin()

    def _new_driver(self, protocol: GroupProtocol) -> WorkerDriver:
        config, group_id = self._config, GroupId(self._config.group_id)
        transport, clock = self._runtime.transport, self._runtime.clock
        observers = self._observers
        core: WorkerCore | ClassicWorkerCore
        requests: WorkerRequests | ClassicRequests
        if protocol is GroupProtocol.CLASSIC:
            core = ClassicWorkerCore(classic_settings(config), jittered)
            requests = ClassicRequests(group_id, transport, observers.fields)
        else:
            observers.fields["member_id"] = member_id = new_member_id()
            core = WorkerCore(connect_settings(config, self._offers), member_id, jittered)
            requests = WorkerRequests(group_id, member_id, transport, observers.fields)
        labels = {
            "group_id": config.group_id,
            "group_instance_id": config.group_instance_id,
            "group_member_id": core.member_id or None,  # a classic coordinator assigns it later
        }
        observers.push(transport, labels)
        return WorkerDriver(
            core,
            requests,
            self._listener,
            self._assignors,
            clock,
            observers,
            stop_ms=config.task_shutdown_graceful_timeout_ms,
            start_ms=config.rebalance_timeout_ms,
        )

    async def run(self) -> None:
        """Wait until the worker is stopped.

        Raises:
            Kip848Error: The error that ended the worker; call ``stop`` then.
            LocalProtocolError: ``start`` was not called.
        """
        self._runtime.check_started()
        driver, task = self._driver, self._runtime.task
        while driver is not None and task is not None and not task.done():
            if driver.fatal is not None:
                raise driver.fatal
            await driver.stepped()
        if self._runtime.failure is not None and not self._runtime.was_stopped:
            raise self._runtime.failure.with_traceback(None)

    def reconfigure(self, connectors: Mapping[str, int | ConnectorTasks], *, version: int) -> None:
        """Replace the configuration of connectors and tasks.

        The group computes a new assignment if the connectors or their tasks have changed. Call it
        in each worker.

        Args:
            connectors: The number of tasks, or ``ConnectorTasks``, by connector name.
            version: Must be higher than the previous one.

        Raises:
            ConfigError: ``version`` is not higher, or an argument is invalid.
            LocalProtocolError: The worker does not run.
        """
        driver = self._running()
        new, old = _configuration(connectors, version), self._configuration
        if version <= old.offset:
            raise ConfigError(f"version = {version}: the worker knows version {old.offset} already")
        self._configuration = new
        driver.post(ConfigurationRead(new))
        if new.connectors != old.connectors:
            driver.post(RebalanceRequested(RebalanceReason.CONFIGURATION_CHANGED))

    def rebalance(self, reason: int = RebalanceReason.WORKER_CHANGED) -> None:
        """Request a new assignment, because this worker has changed.

        Returns at once; the next heartbeat sends the request. Calls ``metadata()`` of each assignor
        again. The computing worker receives the result and the reason in ``WorkerGroup.workers``.
        In a classic group, which carries no metadata, this worker rejoins with ``reason N`` as the
        reason of its JoinGroup (KIP-800).

        Args:
            reason: A number from 1 to 127; 64 to 127 are for your own reasons.
                ``AssignorMetadata.reason`` takes precedence if an assignor sets it.

        Raises:
            ConfigError: The reason or the metadata cannot be sent; nothing changes.
            LocalProtocolError: The worker does not run.
        """
        driver = self._running()
        given: Any = reason
        if isinstance(given, bool) or not isinstance(given, int) or given not in _REASONS:
            raise ConfigError(f"reason = {short(reason)}: expected a number from 1 to 127")
        self._offers = tuple(offered_versions(each) for each in self._assignors.values())
        driver.post(RebalanceRequested(int(reason), self._offers))

    async def stop(self) -> None:
        """Stop this worker's items, leave the group, and disconnect.

        The listener has ``task_shutdown_graceful_timeout_ms`` to stop the items. Once begun, it
        runs to its end even if the caller is cancelled. A second call waits for the first. A call
        before ``start`` forbids ``start``.

        Raises:
            LocalProtocolError: A method of the listener calls it; call it in another task.
        """
        self._runtime.check_home()
        if self._driver is not None and self._driver.in_listener:
            raise LocalProtocolError(
                "stop() would wait for the listener that calls it; stop from another task"
            )
        if self._runtime.stop_first():
            self._events.close()
        else:
            patience_ms = self._config.task_shutdown_graceful_timeout_ms + _LEAVE_MS
            await self._runtime.close(patience_ms, (self._leave,)).finish()

    async def _leave(self) -> None:
        driver, task = self._driver, self._runtime.task
        if driver is None or task is None or task.done() or driver.core.closed:
            return
        driver.post(LeaveRequested(LeaveMode.DEFAULT, self._runtime.close_by_ms, final=True))
        await driver.left()

    def _running(self) -> WorkerDriver:
        self._runtime.check_started()
        if self._runtime.was_stopped:
            raise self._runtime.closed()
        if self._driver is None:
            raise LocalProtocolError("the worker is still starting; await start() first")
        return self._driver

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


def _configuration(connectors: Mapping[str, int | ConnectorTasks], version: int) -> Configuration:
    """The configuration, checked. Raises ``ConfigError``."""
    if type(cast("Any", version)) is not int or not 0 <= version <= _INT64_MAX:
        raise ConfigError(f"version = {short(version)}: expected a number from 0")
    if not isinstance(cast("Any", connectors), Mapping):
        raise ConfigError(f"connectors = {short(connectors)}: expected tasks by connector")
    found: dict[str, ConnectorTasks] = {}
    for name, tasks in cast("Mapping[Any, Any]", connectors).items():
        if not isinstance(name, str) or not name:
            raise ConfigError(f"connector {short(name)}: expected a name")
        try:
            checked_for_the_wire(name)
        except ValueError as err:
            raise ConfigError(f"connector {short(name)}: {err}") from err
        given = tasks if isinstance(tasks, ConnectorTasks) else ConnectorTasks(tasks)
        for number in (given.count, given.generation):
            if type(number) is not int or not 0 <= number <= _INT32_MAX:
                raise ConfigError(f"tasks of {name} = {short(tasks)}: expected how many, 0 or more")
        found[name] = given
    return Configuration(version, found)
