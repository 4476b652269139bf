"""The driver of ``TelemetryCore``: its timer, its requests, the metrics that it pushes.

It lives in a task of its own. Any failure in it is logged once, and the client continues without
it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from kip848_client.core.compression import NAMES, pack
from kip848_client.core.extras import installation
from kip848_client.core.ports import Clock, NotSent
from kip848_client.core.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)
from kip848_client.errors import (
    Kip848Error,
    LocalProtocolError,
    RequestTimedOut,
    UnsupportedVersion,
)
from kip848_client.observe.core.metrics import ClientMetrics
from kip848_client.observe.core.telemetry._core import State, TelemetryCore
from kip848_client.observe.core.telemetry._ledger import Ledger
from kip848_client.observe.core.telemetry._model import (
    Begun,
    CloseRequested,
    Event,
    Lost,
    Push,
    PushAnswered,
    Subscribe,
    Subscription,
    SubscriptionAnswered,
    Timer,
    Unserved,
    Warn,
)
from kip848_client.runtime._stepping import Stepping
from kip848_client.runtime.clock import wall_clock_origin_ms
from kip848_client.runtime.random import CHANCE
from kip848_client.runtime.telemetry._otlp import is_installed, packed

__all__ = ["Courier", "NoTelemetry", "TelemetryDriver", "telemetry_of"]

_log = logging.getLogger("kip848_client")

_CODECS: Final = tuple(range(len(NAMES)))
"""The compressions available for pushes."""
_LAST_PUSH_S: Final = 1.0
"""How long a closing client waits for its last push."""
_SPREAD: Final = (0.5, 1.5)
"""KIP-714's values, so that clients that start together do not push together."""


class Courier(Protocol):
    """The part of a transport that ``TelemetryDriver`` needs."""

    async def one_broker(self, request: Any, *, timeout_ms: int) -> Any:
        """Ask one broker; raises as ``Transport`` does, and ``UnsupportedVersion`` if none supports
        such requests."""
        ...


class NoTelemetry:
    """The telemetry of a client that pushes nothing; ``why`` is the reason."""

    def __init__(self, why: str) -> None:
        self._why = why

    def begin(self) -> None:
        """Do nothing."""

    async def close(self, left_s: float) -> None:
        """Do nothing."""
        del left_s

    async def instance_id(self, timeout_ms: int) -> str:
        """Raises ``LocalProtocolError``."""
        del timeout_ms
        raise LocalProtocolError(
            f"this client has no instance id, because it pushes no metrics to brokers: {self._why}"
        )


