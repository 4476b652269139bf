"""Random sequences of requests about transactions, for two brokers to play alike.

A sequence is a list of steps that follow from a seed alone. Steps name producers by how they were
learned ("the newest of transactional id 1", "the one before"), so the same step makes sense on
brokers that hand out different producer ids. ``Player`` plays steps on one broker and gives the
answers back as plain values; equal answers mean equal behaviour.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.raw_transactions import Producer, RawTransactions

__all__ = ["Player", "Step", "sequence_of"]

PARTITIONS: Final = 3
SHORT_MS: Final = 300
LONG_MS: Final = 60_000

_IDS: Final = 3
_MISSING: Final = "missing"


@dataclass(frozen=True, slots=True)
class Step:
    """One request: a method of ``Player`` and what it is called with."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.options.items())})"


def sequence_of(seed: int, *, length: int = 40, txn_commit_version: int = 5) -> list[Step]:
    """The sequence of a seed. ``txn_commit_version`` is the highest that the broker has."""
    dice = random.Random(seed)
    steps = [Step("init", {"slot": slot, "who": "nobody"}) for slot in range(_IDS)]
    makers: list[tuple[int, Callable[[], Step]]] = [
        (8, lambda: _init(dice)),
        (30, lambda: _produce(dice)),
        (8, lambda: _add_partitions(dice)),
        (4, lambda: Step("add_offsets", {**_who(dice), "group": _group(dice)})),
        (12, lambda: _txn_commit(dice, txn_commit_version)),
        (18, lambda: _end(dice)),
        (4, lambda: Step("commit", {"group": _group(dice), "offset": dice.randrange(1000)})),
        (5, lambda: Step("offsets", {"group": _group(dice), "stable": dice.random() < 0.7})),
        (5, lambda: _fetch(dice)),
        (3, lambda: Step("find_offsets", {"index": dice.randrange(PARTITIONS)})),
        (3, lambda: Step("look", {"slot": dice.randrange(_IDS)})),
        (1, lambda: Step("delete_offsets", {"group": _group(dice)})),
        (1, lambda: Step("delete_group", {"group": _group(dice)})),
        (1, lambda: Step("write_marker", {**_who(dice), "commit": dice.random() < 0.5})),
        (1, lambda: Step("time_out", {"slot": dice.randrange(_IDS), "version": _version(dice)})),
    ]
    weights = [weight for weight, _ in makers]
    steps += [dice.choices(makers, weights)[0][1]() for _ in range(length)]
    return [*steps, Step("look_at_everything")]


def _who(dice: random.Random) -> dict[str, Any]:
    who = dice.choices(["newest", "before", "oldest", "future", "stranger"], [20, 3, 1, 1, 1])[0]
    return {"slot": dice.randrange(_IDS), "who": who}


def _group(dice: random.Random) -> int:
    return dice.choices([0, 1], [3, 1])[0]


def _version(dice: random.Random) -> int:
    """Of Produce."""
    return dice.choices([9, 10, 11, 12], [1, 1, 3, 8])[0]


def _partitions(dice: random.Random) -> list[int]:
    return sorted(dice.sample(range(PARTITIONS), dice.choices([1, 2], [3, 1])[0]))


def _init(dice: random.Random) -> Step:
    options: dict[str, Any] = {"slot": dice.randrange(_IDS), "who": "nobody"}
    if dice.random() < 0.5:
        options = _who(dice)
    if dice.random() < 0.1:
        options["timeout_ms"] = dice.choice([0, -1, 60_001, 1])
        if options["timeout_ms"] == 1:
            options["timeout_ms"] = LONG_MS - 1
    options["version"] = dice.choice([3, 4, 5])
    return Step("init", options)


def _produce(dice: random.Random) -> Step:
    return Step(
        "produce",
        {
            **_who(dice),
            "partitions": _partitions(dice),
            "sequence": dice.choices(["next", "again", "gap", "zero"], [14, 2, 1, 1])[0],
            "records": dice.randint(1, 3),
            "version": _version(dice),
            "transactional": dice.random() < 0.95,
            "id": dice.choices(["own", "other", "none", "empty"], [30, 1, 1, 1])[0],
        },
    )


def _add_partitions(dice: random.Random) -> Step:
    version = dice.choice([0, 2, 3, 3, 3, 4, 5])
    return Step(
        "add_partitions",
        {
            **_who(dice),
            "partitions": _partitions(dice) + ([PARTITIONS] if dice.random() < 0.1 else []),
            "version": version,
            "verify_only": version >= 4 and dice.random() < 0.6,
        },
    )


