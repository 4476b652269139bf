"""The public admin."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Final, Self, Unpack

from kip848_client.admin import _arguments, _groups, _offsets, _topics
from kip848_client.admin._asking import Asking
from kip848_client.admin.core._model import (
    GROUP_STATES,
    GROUP_TYPES,
    CommittedOffset,
    ConfigEntry,
    GroupDescription,
    GroupListing,
    ListedOffset,
    NewTopic,
    TopicDescription,
    TopicListing,
)
from kip848_client.admin.core._reset import OffsetReset
from kip848_client.config import AdminConfig, AdminSettings
from kip848_client.core.ports import Clock
from kip848_client.core.shown import repr_at_any_time
from kip848_client.core.types import TopicPartition
from kip848_client.errors import LocalProtocolError
from kip848_client.runtime._backoff import Backoff
from kip848_client.runtime.arguments import checked_timeout_ms
from kip848_client.runtime.client._observers import Observers
from kip848_client.runtime.client._parts import connection_options
from kip848_client.runtime.client._runtime import ClientRuntime
from kip848_client.runtime.net._transport import KafkaTransport

__all__ = ["Admin"]


def connections(config: AdminConfig, clock: Clock) -> KafkaTransport:
    """Connections to the brokers; none is open yet."""
    return KafkaTransport(config.bootstrap_servers, None, connection_options(config), clock)


class Admin:
    """Looks after groups, their offsets and settings, and topics.

        async with Admin(bootstrap_servers="localhost:9092") as admin:
            for group in await admin.list_groups(states=["Stable"]):
                print(group.group_id, group.type)

    Settings are those of ``Consumer`` for brokers, time and security, see
    ``kip848_client.config.AdminConfig``; a wrong one raises ``ConfigError``.

    Every method goes on trying for ``timeout_ms`` (``default_api_timeout_ms`` where it is not
    given) when coordinators or leaders move or load. Beside what it names it may raise
    ``ConfigError`` for an argument that cannot be meant, ``AdminFailed`` with the errors by group,
    topic or partition, ``TransportError`` when no broker can be reached, and
    ``LocalProtocolError`` when the admin is not started or stopped.
    A call that is cancelled leaves the admin as it was; what it had sent may have been done.
    """

    def __init__(self, **settings: Unpack[AdminSettings]) -> None:
        self._config: Final = AdminConfig.of(settings)
        self._runtime: Final = ClientRuntime("admin")
        self._asking: Asking | None = None

    def __del__(self) -> None:
        runtime = getattr(self, "_runtime", None)  # __init__ may have raised
        if runtime is not None and runtime.is_forgotten:
            warnings.warn(
                f"{self!r} was never stopped: its connections stay open; await stop(), or use "
                "async with",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )

    @repr_at_any_time
    def __repr__(self) -> str:
        return f"<Admin {self._config.bootstrap_servers}>"

    # -- life --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect. Raises ``BootstrapFailed`` that says for each server why not, ``BrokerError``
        when our credentials are refused; make a new admin then. ``LocalProtocolError`` for a second
        ``start``, and when ``stop`` was called before or meanwhile."""
        self._runtime.begin()
        transport = connections(self._config, self._runtime.clock)
        fields = {"client_id": self._config.client_id}
        self._runtime.connect(transport, Observers(self._runtime.clock, fields))
        await self._runtime.open(self._open, self.stop)

    async def _open(self) -> None:
        config, transport = self._config, self._runtime.transport
        await transport.bootstrap()
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._asking = Asking(transport, self._runtime.clock, backoff, config.request_timeout_ms)

    async def stop(self) -> None:
        """Disconnect. Calls that are under way end with ``LocalProtocolError``. Runs to its end
        even if the caller is cancelled; calling it again waits for the end. Before ``start`` it
        forbids that."""
        if not self._runtime.stop_first():
            await self._runtime.close(self._config.request_timeout_ms).finish()

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

    def _begin(self, timeout_ms: float | None) -> tuple[Asking, int]:
        """Who asks, and until when."""
        self._runtime.check_started()
        allowed_ms = (
            self._config.default_api_timeout_ms
            if timeout_ms is None
            else checked_timeout_ms(timeout_ms)
        )
        if self._runtime.was_stopped:
            raise self._runtime.closed()
        if self._asking is None:
            raise LocalProtocolError("the admin is still starting; await start() first")
        return self._asking, self._asking.deadline_ms(allowed_ms)

    # -- groups ------------------------------------------------------------------------------

    async def list_groups(
        self,
        *,
        states: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[GroupListing, ...]:
        """All groups of the cluster that this principal may see, by name.

        ``states`` and ``types`` keep those in one of them (``Stable``, ``Empty``, ...;
        ``Consumer``, ``Classic``, ...), in upper or lower case.
        """
        of_states = _arguments.checked_words(states, GROUP_STATES, "states")
        of_types = _arguments.checked_words(types, GROUP_TYPES, "types")
        asking, deadline_ms = self._begin(timeout_ms)
        return await _groups.list_groups(asking, of_states, of_types, deadline_ms)

    async def describe_groups(
        self, groups: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, GroupDescription]:
        """Groups of consumers and of Connect workers (``connect`` and ``member.worker``), on
        KIP-848 and on the classic protocol, with epochs, members, current and target assignments.

        Raises ``AdminFailed`` with a ``GroupIdNotFound`` for a group that does not exist.
        """
        names = _arguments.checked_groups(groups)
        asking, deadline_ms = self._begin(timeout_ms)
        return await _groups.describe_groups(asking, names, deadline_ms)

    async def delete_groups(
        self, groups: Iterable[str], *, timeout_ms: float | None = None
    ) -> None:
        """Delete groups without members, with their offsets.

        Raises ``AdminFailed`` with NON_EMPTY_GROUP for a group that has members.
        """
        names = _arguments.checked_groups(groups)
        asking, deadline_ms = self._begin(timeout_ms)
        await _groups.delete_groups(asking, names, deadline_ms)

    # -- offsets of groups -------------------------------------------------------------------

    async def list_group_offsets(
        self, group: str, *, require_stable: bool = False, timeout_ms: float | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """What a group has committed, sorted by partition; nothing for an unknown group.

        ``require_stable`` waits for the end of transactions that have offsets of the group.
        """
        name = _arguments.checked_group(group)
        asking, deadline_ms = self._begin(timeout_ms)
        found = await _offsets.fetch(asking, (name,), deadline_ms, stable=require_stable)
        return found[name]

    async def alter_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets for a group without members. A group that does not exist is created.

        Raises ``AdminFailed`` with UNKNOWN_MEMBER_ID by partition for a group with members.
        """
        name = _arguments.checked_group(group)
        commit = _arguments.checked_offsets(offsets)
        asking, deadline_ms = self._begin(timeout_ms)
        await _offsets.commit(asking, name, commit, deadline_ms)

    async def delete_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Forget what a group has committed for some partitions.

        Raises ``AdminFailed`` with GROUP_SUBSCRIBED_TO_TOPIC by partition while a member is
        subscribed to the topic, and with ``GroupIdNotFound``, by partition, too.
        """
        name = _arguments.checked_group(group)
        chosen = _arguments.checked_some_partitions(partitions)
        asking, deadline_ms = self._begin(timeout_ms)
        await _offsets.delete(asking, name, chosen, deadline_ms)

    async def reset_group_offsets(
        self,
        group: str,
        to: OffsetReset,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        dry_run: bool = False,
        create: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, int]:
        """Let a group without members begin elsewhere; returns the new offsets by partition.

        ``to`` says where: ``ToEarliest()``, ``ToLatest()``, ``ToCurrent()``, ``ToOffset(42)``,
        ``ShiftBy(-10)``, ``ToTime(ms since 1970)``, ``ByDuration(ms)``, ``ToPlan({...})``.
        ``partitions`` are those that have a committed offset (or that the plan names) where they
        are not given. ``dry_run`` commits nothing. A group that does not exist raises
        ``GroupIdNotFound`` unless ``create`` is true; one that has members raises
        ``LocalProtocolError`` that names its state.
        """
        name = _arguments.checked_group(group)
        reset = _arguments.checked_reset(to)
        chosen = None if partitions is None else _arguments.checked_some_partitions(partitions)
        asking, deadline_ms = self._begin(timeout_ms)
        now_ms = time.time_ns() // 1_000_000
        planned = await _offsets.plan_reset(
            asking, name, reset, chosen, now_ms, deadline_ms, create=create
        )
        if not dry_run and planned:
            offsets = {tp: CommittedOffset(offset) for tp, offset in planned.items()}
            await _offsets.commit(asking, name, offsets, deadline_ms)
        return planned

    async def list_offsets(
        self,
        times: Mapping[TopicPartition, int],
        *,
        isolation_level: str = "read_uncommitted",
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Offsets of partitions: the first one whose record is so late (ms since 1970), the begin
        of the log (``EARLIEST``) or its end (``LATEST``). For ``read_committed`` a log ends where
        the first open transaction begins."""
        wanted = _arguments.checked_list_times(times)
        committed = _arguments.is_read_committed(isolation_level)
        asking, deadline_ms = self._begin(timeout_ms)
        return await _offsets.list_offsets(asking, wanted, deadline_ms, read_committed=committed)

    # -- settings ----------------------------------------------------------------------------

    async def describe_group_configs(
        self, groups: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, tuple[ConfigEntry, ...]]:
        """The settings of groups (``consumer.session.timeout.ms``, ...); a group need not exist."""
        names = _arguments.checked_groups(groups)
        asking, deadline_ms = self._begin(timeout_ms)
        return await _topics.describe_configs(asking, _topics.GROUP, names, deadline_ms)

    async def alter_group_configs(
        self,
        changes: Mapping[str, Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Set settings of groups; ``None`` gives one back to its default. Others stay."""
        checked = _arguments.checked_changes(changes, _arguments.checked_group)
        asking, deadline_ms = self._begin(timeout_ms)
        await _topics.alter_configs(
            asking, _topics.GROUP, checked, deadline_ms, validate_only=validate_only
        )

    async def describe_topic_configs(
        self, topics: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, tuple[ConfigEntry, ...]]:
        """The settings of topics."""
        names = _arguments.checked_topic_names(topics)
        asking, deadline_ms = self._begin(timeout_ms)
        return await _topics.describe_configs(asking, _topics.TOPIC, names, deadline_ms)

    async def alter_topic_configs(
        self,
        changes: Mapping[str, Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Set settings of topics; ``None`` gives one back to its default. Others stay."""
        checked = _arguments.checked_changes(changes, _arguments.checked_topic)
        asking, deadline_ms = self._begin(timeout_ms)
        await _topics.alter_configs(
            asking, _topics.TOPIC, checked, deadline_ms, validate_only=validate_only
        )

    # -- topics ------------------------------------------------------------------------------

    async def list_topics(self, *, timeout_ms: float | None = None) -> tuple[TopicListing, ...]:
        """All topics that this principal may see, by name."""
        asking, deadline_ms = self._begin(timeout_ms)
        return await _topics.list_topics(asking, deadline_ms)

    async def describe_topics(
        self, topics: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, TopicDescription]:
        """Topics with their partitions, leaders and replicas. None is created by that."""
        names = _arguments.checked_topic_names(topics)
        asking, deadline_ms = self._begin(timeout_ms)
        return await _topics.describe_topics(asking, names, deadline_ms)

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Create topics. Brokers other than the one that was asked may know of them a moment
        later."""
        new = _arguments.checked_new_topics(topics)
        asking, deadline_ms = self._begin(timeout_ms)
        await _topics.create_topics(asking, new, deadline_ms, validate_only=validate_only)

    async def delete_topics(
        self, topics: Iterable[str], *, timeout_ms: float | None = None
    ) -> None:
        """Delete topics with their records."""
        names = _arguments.checked_topic_names(topics)
        asking, deadline_ms = self._begin(timeout_ms)
        await _topics.delete_topics(asking, names, deadline_ms)

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Let topics have so many partitions; there is no way back. Records with a key may go to
        other partitions from then on."""
        checked = _arguments.checked_counts(counts)
        asking, deadline_ms = self._begin(timeout_ms)
        await _topics.create_partitions(asking, checked, deadline_ms, validate_only=validate_only)
