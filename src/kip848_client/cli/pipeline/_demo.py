"""``kip848 pipeline demo``: a pipeline on the embedded broker, with kills and a second consumer."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from kip848_client.admin import Admin
from kip848_client.cli._demo._demo import play as play_demo
from kip848_client.cli._demo._demo import short_sessions
from kip848_client.cli._output import flush, put_hanging, put_prose
from kip848_client.cli.pipeline._accounting import Accounting, Verdict, rows_in
from kip848_client.cli.pipeline._display import line_of
from kip848_client.cli.pipeline._driver import Driver
from kip848_client.consumer import Consumer
from kip848_client.errors import ConfigError, Kip848Error
from kip848_client.producer import Producer

__all__ = ["Demo", "play"]

_TOPIC: Final = "orders"
_GROUP: Final = "billing"
_PARTITIONS: Final = 6
_AT_ONCE: Final = 20
_PAUSE_S: Final = 0.02
_SPARK_STARTS_S: Final = 40
"""How long Spark needs for its first batch on an ordinary machine."""
_START_S: Final = 180.0
"""How long Spark may need on a busy machine."""
_BROKER: Final = short_sessions(3000, 500)
_SETTINGS: Final = """\
[source]
bootstrap_servers = {bootstrap}
topics = ["{topic}"]
group = "{group}"

[decode]
format = "json"
columns = "id bigint, customer string, amount double"

[transform]
sql = "select value.*, partition, offset, timestamp from records"

[sink]
path = {output}

