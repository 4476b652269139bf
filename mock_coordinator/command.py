"""Runs ``kip848 mock`` after its arguments were parsed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final, Unpack

import anyio

from kip848_client.core.visible import visible
from kip848_client.errors import BrokerError, ConfigError
from kip848_client.observe.metrics_server import Family, MetricsServer, as_text
from mock_coordinator.core.faults import faults_from_json
from mock_coordinator.core.groups import CoordinatorMetric
from mock_coordinator.mock_cluster import MockCluster
from mock_coordinator.options import BrokerOptions, CheckedOptions
from mock_coordinator.storage import DataUnwritable

__all__ = ["metrics_text", "serve"]

_PORTS: Final = 65_536
_PREFIX: Final = "kafka_server_group_coordinator_metrics_"
"""As Prometheus' JMX exporter names Kafka's metrics by default, so that a dashboard for Kafka's
group coordinator shows this one."""


def serve(
    topics: Mapping[str, int],
    *,
    faults: str = "",
    metrics_port: int | None = None,
    **options: Unpack[BrokerOptions],
) -> int:
    """Run brokers until SIGINT or SIGTERM.

    Prints ``listening on HOST:PORT`` when connections are accepted, with commas between several,
    then a line ``NAME on HOST:PORT`` per further listener of ``security``, then ``metrics on
    http://HOST:PORT/metrics`` if ``metrics_port`` is given. At the end it prints ownership
    violations to standard error.

    Args:
        topics: Partition counts by topic name.
        faults: Faults as JSON (``mock_coordinator.core.faults.as_json``).
        metrics_port: The port of ``/metrics``; 0 picks a free one.
        **options: See ``BrokerOptions``.

    Returns:
        The exit code.

    Raises:
        ConfigError: For topics or settings that Kafka rejects, and for a data folder that cannot be
            used.
    """
    bad_day = faults_from_json(faults) if faults else ()
    options.setdefault("brokers", 1)
    options["log_size"] = 0  # there is no way to ask for its requests
    options["check_ownership"] = False  # it is a line in the end, not an exception
    given = CheckedOptions.of(options)
    try:
        broker = MockCluster(topics, **options)
    except BrokerError as err:
        raise ConfigError(f"--topic: {err}") from err
    broker.faults.add(*bad_day)
    for name in broker.core.broker.config.without_effect:
        sys.stderr.write(f"kip848 mock: {name} is a Kafka setting without effect in this broker\n")
    try:
        return anyio.run(_serve, broker, _metrics_of(broker, given.host, metrics_port))
    except OSError as err:
        where = err.filename or f"{given.host}:{given.port}"
        sys.stderr.write(f"kip848 mock: cannot listen on {where}: {err.strerror or err}\n")
        return 1
    except ExceptionGroup as group:
        refused, others = group.split(DataUnwritable)
        if refused is None or others is not None:
            raise
        why = _first(refused)
        sys.stderr.write(
            f"kip848 mock: the data folder {why.filename} cannot be written: {why.strerror}; "
            "acknowledged records are available after a restart\n"
        )
        return 1
    finally:
        broker.close()
        for violation in broker.driver.ownership.violations:
            sys.stderr.write(f"kip848 mock: {visible(str(violation))}\n")


def _first(group: ExceptionGroup[DataUnwritable]) -> DataUnwritable:
    """The broker has a single folder, so all errors name the same one."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first


def _metrics_of(broker: MockCluster, host: str, port: int | None) -> MetricsServer | None:
    """The server of the broker's metrics, if there is a port for it. Raises ``ConfigError``."""
    if port is None:
        return None
    if not 0 <= port < _PORTS:
        raise ConfigError(f"--metrics-port {port}: expected a port from 0 to {_PORTS - 1}")
    return MetricsServer(lambda: metrics_text(broker.metrics()), host, port)


async def _serve(broker: MockCluster, metrics: MetricsServer | None) -> int:
    if metrics is not None:
        try:
            await metrics.listen()
        except OSError as err:
            raise ConfigError(f"--metrics-port {metrics.port}: {err}") from err
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with broker, anyio.create_task_group() as tasks:
            if metrics is not None:
                tasks.start_soon(metrics.serve)
            where = ",".join(f"{host}:{port}" for host, port in broker.addresses)
            sys.stdout.write(f"listening on {where}\n")
            for name in broker.core.broker.disk.security.addresses:
                sys.stdout.write(f"{name} on {broker.bootstrap_of(name)}\n")
            if metrics is not None:
                sys.stdout.write(f"metrics on http://{metrics.host}:{metrics.port}/metrics\n")
            sys.stdout.flush()
            async for _ in signals:
                break
            tasks.cancel_scope.cancel()
    return 0


def metrics_text(metrics: Iterable[CoordinatorMetric]) -> str:
    """In Prometheus' text format. Metrics of one name must follow each other."""
    return as_text(_families(metrics))


def _families(metrics: Iterable[CoordinatorMetric]) -> Iterator[Family]:
    for name, same in groupby(metrics, key=lambda metric: metric.name):
        samples = [(tags, value) for _, tags, value in same]
        kind = "counter" if name.endswith("-count") and not samples[0][0] else "gauge"
        yield Family(_PREFIX + name.replace("-", "_"), kind, samples)
