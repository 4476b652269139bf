"""What administrators ask for, answered by a real broker and by ours: field by field the same.

Both are fresh clusters of one node with the same settings. What may differ is listed below: ids
and places, sizes of disks, and the order of lists that Kafka keeps in hash maps.
"""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client.core.wire import api_named
from kip848_client.error_codes import ErrorCode
from mock_coordinator import MockBroker
from mock_coordinator.core.release_line import ReleaseLine
from mock_coordinator.inprocess import InProcessConnection
from tests.contract.dialogues import DIALOGUES, switched_off
from tests.contract.dialogues.step import IdOf, Step
from tests.support.plain_message import message
from tests.support.real_kafka import RealKafka
from tests.support.wire_connection import Requester, WireConnection

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(120)]

SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "num.partitions": "3",
}

IGNORED: Final = {
    "cluster_id",
    "high_watermark",
    "host",
    "last_caught_up_timestamp",
    "last_fetch_timestamp",
    "listeners",
    "log_end_offset",
    "port",
    "total_bytes",
    "usable_bytes",
}
"""Fields that say where and how large a broker is, and how its controller has fared."""

READS: Final = ("Describe", "List", "Metadata")
"""A real broker learns of a change a moment after its controller has made it: what only reads is
asked again until both agree, or it is late."""

NOT_LEADER: Final = f"error_code: real {ErrorCode.NOT_LEADER_OR_FOLLOWER:d},"
"""A real broker leads the partitions of a new topic a moment after the topic was created. A request
that it refuses for this has changed nothing, so it is sent again."""

PATIENCE_S: Final = 5.0
POLL_S: Final = 0.02


CLUSTER_ID: Final = re.compile(r'cluster id "[^"]+"')


class InProcess:
    """Our broker as a requester."""

    def __init__(self, connection: InProcessConnection) -> None:
        self._connection = connection

    def request(self, message: Any, version: int) -> Any:
        return self._connection.ask(message, version)


def test_the_answers_are_those_of_a_real_broker(kafka_version: str, tmp_path: Path) -> None:
    check(kafka_version, tmp_path, SETTINGS, DIALOGUES)


def test_what_is_switched_off_is_refused_alike(kafka_version: str, tmp_path: Path) -> None:
    settings = {**SETTINGS, **switched_off.SETTINGS}
    check(kafka_version, tmp_path, settings, {"switched off": switched_off.STEPS})


def check(
    version: str, tmp_path: Path, settings: dict[str, str], dialogues: dict[str, list[Step]]
) -> None:
    """Play dialogues on both brokers."""
    with RealKafka.start(version, settings, tmp_path) as kafka, kafka.connect() as real:
        config = {**settings, "log.dirs": str(tmp_path / "data")}
        ours = MockBroker(profile=kafka.profile, config=config, listen=False)
        side = InProcess(ours.connect())
        side.request(message("FindCoordinator", coordinator_keys=("warm-up",)), 4)
        line = ReleaseLine.of(kafka.profile)
        found = {
            f"{name} {number}: {step}": differences
            for name, steps in dialogues.items()
            for number, step in enumerate(steps)
            if step.since <= line and (differences := played(step, real, side))
        }
    listed = "\n".join("\n    ".join([step, *what]) for step, what in found.items())
    assert not found, f"{len(found)} answers differ:\n{listed}"


def played(step: Step, real: WireConnection, ours: InProcess) -> list[str]:
    """One step on both sides; what differs."""
    version = step.version
    if version is None:
        high = real.versions()[step.api][1]
        version = min(high, api_named(step.api).versions[1])
    expected = plain(ours.request(message(step.api, **_with_ids(step.values, ours)), version))
    request = message(step.api, **_with_ids(step.values, real))
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = plain(real.request(request, version))
        found = list(differences("", answer, expected))
        is_early = step.api.startswith(READS) or any(NOT_LEADER in each for each in found)
        if not found or not is_early or time.monotonic() > deadline:
            return found
        time.sleep(POLL_S)
        request = message(step.api, **_with_ids(step.values, real))


def _with_ids(value: Any, side: Requester) -> Any:
    """The values with each topic's id as this side knows it."""
    if isinstance(value, IdOf):
        topics = [{"name": value.topic}]
        asked = message("Metadata", topics=topics, allow_auto_topic_creation=False)
        topic_id: bytes = side.request(asked, 12).topics[0].topic_id
        return topic_id
    if isinstance(value, dict):
        return {key: _with_ids(each, side) for key, each in value.items()}
    return [_with_ids(each, side) for each in value] if isinstance(value, list | tuple) else value


def plain(answer: Any) -> Any:
    """A message as dicts and sorted lists, without what may differ."""
    if isinstance(answer, tuple):
        return sorted((plain(each) for each in answer), key=repr)
    if isinstance(answer, str):
        return CLUSTER_ID.sub("cluster id", answer)
    if not dataclasses.is_dataclass(answer):
        return answer
    found: dict[str, Any] = {}
    for field in dataclasses.fields(answer):
        value = getattr(answer, field.name)
        if field.name == "topic_id":
            found[field.name] = "none" if value == bytes(16) else "an id"
        elif not {field.name, f"{type(answer).__name__}.{field.name}"} & IGNORED:
            found[field.name] = plain(value)
    return found


def differences(path: str, real: Any, ours: Any) -> list[str]:
    """The fields that are not equal."""
    if isinstance(real, dict) and isinstance(ours, dict) and real.keys() == ours.keys():
        parts = [(f"{path}.{key}", real[key], ours[key]) for key in real]
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        pairs = enumerate(zip(real, ours, strict=True))
        parts = [(f"{path}[{number}]", left, right) for number, (left, right) in pairs]
    elif repr(real) == repr(ours):  # so that not-a-number equals itself
        return []
    else:
        return [f"{path.lstrip('.')}: real {real!r}, ours {ours!r}"]
    return [each for part in parts for each in differences(*part)]
