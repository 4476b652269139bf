"""The settings of a worker in a group of the classic protocol."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.backoff import Backoff, Jitter
from kip848_client.core.connect import ConnectProtocol
from kip848_client.core.member import MemberSettings

__all__ = ["ClassicWorkerSettings"]


@dataclass(frozen=True, slots=True)
class ClassicWorkerSettings:
    """The part of the worker's configuration that a classic membership needs.

    All times are in milliseconds. The defaults are Kafka Connect's. There is no static membership:
    Connect's rounds send a worker only what is new for it, and a worker that came back under its
    old id would get the same again.

    Attributes:
        request_timeout_ms: How long a request may take.
        retry_backoff_ms: The pause before the first repetition.
        retry_backoff_max_ms: The longest pause.
    """

    url: str
    """The URL where other workers reach this one (``rest.advertised.*``)."""
    connect_protocol: ConnectProtocol = ConnectProtocol.SESSIONED
    """``connect.protocol``: the newest embedded protocol to offer; older ones are offered as
    well."""
    session_timeout_ms: int = 10_000
    """``session.timeout.ms``: how long after the last sign of life other workers may run this
    worker's items. Sent to the coordinator."""
    heartbeat_interval_ms: int = 3_000
    """``heartbeat.interval.ms``."""
    rebalance_timeout_ms: int = 60_000
    """``rebalance.timeout.ms``: how long a round waits for a worker that stops revoked items."""
    scheduled_rebalance_max_delay_ms: int = 300_000
    """``scheduled.rebalance.max.delay.ms``: how long a lost worker's items wait for its return."""
    worker_sync_timeout_ms: int = 3_000
    """``worker.sync.timeout.ms``: how long a leader waits for a configuration that others know."""
    worker_unsync_backoff_ms: int = 300_000
    """``worker.unsync.backoff.ms``: how long a worker that left because it lacked a configuration
    stays away, unless it reads it earlier."""
    task_shutdown_graceful_timeout_ms: int = 5_000
    """``task.shutdown.graceful.timeout.ms``: the time needed to stop. A worker that receives
    nothing from the coordinator begins to stop this long before the end of its session."""
    request_timeout_ms: int = 40_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    java_order: bool = True
    """Whether a leader iterates over workers in the order of Java's hash maps."""

    @property
    def stop_after_ms(self) -> int:
        """How long after the coordinator's last answer the worker stops everything."""
        left_ms = self.session_timeout_ms - self.task_shutdown_graceful_timeout_ms
        return max(left_ms, self.session_timeout_ms // 2)

    def backoff(self, jitter: Jitter) -> Backoff:
        """Compute the pauses between failed requests. Raises nothing.

        Args:
            jitter: Varies a pause by up to 20 %.

        Returns:
            The pauses.
        """
        return Backoff(self.retry_backoff_ms, self.retry_backoff_max_ms, jitter)

    def of_link(self) -> MemberSettings:
        """Convert the settings for the link to the coordinator. Raises nothing.

        Returns:
            The settings of a member core, as far as the link needs them.
        """
        return MemberSettings(
            request_timeout_ms=self.request_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
        )