def _txn_commit(dice: random.Random, highest: int) -> Step:
    return Step(
        "txn_commit",
        {
            **_who(dice),
            "group": _group(dice),
            "partitions": _partitions(dice) + ([PARTITIONS] if dice.random() < 0.1 else []),
            "offset": dice.randrange(1000),
            "version": dice.choices(range(highest + 1), [1, 1, 1, 3, 2, 8, 4][: highest + 1])[0],
            "member": dice.choices([("", -1), ("m", 5), ("m", -1)], [12, 1, 1])[0],
            "long": dice.random() < 0.05,
        },
    )


def _end(dice: random.Random) -> Step:
    return Step(
        "end",
        {
            **_who(dice),
            "commit": dice.random() < 0.6,
            "version": dice.choices([1, 3, 4, 5], [1, 1, 3, 8])[0],
        },
    )


def _fetch(dice: random.Random) -> Step:
    return Step(
        "fetch",
        {
            "index": dice.randrange(PARTITIONS),
            "offset": dice.choice([0, 0, 1, 3, 7]),
            "committed": dice.random() < 0.7,
            "version": dice.choice([4, 7, 11, 12, 13]),
        },
    )


class Player:
    """Plays steps on one broker. ``wait_out`` returns when a transaction that is open for longer
    than ``SHORT_MS`` has been aborted. Names of everything begin with ``prefix``."""

    def __init__(
        self, raw: RawTransactions, wait_out: Callable[[str], None], prefix: str, topic: str
    ) -> None:
        self._raw = raw
        self._wait_out = wait_out
        self._prefix = prefix
        self._topic = topic
        self._known: dict[int, list[Producer]] = {slot: [] for slot in range(_IDS)}
        self._sequences: dict[tuple[Producer, int], int] = {}
        self._last: dict[tuple[Producer, int], tuple[int, int]] = {}

    def play(self, steps: Sequence[Step]) -> list[Any]:
        """The answers to all steps."""
        return [getattr(self, step.name)(**step.options) for step in steps]

    # -- names -----------------------------------------------------------------------------------

    def _id(self, slot: int) -> str:
        return f"{self._prefix}-t{slot}"

    def _group(self, group: int) -> str:
        return f"{self._prefix}-g{group}"

    def _place(self, index: int) -> tuple[str, int]:
        return (self._topic, index) if index < PARTITIONS else (_MISSING, 0)

    def _producer(self, slot: int, who: str) -> Producer:
        known = self._known[slot] or [(-1, -1)]
        if who == "nobody":
            return (-1, -1)
        if who == "before":
            return known[-2] if len(known) > 1 else known[-1]
        if who == "oldest":
            return known[0]
        if who == "future":
            return (known[-1][0], known[-1][1] + 1)
        if who == "stranger":
            return (self._known[(slot + 1) % _IDS] or known)[-1]
        return known[-1]

    def _learn(self, slot: int, producer: Producer) -> None:
        if producer[0] >= 0 and producer not in self._known[slot]:
            self._known[slot].append(producer)

    # -- steps -----------------------------------------------------------------------------------

    def init(self, slot: int, who: str, timeout_ms: int = LONG_MS, version: int = 5) -> Any:
        producer = self._producer(slot, who)
        answer, got = self._raw.init(self._id(slot), timeout_ms, producer, version)
        self._raw.settle(self._id(slot))
        self._learn(slot, got)
        return answer

    def produce(
        self,
        slot: int,
        who: str,
        partitions: Sequence[int],
        sequence: str,
        records: int,
        version: int,
        *,
        transactional: bool,
        id: str,  # noqa: A002 (the option's name in a trace)
    ) -> Any:
        producer = self._producer(slot, who)
        transactional_id = {"own": self._id(slot), "other": self._id(9), "none": None, "empty": ""}
        answers: list[Any] = []
        for index in partitions:
            key = (producer, index)
            number, count = self._sequences.get(key, 0), records
            if sequence == "again" and key in self._last:
                number, count = self._last[key]
            elif sequence == "gap":
                number += 2
            elif sequence == "zero":
                number = 0
            values = [b"%d.%d" % (number, each) for each in range(count)]
            answer = self._raw.produce(
                transactional_id[id],
                producer,
                number,
                {(self._topic, index): values},
                version,
                transactional=transactional,
            )
            answers.append(answer)
            if answer[0][2] == 0:
                self._last[key] = (number, count)
                self._sequences[key] = max(self._sequences.get(key, 0), number + count)
        return answers

    def add_partitions(
        self, slot: int, who: str, partitions: Sequence[int], version: int, *, verify_only: bool
    ) -> Any:
        return self._raw.add_partitions(
            self._id(slot),
            self._producer(slot, who),
            [self._place(index) for index in partitions],
            version,
            verify_only=verify_only,
        )

    def add_offsets(self, slot: int, who: str, group: int) -> Any:
        producer = self._producer(slot, who)
        return self._raw.add_offsets(self._id(slot), producer, self._group(group))

    def txn_commit(
        self,
        slot: int,
        who: str,
        group: int,
        partitions: Sequence[int],
        offset: int,
        version: int,
        member: tuple[str, int],
        *,
        long: bool,
    ) -> Any:
        return self._raw.txn_commit(
            self._id(slot),
            self._producer(slot, who),
            self._group(group),
            {self._place(index): offset + index for index in partitions},
            version,
            member=member if version >= 3 else ("", -1),
            metadata="x" * 5000 if long else "note",
        )

    def end(self, slot: int, who: str, version: int, *, commit: bool) -> Any:
        producer = self._producer(slot, who)
        answer, after = self._raw.end(self._id(slot), producer, commit=commit, version=version)
        self._raw.settle(self._id(slot))
        self._learn(slot, after)
        return answer

    def time_out(self, slot: int, version: int) -> Any:
        """A transaction that is too slow, and what its producer is told afterwards."""
        name = self._id(slot)
        answers: list[Any] = []
        producer = (-1, -1)
        while producer[0] < 0:
            answer, producer = self._raw.init(name, SHORT_MS)
            answers.append(answer)
            self._raw.settle(name)
        if version < 12:
            answers.append(self._raw.add_partitions(name, producer, [(self._topic, 0)]))
        batch = {(self._topic, 0): [b"late"]}
        answers.append(self._raw.produce(name, producer, 0, batch, version))
        self._wait_out(name)
        group = self._group(0)
        answers += [
            self._raw.describe(name),
            self._raw.produce(name, producer, 1, batch, version),
            self._raw.add_partitions(name, producer, [(self._topic, 0)]),
            self._raw.add_offsets(name, producer, group),
            self._raw.txn_commit(name, producer, group, {(self._topic, 0): 1}),
            self._raw.end(name, producer, commit=True, version=4)[0],
            self._raw.end(name, producer, commit=True)[0],
            self._raw.end(name, producer, commit=False)[0],
        ]
        answer, _ = self._raw.init(name, LONG_MS, producer)
        self._raw.settle(name)
        answers.append(answer)
        answers.append(self.init(slot, "nobody"))
        return answers

    def commit(self, group: int, offset: int) -> Any:
        return self._raw.commit(self._group(group), {(self._topic, 0): offset})

    def offsets(self, group: int, *, stable: bool) -> Any:
        places = [(self._topic, index) for index in range(PARTITIONS)]
        name = self._group(group)
        return (
            self._raw.offsets(name, places, stable=stable),
            self._raw.offsets(name, None, stable=stable),
        )

    def delete_offsets(self, group: int) -> Any:
        return self._raw.delete_offsets(self._group(group), [(self._topic, 0), (self._topic, 1)])

    def delete_group(self, group: int) -> Any:
        return self._raw.delete_group(self._group(group))

    def fetch(self, index: int, offset: int, version: int, *, committed: bool) -> Any:
        return self._raw.fetch(self._topic, index, offset, committed=committed, version=version)

    def find_offsets(self, index: int) -> Any:
        return [
            self._raw.list_offsets(self._topic, index, timestamp, committed=committed)
            for timestamp in (-1, -2, 0)
            for committed in (True, False)
        ]

    def look(self, slot: int) -> Any:
        return self._raw.describe(self._id(slot)), self._raw.producers(self._topic, slot)

    def write_marker(self, slot: int, who: str, *, commit: bool) -> Any:
        producer = self._producer(slot, who)
        places = [(self._topic, 0), (_MISSING, 0)]
        return self._raw.write_markers(producer, places, commit=commit)

    def look_at_everything(self) -> Any:
        everything: list[Any] = [self.look(slot) for slot in range(_IDS)]
        for index in range(PARTITIONS):
            everything.append(self.find_offsets(index))
            everything += [self.fetch(index, 0, 12, committed=each) for each in (True, False)]
        for group in range(2):
            everything.append(self.offsets(group, stable=True))
            everything.append(self.offsets(group, stable=False))
        return everything
