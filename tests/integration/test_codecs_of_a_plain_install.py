"""A plain ``pip install`` writes and reads every codec: with cramjam, and no other library."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_PROGRAM = """
import asyncio, sys
for name in ("zstandard", "zstd", "snappy", "lz4", "isal", "pyarrow"):
    sys.modules[name] = None  # as if it were not installed
import aiokafka.codec
from kip848_client import Consumer, Producer, TopicPartition
from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from mock_coordinator import MockBroker

async def write_and_read(writer, reader, bootstrap, topic, codec):
    async with writer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
        sent = [await producer.send(topic, topic.encode() * 100) for _ in range(10)]
        await asyncio.gather(*sent)
    async with reader(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records = [await consumer.getone() for _ in range(10)]
    assert all(each.value == topic.encode() * 100 for each in records)
    print(topic)

async def main():
    async with MockBroker() as broker:
        for codec in sys.argv[1:]:
            for writer, reader in ((Producer, Consumer), (AIOKafkaProducer, AIOKafkaConsumer)):
                named = None if codec == "none" else codec
                topic = f"{writer.__name__}-{codec}"
                await write_and_read(writer, reader, broker.bootstrap, topic, named)
                assert len(broker.records(topic)) == 10
        aiokafka.codec.cramjam = None  # what aiokafka finds does not matter to our own classes
        for codec in sys.argv[1:]:
            await write_and_read(Producer, Consumer, broker.bootstrap, f"again-{codec}", codec)

asyncio.run(main())
"""


@pytest.mark.everything("it writes and reads each codec in three ways")
def test_every_codec_is_written_and_read() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *_CODECS],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert run.returncode == 0, run.stderr
    both = [f"{kind}-{codec}" for codec in _CODECS for kind in ("Producer", "AIOKafkaProducer")]
    assert run.stdout.splitlines() == [*both, *[f"again-{codec}" for codec in _CODECS]]


def test_the_base_install_brings_what_it_takes() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    names = [each.split(">")[0] for each in project["dependencies"]]
    assert "cramjam" in names
    assert not any(
        "cramjam" in each for extra in project["optional-dependencies"].values() for each in extra
    )


def test_codecs_are_imported_when_they_are_needed() -> None:
    program = "import sys, kip848_client, mock_coordinator; print('cramjam' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50
    )
    assert run.stdout.strip() == "False"
