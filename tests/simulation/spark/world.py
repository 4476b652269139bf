"""A query, its group and everything that can happen to them, in an order that a seed chooses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final, cast

from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._begin import GroupOffset, OnGroupReset
from kip848_client.spark.source.core._manifest import Manifest, Ownership
from kip848_client.spark.source.core._planning import DataLost
from tests.simulation.spark.driver import Driver, options_for
from tests.simulation.spark.engine import Engine
from tests.simulation.spark.kafka import TOPIC, Group, Kafka, Log
from tests.simulation.spark.ledger import Ledger, Violation

__all__ = ["DISASTERS", "World", "play"]

_STEPS: Final = (40, 160)
_HEALING: Final = 400
_OWNERSHIPS: Final[tuple[Ownership, ...]] = ("shared", "shared", "exclusive")

DISASTERS: Final = (
    "lose_session",
    "restore",
    "copy",
    "reset",
    "expire",
    "delete_group",
    "create_again",
    "truncate",
    "retain",
    "add_partition",
    "change_ownership",
    "change_group",
)
"""What a seed may choose, beside crashes, restarts and members that come and go."""
_LOSES: Final = {"truncate", "retain", "create_again"}


class World:
    """One seed."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = Random(seed)
        self.kafka = Kafka([Log() for _ in range(rng.randint(1, 3))])
        self._partitions = len(self.kafka.logs)
        self.groups: dict[str, Group] = {"g": Group(self.kafka)}
        self.happened: Counter[str] = Counter()
        """What the seed has taken, by name."""
        self.disasters = rng.sample(DISASTERS, rng.choice([0, 0, 1, 2, 4]))
        self.starting = rng.choice([None, "earliest", "earliest", "latest"])
        self.uses_group = rng.random() < 0.3
        ownership: Ownership = rng.choice(_OWNERSHIPS)
        if ownership == "shared" or "change_ownership" in self.disasters:
            # A group's offset does not say in which leader epoch it is: after a truncation a member
            # may be refused, or follow an offset beyond the cut (decision 43, "Limits").
            self.disasters = [each for each in self.disasters if each != "truncate"]
        ledger = Ledger(self.kafka, ownership == "shared")
        replaces = rng.random() < 0.5
        self.query = Engine(self.kafka, rng, ledger, replaces, ownership)
        self.queries = [self.query]
        self.backup: tuple[list[str], int] | None = None
        self._tokens = 0
        for tp in self.kafka.partitions:
            self.kafka.produce(tp, rng.randint(0, 20))
        if self.uses_group:
            for tp in self.kafka.partitions:
                self._work_of_others(tp, rng.randint(0, 20), 0)

    def play(self) -> None:
        """Let things happen, then let them come to rest."""
        actions: dict[Callable[[], None], int] = {
            self.step: 40,
            self.produce: 10,
            self.crash: 3,
            self.stop: 1,
            self.hand_over: 5,
            self.others_work: 6,
            self.others_leave: 3,
            self.toggle_commits: 1,
        } | {getattr(self, name): 2 for name in self.disasters}
        names, weights = list(actions), list(actions.values())
        for action in self.rng.choices(names, weights, k=self.rng.randint(*_STEPS)):
            self._do(action)
        self._heal()

    def _do(self, action: Callable[[], None]) -> None:
        self.query = self.rng.choice(self.queries)
        action()
        for group in self.groups.values():
            group.settle()

    def _heal(self) -> None:
        """Without disasters, everything is read in the end."""
        self.queries[1:] = []
        self.query = self.queries[0]
        for _ in range(_HEALING):
            if self._is_at_the_end():
                break
            if self.query.driver is not None:
                self.query.driver.commits_fail = False
            for tp in list(self.group.foreign):
                del self.group.foreign[tp]
            for member in list(self.group.members):
                if member is not self.query.driver:
                    self.group.leave(member)
            self.group.settle()
            self.group.deal()
            self.step()
        query = self.query
        for tp in self.kafka.partitions:
            query.ledger.check(tp, self.kafka.log(tp).end, None, "there in the end")

    def _is_at_the_end(self) -> bool:
        query = self.query
        if query.failed or not query.offsets or query.commits < len(query.offsets) - 1:
            return False
        last = Manifest.of(json.loads(query.offsets[-1]))
        if last.topic_ids[TOPIC] != self.kafka.topic_id:
            return False
        offsets = self.group.offsets
        at = {**last.ends, **{tp: offsets[tp].offset for tp in last.unread if tp in offsets}}
        return all(at.get(tp) == self.kafka.log(tp).end for tp in self.kafka.partitions)

    @property
    def group(self) -> Group:
        """The group of the query in hand."""
        return self.groups.setdefault(self.query.group, Group(self.kafka))

    def _a_partition(self) -> TopicPartition:
        return self.rng.choice(self.kafka.partitions)

    # -- the query -----------------------------------------------------------------------------

    def step(self) -> None:
        """Spark goes on; a query that does not run is started."""
        query = self.query
        if query.driver is None:
            self._start()
        else:
            query.driver.now_ms += 60_000 * self.rng.choice([1, 1, 1, 24 * 60])
            query.step(self._is_expected)

    def _start(self) -> None:
        query = self.query
        if query.failed is not None:
            self._help(query, query.failed)
        self._tokens += 1
        options = options_for(
            query.ownership, self.starting, query.group, cast("OnGroupReset", query.on_reset)
        )
        query.on_reset = "fail"
        driver = Driver(
            self.kafka,
            self.groups,
            options,
            query.ledger,
            f"t{self._tokens}",
            fails_on_data_loss=query.fails_on_data_loss,
        )
        query.start(driver, available_now=self.rng.random() < 0.2)

    def _help(self, query: Engine, failed: Exception) -> None:
        """What an administrator does about an error: what its text says."""
        text = str(failed)
        if isinstance(failed, DataLost):
            query.fails_on_data_loss = False
            query.ledger.loss_is_announced(text)
        elif "onGroupReset" in text or "another query runs" in text:
            query.on_reset = self.rng.choice(["group", "checkpoint"])
            query.ledger.everything_may_repeat()
        elif "has members" in text or "another query" in text:
            self.group.foreign.clear()
            self.group.members.clear()
            self.group.owners.clear()
            if not query.offsets:
                self.group.offsets.clear()
        elif "was written for group" in text:
            self.group.offsets.clear()
        query.failed = None

    def _is_expected(self, err: Exception) -> bool:
        """Errors are promises, too: without a reason there must be none."""
        if isinstance(err, DataLost) and _LOSES & self.happened.keys():
            return True
        if not isinstance(err, ConfigError):
            return False
        excuses = {"reset", "restore", "copy", "expire", "delete_group", "change_ownership"}
        if (excuses | {"change_group"}) & self.happened.keys():
            return True
        if self.query.ownership == "exclusive" and not self.query.offsets:
            return True  # the group is another's
        raise Violation(f"Refused: {err}")

    def crash(self) -> None:
        """The process dies; its session may be over before the next one starts."""
        driver, query = self.query.driver, self.query
        if driver is None:
            return
        self.happened["crash"] += 1
        query.crash()
        taken = [tp for tp in self.kafka.partitions if self.rng.random() < 0.4]
        driver.group.end_session(driver, taken if query.ownership == "shared" else [])

    def stop(self) -> None:
        """The process ends as it should."""
        self.query.stop()

    def toggle_commits(self) -> None:
        """Commits to the group fail, or succeed again."""
        if self.query.driver is not None:
            self.query.driver.commits_fail = not self.query.driver.commits_fail

    def lose_session(self) -> None:
        """The member is fenced, and joins again."""
        driver, group = self.query.driver, self.group
        if driver is None or driver not in group.members:
            return
        self.happened["lose_session"] += 1
        taken = [tp for tp in self.kafka.partitions if self.rng.random() < 0.5]
        group.end_session(driver, taken)
        driver.lost()
        if self.rng.random() < 0.5:
            for tp in taken:
                self._work_of_others(tp, self.rng.randint(0, 8), None)
                if self.rng.random() < 0.5:
                    group.foreign.pop(tp, None)
        group.join(driver)

    # -- others --------------------------------------------------------------------------------

    def produce(self) -> None:
        """More records."""
        self.kafka.produce(self._a_partition(), self.rng.randint(1, 12))

    def hand_over(self) -> None:
        """The plain consumer gets a partition; beside an exclusive query, all the same."""
        tp = self._a_partition()
        if tp not in self.group.foreign and self.group.take(tp):
            self.happened["hand_over"] += 1

    def others_work(self) -> None:
        """The plain consumer reads, and commits most of the time."""
        if self.group.foreign:
            tp = self.rng.choice(sorted(self.group.foreign))
            self._work_of_others(tp, self.rng.randint(0, 10), None)

    def _work_of_others(self, tp: TopicPartition, count: int, start: int | None) -> None:
        group, log = self.group, self.kafka.log(tp)
        at = group.foreign.get(tp) if start is None else start
        if at is None:
            return
        end = min(log.end, max(at, log.first) + count)
        if end < at:
            return
        group.offsets[tp] = GroupOffset(end)
        if tp in group.foreign:
            group.foreign[tp] = end
        for query in self.queries:
            if query.group == self.query.group:
                others = [each.ledger.written for each in self.queries if each is not query]
                query.ledger.others_commit(tp, at, end, set[int]().union(*others))

    def others_leave(self) -> None:
        """The plain consumer gives a partition back."""
        if self.group.foreign:
            tp = self.rng.choice(sorted(self.group.foreign))
            del self.group.foreign[tp]
            self.group.deal()

    # -- disasters -----------------------------------------------------------------------------

    def _rest(self) -> bool:
        """Whether no member is there: an administrator may change the group."""
        self.query.stop()
        self.group.foreign.clear()
        return not self.group.members

    def restore(self) -> None:
        """The checkpoint is saved, and set back later."""
        query = self.query
        if not query.offsets:
            return
        if self.backup is None or self.rng.random() < 0.5:
            self.backup = list(query.offsets), query.commits
            return
        self.happened["restore"] += 1
        query.stop()
        query.offsets, query.commits = list(self.backup[0]), self.backup[1]
        query.ledger.everything_may_repeat()

    def copy(self) -> None:
        """A second query with a copy of the checkpoint, and a sink of its own."""
        query = self.query
        if len(self.queries) > 1 or not query.offsets:
            return
        self.happened["copy"] += 1
        query.ledger.everything_may_repeat()
        other = replace(
            query,
            ledger=query.ledger.copy(self.kafka),
            offsets=list(query.offsets),
            sink={number: list(rows) for number, rows in query.sink.items()},
            driver=None,
            _life=None,
        )
        self.queries.append(other)

    def reset(self) -> None:
        """An administrator resets an offset of a group without members."""
        if not self._rest():
            return
        self.happened["reset"] += 1
        tp = self._a_partition()
        log = self.kafka.log(tp)
        to = self.rng.randint(log.first, log.end)
        self.group.offsets[tp] = GroupOffset(to)
        for query in self.queries:
            query.ledger.is_reset(tp, to)

    def expire(self) -> None:
        """The group has no members for long, and loses an offset."""
        if not self._rest():
            return
        self.happened["expire"] += 1
        self.group.offsets.pop(self._a_partition(), None)
        for query in self.queries:
            query.ledger.everything_may_repeat()

    def delete_group(self) -> None:
        """The group is deleted."""
        if not self._rest():
            return
        self.happened["delete_group"] += 1
        self.group.offsets.clear()
        for query in self.queries:
            query.ledger.everything_may_repeat()

    def create_again(self) -> None:
        """The topic is deleted, with the group's offsets, and created again."""
        self.happened["create_again"] += 1
        self.kafka.create_again()
        for group in self.groups.values():
            group.offsets.clear()
            group.foreign.clear()
            members = list(group.members)
            group.owners.clear()
            for member in members:
                member.lost()
            group.deal()

    def truncate(self) -> None:
        """A leader that had fewer records is elected."""
        self.happened["truncate"] += 1
        tp = self._a_partition()
        log = self.kafka.log(tp)
        self.kafka.truncate(tp, self.rng.randint(log.first, log.end))
        for group in self.groups.values():
            if tp in group.foreign:  # it sees that by its leader epochs, and commits
                group.foreign[tp] = min(group.foreign[tp], log.end)
                if tp in group.offsets:
                    group.offsets[tp] = GroupOffset(min(group.offsets[tp].offset, log.end))

    def retain(self) -> None:
        """Retention deletes records."""
        self.happened["retain"] += 1
        tp = self._a_partition()
        log = self.kafka.log(tp)
        log.first = self.rng.randint(log.first, log.end)
        if tp.partition >= self._partitions:  # it begins at the first record that is there
            for query in self.queries:
                query.ledger.loss_is_announced(shown(tp))

    def add_partition(self) -> None:
        """The topic gets another partition."""
        if len(self.kafka.logs) < 5:
            self.happened["add_partition"] += 1
            self.kafka.logs.append(Log())
            for group in self.groups.values():
                group.deal()

    def change_ownership(self) -> None:
        """The administrator restarts the query with the other ownership."""
        query = self.query
        self.happened["change_ownership"] += 1
        query.stop()
        query.ownership = "exclusive" if query.ownership == "shared" else "shared"
        query.ledger.group_changes()

    def change_group(self) -> None:
        """The administrator restarts the query with another group."""
        query = self.query
        self.happened["change_group"] += 1
        query.stop()
        query.group = "h" if query.group == "g" else "g"
        query.ledger.group_changes()


def play(seed: int) -> World:
    """Play a seed. Raises ``Violation``, with the seed and what it may have taken."""
    world = World(seed)
    try:
        world.play()
    except Violation as err:
        taken = ", ".join(sorted(world.happened)) or "nothing"
        raise Violation(f"{err} (seed {seed}, {world.query.ownership}; it took {taken})") from None
    return world
