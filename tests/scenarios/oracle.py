"""Plays scenario files on Apache Kafka and compares: broker, file and bundled coordinator.

A broker chooses topic and member ids, and some results follow the hash order of ids. So the bundled
coordinator plays each file once more with the broker's ids, and those two must print the same;
where the file's own ids lead to another outcome than the broker's, that is no difference.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.scenarios.given_ids import GivenIds
from tests.scenarios.kafka_backend import KafkaBackend, KafkaSession
from tests.scenarios.runner import compare, differences, play
from tests.scenarios.script import Script
from tests.scenarios.suite import INITIAL_DELAY, INTERVAL, broker_settings, play_on_core
from tests.support.real_kafka import RealKafka

__all__ = ["FileGroups", "compare_on_kafka", "groups_of_files", "not_played", "play_on_kafka"]

_EVERY_BROKER: Final = {
    "group.coordinator.append.linger.ms": "0",
    "group.coordinator.background.threads": "1",
}
"""One batch a write: then a response is there when its own records are. One thread for expressions,
as before 4.3: then they are resolved in turn."""


@dataclass(frozen=True, slots=True)
class FileGroups:
    """Files of one release, gathered by the broker settings that they need."""

    release: str
    settings: tuple[Mapping[str, str], ...]
    files: tuple[tuple[Script, ...], ...]

    @property
    def labels(self) -> list[str]:
        """What is special about the settings of each, in a few words."""
        return [_label(each) for each in self.settings]


def _label(settings: Mapping[str, str]) -> str:
    special = [
        key.removeprefix("group.consumer.").removesuffix(".ms")
        for key, value in sorted(settings.items())
        if not (key in (INTERVAL, INITIAL_DELAY) and value == "0")
    ]
    return special[-1] if special else "plain"


def groups_of_files(scripts: Sequence[Script], release: str, *, slow: bool = False) -> FileGroups:
    """The files that a broker of this release can play, by the settings they need."""
    profile = release.rpartition(".")[0]
    kinds = {"yes", "slow"} if slow else {"yes"}
    together: dict[tuple[tuple[str, str], ...], list[Script]] = defaultdict(list)
    for script in scripts:
        if profile in script.profiles and script.real_kafka in kinds:
            together[tuple(sorted(broker_settings(script, profile).items()))].append(script)
    return FileGroups(
        release, tuple(dict(key) for key in together), tuple(map(tuple, together.values()))
    )


def not_played(scripts: Sequence[Script], *, slow: bool) -> dict[str, str]:
    """File name -> why it is not played on a real broker."""
    kinds = {"no"} if slow else {"no", "slow"}
    return {each.name: each.reason for each in scripts if each.real_kafka in kinds}


def compare_on_kafka(groups: FileGroups, number: int) -> list[str]:
    """Play one group of files on a broker of its own; returns the differences, readable.

    Raises ``KafkaUnavailableError`` where Kafka cannot run.
    """
    found: list[str] = []
    settings = {**_EVERY_BROKER, **groups.settings[number]}
    with RealKafka.start(groups.release, settings) as kafka:
        session = KafkaSession(kafka)
        for position, script in enumerate(groups.files[number]):
            found += _one(script, session, f"-play{position}")
        session.close()
    return found


def play_on_kafka(
    scripts: Sequence[Script], release: str, *, slow: bool, say: Callable[[str], None]
) -> list[str]:
    """Play all files on brokers of a release, one after the other; returns the differences."""
    groups = groups_of_files(scripts, release, slow=slow)
    found: list[str] = []
    for number, label in enumerate(groups.labels):
        started = time.monotonic()
        found += compare_on_kafka(groups, number)
        seconds = time.monotonic() - started
        say(f"Kafka {release}, {label}: {len(groups.files[number])} files in {seconds:.1f} s")
    for name, reason in not_played(scripts, slow=slow).items():
        say(f"not played: {name}, {reason}")
    return found


def _one(script: Script, session: KafkaSession, suffix: str) -> list[str]:
    profile = session.kafka.profile
    session.clear_topics()
    backend = KafkaBackend(session)
    try:
        printed = play(script, backend, suffix=suffix)
        backend.require_nobody_answered()
    finally:
        backend.close()
    same_ids = play_on_core(
        script, profile, given_ids=GivenIds(backend.topic_ids, backend.member_ids)
    )
    found = compare(script, profile, printed, same_ids, ("bundled coordinator", "Kafka"))
    if not found:
        return []
    return found + differences(script, profile, printed)
