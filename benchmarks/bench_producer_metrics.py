"""What metrics cost the way of a producer's records: nanoseconds a record, off, on, and without.

A producer sends records of 100 bytes as fast as it may to a broker in this process that only says
yes, and waits for their acknowledgements. *Without* is the code with the places cut out where
metrics are recorded. The kinds take turns, so that what disturbs the machine disturbs all; each
figure is processor time of all there is in a producer, and the least of all rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any, Final, cast

from benchmarks.bench_metrics import cut
from benchmarks.timing import machine, say, table
from kip848_client import Metrics
from kip848_client.config import ProducerConfig
from kip848_client.core.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kip848_client.core.wire.messages.produce import (
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from kip848_client.core.wire.messages.transactions import InitProducerIdResponse
from kip848_client.producer import _engine, _produce_driver, _sending
from kip848_client.runtime.client._runtime import ClientRuntime

__all__ = ["main"]

_KINDS: Final = ("without", "off", "on")
_BAR: Final = 1.02
"""Off, beside without."""
_ID: Final = bytes(15) + b"\x01"


def main(arguments: list[str]) -> int:
    """Print the table; 1 if metrics cost anything when they are off."""
    parser = argparse.ArgumentParser(prog="benchmarks producer_metrics", description=__doc__)
    parser.add_argument("--records", type=int, default=20_000, help="a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="of each kind (%(default)s)")
    given = parser.parse_args(arguments)
    say(machine())
    taken: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    for number in range(given.rounds):
        for kind in (*_KINDS[number % 3 :], *_KINDS[: number % 3]):
            taken[kind].append(asyncio.run(_once(kind, given.records)))
    ns = {kind: min(each) for kind, each in taken.items()}
    off, on = (ns[kind] / ns["without"] for kind in ("off", "on"))
    figures = [f"{ns[kind]:.1f}" for kind in _KINDS]
    names = [*(f"{kind}, ns" for kind in _KINDS), "off/without", "on/without"]
    say(table(names, [[*figures, f"{off:.3f}", f"{on:.3f}"]]))
    return 0 if off <= _BAR else 1


class _YesBroker:
    """As much of a transport as the engine asks for."""

    async def bootstrap(self) -> None:
        pass

    def learn_brokers(self, _brokers: Any) -> None:
        pass

    def add_brokers(self, _brokers: Any) -> None:
        pass

    async def close(self, _why: Any) -> None:
        pass

    async def any_broker(self, request: Any, **_options: Any) -> Any:
        if type(request).__name__ == "InitProducerIdRequest":
            return InitProducerIdResponse(producer_id=7, producer_epoch=0)
        partition = MetadataResponsePartition(
            partition_index=0, leader_id=1, leader_epoch=1, replica_nodes=(1,), isr_nodes=(1,)
        )
        topic = MetadataResponseTopic(name="t", topic_id=_ID, partitions=(partition,))
        broker = MetadataResponseBroker(node_id=1, host="h", port=1)
        return MetadataResponse(brokers=(broker,), topics=(topic,), cluster_id="c")

    async def produce(self, _node_id: int, _request: Any, **_options: Any) -> Any:
        partition = ProduceResponsePartitionProduceResponse(index=0, base_offset=5)
        topic = ProduceResponseTopicProduceResponse(
            name="t", topic_id=_ID, partition_responses=(partition,)
        )
        return ProduceResponse(responses=(topic,))


async def _once(kind: str, records: int) -> float:
    """Nanoseconds a record."""
    sending, producing = _sending.Sending, _produce_driver.ProduceDriver
    if kind == "without":
        sending, producing = _CUT_SENDING, _CUT_PRODUCING
    metrics = Metrics() if kind == "on" else None
    config = ProducerConfig.of({"metrics": metrics})
    engines: Any = _engine
    engines.ProduceDriver = producing  # for this producer
    try:
        runtime = ClientRuntime("producer")
        runtime.begin()
        engine = _engine.Engine(runtime, config, lambda _config, _clock: cast("Any", _YesBroker()))
    finally:
        engines.ProduceDriver = _produce_driver.ProduceDriver
    await engine.open()
    way = sending(engine, None, None, None)
    await (await way.send("t", b"first", None, None, None, None))
    value = b"x" * 100
    started_ns = time.thread_time_ns()
    futures = [await way.send("t", value, None, None, None, None) for _ in range(records)]
    await asyncio.gather(*futures)
    spent_ns = time.thread_time_ns() - started_ns
    await engine.stop(1_000).finish()
    return spent_ns / records


_CUT_PRODUCING: Final = cut(
    _produce_driver,
    "ProduceDriver",
    """        if self.meter is not None:
            self.meter.on_step(now_ms, event, commands)
""",
)
_CUT_SENDING: Final = cut(
    _sending,
    "Sending",
    """        meter = self._producing.meter
        since_ms = 0 if meter is None else meter.waits_for_room()
""",
    """            if meter is not None:
                meter.found_no_room()
""",
    """        finally:
            if meter is not None:
                meter.goes_on(since_ms)
""",
)