[run]
checkpoint = {checkpoint}
trigger = "500 milliseconds"
"""


class Demo:
    """One run of the demo."""

    def __init__(
        self, bootstrap: str, folder: Path, seconds: int, temporary: Path | None = None
    ) -> None:
        self._bootstrap = bootstrap
        self._folder = folder
        self._seconds = seconds
        self._began_s = time.monotonic()
        self._accounting = Accounting()
        self._is_enough = False
        """Ends the producer, which is not cancelled because it must know what it has sent."""
        self._driver = Driver(folder / "pipeline.toml", self._heard, temporary=temporary)

    def _news(self, text: str) -> None:
        put_hanging(f"{time.monotonic() - self._began_s:5.1f} s  {text}")
        flush()

    def _heard(self, said: dict[str, Any]) -> None:
        self._news(line_of(said) if "state" in said else str(said.get("end")))

    async def run(self) -> Verdict:
        """Run the script; the outcome."""
        self._write_settings()
        producing = asyncio.create_task(self._produce())
        try:
            self._news(
                f"this takes about {_minutes(self._seconds)}, mostly for the two starts of Spark"
            )
            self._news("the pipeline starts: a member of its group, in a process of its own")
            await self._driver.start()
            await self._first_batch()
            await self._script()
            self._is_enough = True
            await producing
            await self._all_committed()
            self._news("the pipeline is asked to stop")
            await self._driver.stop()
        finally:
            producing.cancel()
            await asyncio.wait([producing])
            await self._driver.kill()
        return self._accounting.verdict(rows_in(self._folder / "output"))

    async def _script(self) -> None:
        await self._pass(0.2)
        async with self._other_consumer():
            await self._pass(0.3)
        await self._pass(0.15)
        self._news("the pipeline is killed before it can commit, and started again")
        await self._driver.kill()
        await self._driver.start()
        await self._first_batch()
        await self._pass(0.35)

    def _write_settings(self) -> None:
        text = _SETTINGS.format(
            topic=_TOPIC,
            group=_GROUP,
            bootstrap=json.dumps(self._bootstrap),
            output=json.dumps(str(self._folder / "output")),
            checkpoint=json.dumps(str(self._folder / "checkpoint")),
        )
        (self._folder / "pipeline.toml").write_text(text, encoding="utf-8")

    async def _pass(self, part: float) -> None:
        """Let this fraction of the time pass."""
        until = time.monotonic() + self._seconds * part
        while time.monotonic() < until:
            await self._driver.check()
            await asyncio.sleep(0.1)

    async def _first_batch(self) -> None:
        until = time.monotonic() + _START_S
        while not self._driver.batches:
            await self._driver.check()
            if time.monotonic() > until:
                raise Kip848Error(f"the pipeline wrote nothing within {_START_S:.0f} s")
            await asyncio.sleep(0.05)

    async def _produce(self) -> None:
        async with Producer(bootstrap_servers=self._bootstrap) as producer:
            number = 0
            while not self._is_enough:
                numbers = range(number, number + _AT_ONCE)
                number += _AT_ONCE
                sent = [await producer.send(_TOPIC, _value(each)) for each in numbers]
                for each, place in zip(numbers, await asyncio.gather(*sent), strict=True):
                    self._accounting.produced[place.partition, place.offset] = each
                await asyncio.sleep(_PAUSE_S)

    @asynccontextmanager
    async def _other_consumer(self) -> AsyncGenerator[None]:
        """Another member of the group for a while."""
        self._news("another consumer joins the group")
        consumer = Consumer(
            _TOPIC,
            bootstrap_servers=self._bootstrap,
            group_id=_GROUP,
            client_id="another",
            auto_offset_reset="earliest",
        )
        async with consumer:
            consuming = asyncio.create_task(self._consume(consumer))
            try:
                yield
            finally:
                consuming.cancel()
                await asyncio.wait([consuming])
                self._news(
                    f"the other consumer leaves; it consumed {self._accounting.delivered.total():,}"
                )

    async def _consume(self, consumer: Consumer[Any, Any]) -> None:
        while True:
            for tp, records in (await consumer.getmany(timeout_ms=200)).items():
                self._accounting.delivered.update((tp.partition, each.offset) for each in records)

    async def _all_committed(self) -> None:
        """Wait until the group has committed everything that was produced."""
        until = time.monotonic() + _START_S
        async with Admin(bootstrap_servers=self._bootstrap) as admin:
            while time.monotonic() < until:
                await self._driver.check()
                done = await admin.list_group_offsets(_GROUP)
                if sum(each.offset for each in done.values()) >= len(self._accounting.produced):
                    return
                await asyncio.sleep(0.2)
        self._news("not everything was committed in time")


def _minutes(seconds: int) -> str:
    minutes = round((2 * _SPARK_STARTS_S + seconds) / 60)
    return "a minute" if minutes <= 1 else f"{minutes} minutes"


def _value(number: int) -> bytes:
    said = {"id": number, "customer": f"c{number % 97}", "amount": number % 1000 / 10}
    return json.dumps(said).encode()


async def _play(folder: Path, temporary: Path, seconds: int) -> int:
    from mock_coordinator import MockBroker

    async with MockBroker({_TOPIC: _PARTITIONS}, config=_BROKER) as broker:
        verdict = await Demo(broker.bootstrap, folder, seconds, temporary).run()
    put_prose("", *str(verdict).split("\n"))
    return 0 if verdict.is_good else 1


def play(arguments: argparse.Namespace) -> int:
    """Run the demo.

    Args:
        arguments: ``seconds`` is how long records are produced, ``output`` a folder that does not
            exist, or ``None``.

    Returns:
        The exit code: 0 if each record exists once, 1 if not, or if something failed.

    Raises:
        ConfigError: an argument is wrong, the output folder exists, or pyarrow is missing.
    """
    if arguments.seconds < 1:
        raise ConfigError(f"--seconds must be at least 1, got {arguments.seconds}")
    try:
        with tempfile.TemporaryDirectory(
            prefix="kip848-demo-", ignore_cleanup_errors=True
        ) as temporary:
            folder = Path(temporary)
            if arguments.output is not None:
                folder = Path(arguments.output)
                folder.mkdir(parents=True, exist_ok=False)
            return play_demo("pipeline", _play(folder, Path(temporary), arguments.seconds))
    except OSError as err:
        raise ConfigError(f"--output: {err}") from err