class TelemetryDriver:
    """Pushes ``metrics`` from ``begin`` to ``close``. ``labels`` are the client's, ``fields`` are
    added to its log lines."""

    def __init__(
        self,
        courier: Courier,
        clock: Clock,
        metrics: ClientMetrics,
        labels: Mapping[str, str],
        fields: Mapping[str, object],
        *,
        request_timeout_ms: int,
        spread: Callable[[int], int] | None = None,
    ) -> None:
        self._courier = courier
        self._clock = clock
        self._labels = labels
        self._fields = fields
        self._timeout_ms = request_timeout_ms
        self._core = TelemetryCore(spread or _spread, _CODECS)
        self._ledger = Ledger(metrics, clock.now_ms())
        self._stepping: Stepping[Event] = Stepping(
            self._step, lambda: self._core.due_ms, Timer, clock
        )
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    def begin(self) -> None:
        """Begin once the client is connected."""
        if self._task is None:
            run = self._run()
            self._task = asyncio.get_running_loop().create_task(run, name="kip848-telemetry")
            self._stepping.post(Begun())

    async def close(self, left_s: float) -> None:
        """Push for the last time, if a broker wants that, and end within a second, or
        ``left_s``."""
        if self._task is None or self._task.done():
            return
        self._stepping.post(CloseRequested())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(_LAST_PUSH_S, left_s)):
                await self._over.wait()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def instance_id(self, timeout_ms: int) -> str:
        """Return the brokers' id for this client. Raises ``UnsupportedVersion`` if they assign
        none, and ``RequestTimedOut``."""
        by_ms = self._clock.now_ms() + timeout_ms
        while self._core.instance_id is None:
            if self._over.is_set():
                raise UnsupportedVersion(f"this client has no instance id: {self._core.ended_by}")
            try:
                async with asyncio.timeout(self._clock.left_s(by_ms)):
                    await self._stepping.stepped()
            except TimeoutError as err:
                raise RequestTimedOut(
                    f"no broker has given this client an instance id within {timeout_ms} ms"
                ) from err
        return base64.urlsafe_b64encode(self._core.instance_id).rstrip(b"=").decode("ascii")

    # -- inside ------------------------------------------------------------------------------

    async def _run(self) -> None:
        running = asyncio.ensure_future(self._stepping.run())
        over = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait([running, over], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        except Exception:  # noqa: BLE001 - no failure in here may harm the client
            self._core.ended_by = self._core.ended_by or "a bug of this client"
            _log.exception(
                "metrics are not pushed to brokers any more, by a bug of this client, which goes "
                "on without it",
                extra=dict(self._fields),
            )
        finally:
            self._over.set()
            self._stepping.wake_waiters()
            for each in (running, over):
                each.cancel()
            await asyncio.gather(running, over, return_exceptions=True)

    def _step(self, event: Event) -> None:
        for command in self._core.step(self._clock.now_ms(), event):
            match command:
                case Subscribe(instance_id):
                    self._stepping.start(self._subscribe, instance_id)
                case Push():
                    self._stepping.start(self._push, command)
                case Warn(text):
                    _log.warning("%s", text, extra=dict(self._fields))
        if self._core.state is State.OVER:
            _log.debug("metrics: %s", self._core.ended_by, extra=dict(self._fields))
            self._over.set()

    async def _subscribe(self, instance_id: bytes) -> None:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
        answer = await self._ask(request)
        if isinstance(answer, Lost | Unserved):
            self._stepping.post(answer)
            return
        subscription = Subscription(
            answer.subscription_id,
            tuple(answer.requested_metrics),
            answer.push_interval_ms,
            answer.telemetry_max_bytes,
            answer.delta_temporality,
            tuple(answer.accepted_compression_types),
        )
        given = answer.client_instance_id
        self._stepping.post(SubscriptionAnswered(answer.error_code, given, subscription))

    async def _push(self, command: Push) -> None:
        subscription = command.subscription
        now_ms = self._clock.now_ms()
        points = self._ledger.points(subscription, now_ms)
        data, count = await asyncio.to_thread(
            packed,
            points,
            self._labels,
            time_ms=now_ms,
            origin_ms=wall_clock_origin_ms(self._clock),
            delta=subscription.delta,
            max_bytes=command.max_bytes,
        )
        if count < len(points):
            self._ledger.left_out(points[:count])
        request = PushTelemetryRequest(
            client_instance_id=command.instance_id,
            subscription_id=subscription.subscription_id,
            terminating=command.terminating,
            compression_type=command.compression_type,
            metrics=await asyncio.to_thread(pack, command.compression_type, data),
        )
        answer = await self._ask(request)
        is_counted = not isinstance(answer, Unserved)
        if isinstance(answer, Lost):
            is_counted = answer.was_sent  # values that may have arrived must not be counted twice
        elif not isinstance(answer, Unserved):
            is_counted = answer.error_code == 0
            answer = PushAnswered(answer.error_code, len(data))
        if is_counted:
            self._ledger.settle(points[:count], now_ms)
        self._stepping.post(answer)

    async def _ask(self, request: Any) -> Any:
        """Return the answer, or the event for a missing one."""
        try:
            return await self._courier.one_broker(request, timeout_ms=self._timeout_ms)
        except UnsupportedVersion as err:
            return Unserved(str(err))
        except NotSent:
            return Lost(was_sent=False)
        except Kip848Error as err:
            _log.debug("metrics: %s", err, extra=dict(self._fields))
            return Lost(was_sent=True)


def _spread(pause_ms: int) -> int:
    return round(pause_ms * CHANCE.uniform(*_SPREAD))


def telemetry_of(
    courier: Courier,
    clock: Clock,
    metrics: ClientMetrics | None,
    labels: Mapping[str, str | None],
    fields: Mapping[str, object],
    *,
    is_wanted: bool,
    is_asked_for: bool,
    request_timeout_ms: int,
) -> TelemetryDriver | NoTelemetry:
    """Build the object that pushes ``metrics``, or a placeholder with the reason for pushing none.
    If pushing was requested, the reason is logged, too. ``labels`` are those of the client that are
    not ``None``."""
    why = ""
    if not is_wanted:
        why = "enable_metrics_push is False"
    elif metrics is None:
        why = "it counts nothing; give it a Metrics: metrics=Metrics()"
    elif not is_installed():
        why = f"opentelemetry-proto is not installed: {installation('telemetry')}"
    if why or metrics is None:
        if is_wanted and is_asked_for:
            _log.warning("no metrics are pushed to brokers: %s", why, extra=dict(fields))
        return NoTelemetry(why)
    given = {name: value for name, value in labels.items() if value is not None}
    return TelemetryDriver(
        courier, clock, metrics, given, fields, request_timeout_ms=request_timeout_ms
    )
