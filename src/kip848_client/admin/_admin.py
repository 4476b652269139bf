"""The public admin."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Final, Self, Unpack

from kip848_client.admin import _arguments, _groups, _offsets, _topics
from kip848_client.admin._request_router import RequestRouter
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
from kip848_client.core.short import repr_at_any_time
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
    """Manage groups, their offsets and settings, and topics.

    ::

        async with Admin(bootstrap_servers="localhost:9092") as admin:
            for group in await admin.list_groups(states=["Stable"]):
                print(group.group_id, group.type)

    Every method retries until its time is over when coordinators or leaders move or load. A call
    that is cancelled leaves the admin as it was; requests already sent may have taken effect. Every
    method may also raise these errors:

    - ``ConfigError``: an argument has a wrong type or value.
    - ``TransportError``: no broker can be reached.
    - ``LocalProtocolError``: the admin is not started or is stopped, or the call comes from another
      event loop, thread or process.

    ``AdminFailed`` has the errors by group, topic or partition, and the results of the others,
    which took effect.

    Args:
        **settings: The fields of ``kip848_client.config.AdminConfig``: those of ``Consumer`` for
            brokers, time and security.

    Raises:
        ConfigError: A setting is unknown or wrong.
    """

    def __init__(self, **settings: Unpack[AdminSettings]) -> None:
        self._config: Final = AdminConfig.of(settings)
        self._runtime: Final = ClientRuntime("admin")
        self._router: RequestRouter | None = None

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
        """Connect.

        If it raises, everything it had opened is closed: create a new admin.

        Raises:
            BootstrapFailed: No broker answers; the text has the reason for each server.
            BrokerError: The brokers refuse our credentials.
            LocalProtocolError: ``start`` or ``stop`` was called before, or ``stop`` while it ran.
        """
        self._runtime.begin()
        transport = connections(self._config, self._runtime.clock)
        fields = {"client_id": self._config.client_id}
        self._runtime.connect(transport, Observers(self._runtime.clock, fields))
        await self._runtime.open(self._open, self.stop)

    async def _open(self) -> None:
        config, transport = self._config, self._runtime.transport
        await transport.bootstrap()
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._router = RequestRouter(
            transport, self._runtime.clock, backoff, config.request_timeout_ms
        )

    async def stop(self) -> None:
        """Disconnect.

        Calls under way end with ``LocalProtocolError``. Once begun, it runs to its end even if the
        caller is cancelled. A second call waits for the first. A call before ``start`` forbids
        ``start``.

        Raises:
            LocalProtocolError: The call comes from another event loop, thread or process.
        """
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

    def _begin(self, timeout_ms: float | None) -> tuple[RequestRouter, int]:
        """Return the router and the deadline of a call."""
        self._runtime.check_started()
        allowed_ms = (
            self._config.default_api_timeout_ms
            if timeout_ms is None
            else checked_timeout_ms(timeout_ms)
        )
        if self._runtime.was_stopped:
            raise self._runtime.closed()
        if self._router is None:
            raise LocalProtocolError("the admin is still starting; await start() first")
        return self._router, self._router.deadline_ms(allowed_ms)

    # -- groups ------------------------------------------------------------------------------

    async def list_groups(
        self,
        *,
        states: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[GroupListing, ...]:
        """List the groups of the cluster (Kafka's ListGroups, to each broker).

        Args:
            states: Keep groups in one of these states (``Stable``, ``Empty``, ... as in
                ``GROUP_STATES``), in upper or lower case. Default: all.
            types: Keep groups of these types (``Consumer``, ``Classic``, ... as in
                ``GROUP_TYPES``), in upper or lower case. Default: all.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Returns:
            The groups that this principal may see, by name.

        Raises:
            AdminFailed: Some brokers gave no answer or refused; ``errors`` is by node id.
            ConfigError: A state or type is not known.
        """
        of_states = _arguments.checked_words(states, GROUP_STATES, "states")
        of_types = _arguments.checked_words(types, GROUP_TYPES, "types")
        router, deadline_ms = self._begin(timeout_ms)
        return await _groups.list_groups(router, of_states, of_types, deadline_ms)

    async def describe_groups(
        self, groups: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, GroupDescription]:
        """Describe groups of consumers and of Connect workers, on either protocol.

        Sends Kafka's ConsumerGroupDescribe (KIP-848) to each coordinator, then DescribeGroups for
        classic groups, then ConnectGroupDescribe (a draft of this project) where a broker has it.

        Args:
            groups: Names of the groups.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Returns:
            By name the group with its epochs, members, current and target assignments. Connect
            groups have ``connect``, and their members ``worker``.

        Raises:
            AdminFailed: By group: ``GroupIdNotFound`` if it does not exist, or another error.
        """
        names = _arguments.checked_groups(groups)
        router, deadline_ms = self._begin(timeout_ms)
        return await _groups.describe_groups(router, names, deadline_ms)

    async def delete_groups(
        self, groups: Iterable[str], *, timeout_ms: float | None = None
    ) -> None:
        """Delete groups without members, with their offsets (Kafka's DeleteGroups).

        Args:
            groups: Names of the groups.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Raises:
            AdminFailed: By group: NON_EMPTY_GROUP if it has members, ``GroupIdNotFound`` if it does
                not exist, or another error.
        """
        names = _arguments.checked_groups(groups)
        router, deadline_ms = self._begin(timeout_ms)
        await _groups.delete_groups(router, names, deadline_ms)

    # -- offsets of groups -------------------------------------------------------------------

    async def list_group_offsets(
        self, group: str, *, require_stable: bool = False, timeout_ms: float | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """List what a group has committed (Kafka's OffsetFetch).

        Args:
            group: Name of the group.
            require_stable: Wait for the end of transactions that have offsets of the group
                (KIP-447).
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Returns:
            Offsets by partition, sorted; empty for an unknown group.

        Raises:
            AdminFailed: The coordinator refused; ``errors`` is by group.
        """
        name = _arguments.checked_group(group)
        router, deadline_ms = self._begin(timeout_ms)
        found = await _offsets.fetch(router, (name,), deadline_ms, stable=require_stable)
        return found[name]

    async def alter_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets for a group without members (Kafka's OffsetCommit).

        A group that does not exist is created.

        Args:
            group: Name of the group.
            offsets: By partition: the offset of the *next* record to read, or a
                ``CommittedOffset``.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Raises:
            AdminFailed: By partition: UNKNOWN_MEMBER_ID if the group has members, or another error.
        """
        name = _arguments.checked_group(group)
        commit = _arguments.checked_offsets(offsets)
        router, deadline_ms = self._begin(timeout_ms)
        await _offsets.commit(router, name, commit, deadline_ms)

    async def delete_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Delete what a group has committed for some partitions (Kafka's OffsetDelete).

        Args:
            group: Name of the group.
            partitions: Which ones; at least one.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Raises:
            AdminFailed: By partition: GROUP_SUBSCRIBED_TO_TOPIC while a member is subscribed to the
                topic, ``GroupIdNotFound`` if there is no such group, or another error.
        """
        name = _arguments.checked_group(group)
        chosen = _arguments.checked_some_partitions(partitions)
        router, deadline_ms = self._begin(timeout_ms)
        await _offsets.delete(router, name, chosen, deadline_ms)

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
        """Commit other offsets for a group without members, by a rule.

        An offset outside the log becomes the nearest one in it, as with Kafka's own tool.

        Args:
            group: Name of the group.
            to: The rule: ``ToEarliest()``, ``ToLatest()``, ``ToCurrent()``, ``ToOffset(42)``,
                ``ShiftBy(-10)``, ``ToTime(ms since 1970)``, ``ByDuration(ms)`` or
                ``ToPlan({...})``.
            partitions: Which ones. Default: those with a committed offset, or those in the plan.
            dry_run: Compute, and commit nothing.
            create: Accept a group that does not exist; its offsets create it.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Returns:
            The new offsets by partition, sorted.

        Raises:
            GroupIdNotFound: The group does not exist, and ``create`` is false.
            LocalProtocolError: The group has members; the text has its state.
            ConfigError: ``ShiftBy`` for a partition without a committed offset.
            AdminFailed: Brokers refused the look-up or the commit; ``errors`` is by partition or
                group.
        """
        name = _arguments.checked_group(group)
        reset = _arguments.checked_reset(to)
        chosen = None if partitions is None else _arguments.checked_some_partitions(partitions)
        router, deadline_ms = self._begin(timeout_ms)
        now_ms = time.time_ns() // 1_000_000
        planned = await _offsets.plan_reset(
            router, name, reset, chosen, now_ms, deadline_ms, create=create
        )
        if not dry_run and planned:
            offsets = {tp: CommittedOffset(offset) for tp, offset in planned.items()}
            await _offsets.commit(router, name, offsets, deadline_ms)
        return planned

    async def list_offsets(
        self,
        times: Mapping[TopicPartition, int],
        *,
        isolation_level: str = "read_uncommitted",
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Look up offsets of partitions (Kafka's ListOffsets).

        Args:
            times: By partition: milliseconds since 1970, for the first record at or after that
                time; ``EARLIEST`` for the first offset in the log; ``LATEST`` for its end.
            isolation_level: ``read_uncommitted``, or ``read_committed``: the log ends where the
                first open transaction begins.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Returns:
            The offset by partition; -1 where no record is at or after the time.

        Raises:
            AdminFailed: Leaders refused; ``errors`` is by partition.
            ConfigError: ``isolation_level`` is neither of the two.
        """
        wanted = _arguments.checked_list_times(times)
        committed = _arguments.is_read_committed(isolation_level)
        router, deadline_ms = self._begin(timeout_ms)
        return await _offsets.list_offsets(router, wanted, deadline_ms, read_committed=committed)

    async def list_epoch_ends(
        self, epochs: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Look up where leader epochs end (Kafka's OffsetForLeaderEpoch, KIP-320).

        A reader whose position is after the end of its epoch has read records that the log has lost
        since, in an unclean election.

        Args:
            epochs: A leader epoch by partition.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Returns:
            By partition the offset after the last record of that epoch or of the last one before
            it; -1 where the leader knows none.

        Raises:
            AdminFailed: Leaders refused; ``errors`` is by partition.
        """
        wanted = _arguments.checked_epochs(epochs)
        router, deadline_ms = self._begin(timeout_ms)
        return await _offsets.epoch_ends(router, wanted, deadline_ms)

    # -- settings ----------------------------------------------------------------------------

    async def describe_group_configs(
        self, groups: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, tuple[ConfigEntry, ...]]:
        """Describe the settings of groups (Kafka's DescribeConfigs, KIP-848).

        Args:
            groups: Names of the groups; they need not exist.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Returns:
            By group its settings (``consumer.session.timeout.ms``, ...).

        Raises:
            AdminFailed: The broker refused; ``errors`` is by group.
        """
        names = _arguments.checked_groups(groups)
        router, deadline_ms = self._begin(timeout_ms)
        return await _topics.describe_configs(router, _topics.GROUP, names, deadline_ms)

    async def alter_group_configs(
        self,
        changes: Mapping[str, Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Set settings of groups (Kafka's IncrementalAlterConfigs). Others stay.

        Args:
            changes: By group: new values by name of the setting; ``None`` removes a value, so that
                the default counts again.
            validate_only: Let the broker check the changes, and change nothing.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Raises:
            AdminFailed: The broker refused; ``errors`` is by group.
        """
        checked = _arguments.checked_changes(changes, _arguments.checked_group)
        router, deadline_ms = self._begin(timeout_ms)
        await _topics.alter_configs(
            router, _topics.GROUP, checked, deadline_ms, validate_only=validate_only
        )

    async def describe_topic_configs(
        self, topics: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, tuple[ConfigEntry, ...]]:
        """Describe the settings of topics (Kafka's DescribeConfigs).

        Args:
            topics: Names of the topics.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Returns:
            By topic its settings.

        Raises:
            AdminFailed: The broker refused; ``errors`` is by topic.
        """
        names = _arguments.checked_topic_names(topics)
        router, deadline_ms = self._begin(timeout_ms)
        return await _topics.describe_configs(router, _topics.TOPIC, names, deadline_ms)

    async def alter_topic_configs(
        self,
        changes: Mapping[str, Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Set settings of topics (Kafka's IncrementalAlterConfigs). Others stay.

        Args:
            changes: By topic: new values by name of the setting; ``None`` removes a value, so that
                the default counts again.
            validate_only: Let the broker check the changes, and change nothing.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Raises:
            AdminFailed: The broker refused; ``errors`` is by topic.
        """
        checked = _arguments.checked_changes(changes, _arguments.checked_topic)
        router, deadline_ms = self._begin(timeout_ms)
        await _topics.alter_configs(
            router, _topics.TOPIC, checked, deadline_ms, validate_only=validate_only
        )

    # -- topics ------------------------------------------------------------------------------

    async def list_topics(self, *, timeout_ms: float | None = None) -> tuple[TopicListing, ...]:
        """List the topics of the cluster (Kafka's Metadata).

        Args:
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Returns:
            The topics that this principal may see, internal ones too, by name.

        Raises:
            TransportError: No broker answered in time.
            BrokerError: The broker refused.
        """
        router, deadline_ms = self._begin(timeout_ms)
        return await _topics.list_topics(router, deadline_ms)

    async def describe_topics(
        self, topics: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, TopicDescription]:
        """Describe topics with their partitions, leaders and replicas.

        Sends Kafka's DescribeTopicPartitions (KIP-966), page by page. Does not create topics.

        Args:
            topics: Names of the topics.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Returns:
            The topics by name.

        Raises:
            AdminFailed: By topic: UNKNOWN_TOPIC_OR_PARTITION if it does not exist, or another
                error.
        """
        names = _arguments.checked_topic_names(topics)
        router, deadline_ms = self._begin(timeout_ms)
        return await _topics.describe_topics(router, names, deadline_ms)

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Create topics (Kafka's CreateTopics).

        Other brokers may learn of them a moment later than the one that answered.

        Args:
            topics: What to create.
            validate_only: Let the broker check the topics, and create none.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Raises:
            AdminFailed: By topic: TOPIC_ALREADY_EXISTS, or another error.
            ConfigError: A name is not legal, or ``topics`` does not have ``NewTopic`` objects.
        """
        new = _arguments.checked_new_topics(topics)
        router, deadline_ms = self._begin(timeout_ms)
        await _topics.create_topics(router, new, deadline_ms, validate_only=validate_only)

    async def delete_topics(
        self, topics: Iterable[str], *, timeout_ms: float | None = None
    ) -> None:
        """Delete topics with their records (Kafka's DeleteTopics).

        Args:
            topics: Names of the topics.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Raises:
            AdminFailed: By topic: UNKNOWN_TOPIC_OR_PARTITION if it does not exist, or another
                error.
        """
        names = _arguments.checked_topic_names(topics)
        router, deadline_ms = self._begin(timeout_ms)
        await _topics.delete_topics(router, names, deadline_ms)

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Raise the number of partitions of topics (Kafka's CreatePartitions).

        The number cannot be lowered again. Records with a key may go to other partitions from then
        on.

        Args:
            counts: By topic: how many partitions it is to have in all.
            validate_only: Let the broker check the numbers, and change nothing.
            timeout_ms: The time for the whole call, in milliseconds. Default:
                ``default_api_timeout_ms``.

        Raises:
            AdminFailed: By topic: INVALID_PARTITIONS if it has as many or more, or another error.
                After an answer was lost, this error may come from an attempt that succeeded.
        """
        checked = _arguments.checked_counts(counts)
        router, deadline_ms = self._begin(timeout_ms)
        await _topics.create_partitions(router, checked, deadline_ms, validate_only=validate_only)
