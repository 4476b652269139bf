"""What becomes of a batch, whatever dies, hangs or times out: each row is there once, or it is
told. The rules are played against transactions in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.types import TopicPartition
from kip848_client.spark.sink.core._decisions import Decision, Participant, kept_in, texts_of
from kip848_client.spark.sink.core._two_phase_commit import (
    AbortStale,
    Batch,
    BatchLost,
    BatchRefused,
    Command,
    Decide,
    Describe,
    End,
    FenceDriver,
    ListOpen,
    Read,
    Seen,
    Steps,
    TransactionStatus,
    Warn,
    abort,
    commit,
)
from tests.support.examples import examples

NAME = "q"
ROWS = 4


class Fenced(Exception):
    """Another driver has taken over."""


class World:
    """Transactions and a group's offsets, as Kafka keeps them."""

    def __init__(self) -> None:
        self.statuses: dict[str, TransactionStatus] = {}
        self.rows: dict[str, tuple[int, ...]] = {}
        self.started: dict[str, int] = {}
        self.texts: dict[TopicPartition, str] = {}
        self.epoch = 0
        self.runs = 0
        self.told: list[str] = []
        self.clock = 0

    def write(self, split: list[int], run: str | None = None) -> Batch:
        """A new run's tasks write all rows: row number n is the task's ``split[n]``."""
        if run is None:
            self.runs += 1
            run = f"{self.runs:012x}"
        participants: list[Participant] = []
        for task in sorted(set(split)):
            name = f"{NAME}-{run}-{task}-0"
            rows = tuple(row for row, whose in enumerate(split) if whose == task)
            self.clock += 1
            self.statuses[name], self.rows[name], self.started[name] = (
                TransactionStatus.OPEN,
                rows,
                self.clock,
            )
            participants.append(Participant(name, 7, 0, is_v2=True, rows=len(rows)))
        return Batch(NAME, "the query", 0, run, tuple(participants))

    def times_out(self, name: str) -> None:
        if self.statuses[name] is TransactionStatus.OPEN:
            self.statuses[name] = TransactionStatus.ABORTED

    def seen(self, participants: tuple[Participant, ...]) -> dict[Participant, Seen]:
        return {
            each: Seen(
                self.statuses[each.transactional_id], self.started[each.transactional_id], 60_000
            )
            for each in participants
        }

    def visible(self) -> Counter[int]:
        return Counter(
            row
            for name, status in self.statuses.items()
            if status is TransactionStatus.COMMITTED
            for row in self.rows[name]
        )

    def perform(self, command: Command, epoch: int) -> Any:
        match command:
            case Read():
                return kept_in(NAME, self.texts)
            case Describe(participants):
                return self.seen(participants)
            case Decide(decision, kept):
                if epoch != self.epoch:
                    raise Fenced
                self.texts |= dict.fromkeys(kept.places, "")
                for part, text in enumerate(texts_of(NAME, decision)):
                    self.texts[TopicPartition("a", part)] = text
            case End(participants, commits):
                for each in participants:
                    if self.statuses[each.transactional_id] is TransactionStatus.OPEN:
                        self.statuses[each.transactional_id] = (
                            TransactionStatus.COMMITTED if commits else TransactionStatus.ABORTED
                        )
                return {each: self.statuses[each.transactional_id] for each in participants}
            case ListOpen():
                return {
                    name: Seen(status, self.started[name])
                    for name, status in self.statuses.items()
                    if status is TransactionStatus.OPEN
                }
            case AbortStale(names):
                for name in names:
                    self.times_out(name)
            case Warn(text):
                self.told.append(text)
            case FenceDriver():
                pass
        return None


class Driver:
    """Carries one commit or abort out, a command at a time."""

    def __init__(self, world: World, steps: Steps) -> None:
        self._world = world
        self._steps = steps
        self._epoch = 0
        self._answer: Any = None
        self.command: Command | None = next(steps)

    def step(self) -> None:
        """Perform the command that is due. Raises what the rules raise."""
        assert self.command is not None
        if isinstance(self.command, FenceDriver):
            self._world.epoch += 1
            self._epoch = self._world.epoch
        answer = self._world.perform(self.command, self._epoch)
        try:
            self.command = self._steps.send(answer)
        except StopIteration:
            self.command = None

    def run(self) -> None:
        while self.command is not None:
            self.step()


def play(world: World, steps: Steps) -> None:
    """Without trouble."""
    Driver(world, steps).run()


_SPLITS = st.lists(st.integers(0, 2), min_size=ROWS, max_size=ROWS)


@settings(max_examples=examples(600))
@given(st.data())
def test_a_batch_is_there_once_whoever_dies_when_and_whatever_times_out(
    data: st.DataObject,
) -> None:
    world = World()
    has_ended = False
    for _ in range(5):  # attempts
        batch = world.write(data.draw(_SPLITS))
        try:
            has_ended = _attempt(data, world, commit(batch))
        except BatchLost:
            assert max(world.visible().values()) == 1
            return
        except BatchRefused:
            try:
                _attempt(data, world, abort(batch))
            except BatchLost:
                return
        assert not world.visible() or max(world.visible().values()) == 1, world.statuses
        if has_ended:
            break
        _time_out_some(data, world)
    if not has_ended:
        batch = world.write([0] * ROWS)
        try:
            play(world, commit(batch))
        except BatchLost:
            assert max(world.visible().values()) == 1
            return
    assert world.visible() == Counter(range(ROWS)), world.statuses


def _attempt(data: st.DataObject, world: World, steps: Steps) -> bool:
    """Whether it came to its end; else the driver has died, before or after a command."""
    driver = Driver(world, steps)
    dies_after = data.draw(st.integers(0, 12), "dies after")
    times_out = data.draw(st.sampled_from([False, False, False, True]), "a time-out meanwhile")
    while driver.command is not None:
        if not dies_after:
            return False
        dies_after -= 1
        driver.step()
        if times_out and data.draw(st.booleans()):
            _time_out_some(data, world)
    return True


def _time_out_some(data: st.DataObject, world: World) -> None:
    still = [name for name, status in world.statuses.items() if status is TransactionStatus.OPEN]
    for name in still:
        if data.draw(st.booleans(), f"{name} times out"):
            world.times_out(name)


@settings(max_examples=examples(400))
@given(st.data())
def test_two_drivers_of_one_checkpoint_write_a_batch_once(data: st.DataObject) -> None:
    world = World()
    batches = [world.write(data.draw(_SPLITS)) for _ in range(2)]
    drivers = [Driver(world, commit(batch)) for batch in batches]
    ends = 0
    while drivers:
        at = data.draw(st.integers(0, len(drivers) - 1))
        driver = drivers[at]
        try:
            driver.step()
        except (Fenced, BatchRefused):
            del drivers[at]
            continue
        if driver.command is None:
            del drivers[at]
            ends += 1
    assert not world.visible() or max(world.visible().values()) == 1, world.statuses
    if ends:
        assert world.visible() == Counter(range(ROWS)), world.statuses
    else:  # each has got into the other's way, and Spark repeats the batch
        play(world, commit(world.write([0, 0, 1, 1])))
        assert world.visible() == Counter(range(ROWS))


def test_a_crash_at_each_command_and_a_restart_in_time_loses_nothing() -> None:
    for dies_after in range(12):
        world = World()
        driver = Driver(world, commit(world.write([0, 1, 2, 2])))
        for _ in range(dies_after):
            if driver.command is not None:
                driver.step()
        play(world, commit(world.write([1, 1, 0, 0])))
        assert world.visible() == Counter(range(ROWS)), dies_after
        assert not world.told
        assert TransactionStatus.OPEN not in world.statuses.values(), "what is left over is aborted"


def _up_to(world: World, steps: Steps, kind: type[Command]) -> Driver:
    driver = Driver(world, steps)
    while not isinstance(driver.command, kind):
        driver.step()
    return driver


def test_what_was_decided_and_partly_committed_is_lost_loudly_when_the_rest_times_out() -> None:
    world = World()
    batch = world.write([0, 0, 1, 1])
    _up_to(world, commit(batch), End)
    first, second = batch.participants
    world.statuses[first.transactional_id] = TransactionStatus.COMMITTED
    world.times_out(second.transactional_id)
    again = world.write([0, 0, 1, 1])
    with pytest.raises(BatchLost, match=r"2 rows of batch 0 are lost.*delete group q"):
        play(world, commit(again))
    assert world.visible() == Counter([0, 1])
    assert TransactionStatus.OPEN not in world.statuses.values()
    tolerant = Batch(NAME, "the query", 0, "f" * 12, (), fails_on_data_loss=False)
    play(world, commit(tolerant))
    assert "continuing" in world.told[-1]


def test_what_was_decided_and_wholly_timed_out_is_decided_anew() -> None:
    world = World()
    batch = world.write([0, 0, 1, 1])
    _up_to(world, commit(batch), End)
    world.times_out(batch.participants[0].transactional_id)
    play(world, commit(world.write([0, 1, 0, 1])))
    assert world.visible() == Counter(range(ROWS))
    assert "written again" in world.told[0]


def test_what_kafka_has_forgotten_is_told() -> None:
    world = World()
    batch = world.write([0] * ROWS)
    play(world, commit(batch))
    world.statuses[batch.participants[0].transactional_id] = TransactionStatus.UNKNOWN
    with pytest.raises(BatchLost, match="it is unknown whether 4 rows"):
        play(world, commit(world.write([0] * ROWS)))


def test_a_commit_that_failed_after_its_decision_is_carried_out_by_the_abort() -> None:
    world = World()
    batch = world.write([0, 1, 0, 1])
    _up_to(world, commit(batch), End)
    play(world, abort(batch))
    assert world.visible() == Counter(range(ROWS))
    play(world, commit(world.write([0, 1, 0, 1])))
    assert world.visible() == Counter(range(ROWS))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (Seen(TransactionStatus.ABORTED), "is aborted, not open"),
        (Seen(TransactionStatus.OPEN, 0, 900), "has 900 ms left"),
    ],
)
def test_nothing_is_decided_unless_all_are_open_and_have_time(change: Seen, told: str) -> None:
    world = World()
    batch = world.write([0, 1, 1, 1])
    honest: Callable[..., Mapping[Participant, Seen]] = world.seen

    def seen(participants: tuple[Participant, ...]) -> dict[Participant, Seen]:
        found = dict(honest(participants))
        return {**found, max(found): change}

    world.seen = seen  # type: ignore[method-assign]  # one transaction is not as it was
    with pytest.raises(BatchRefused, match=told):
        play(world, commit(batch))
    assert not world.texts
    assert set(world.statuses.values()) == {TransactionStatus.ABORTED}


def test_a_checkpoint_that_was_set_back_is_refused() -> None:
    world = World()
    late = world.write([0] * ROWS)
    play(world, commit(Batch(NAME, "the query", 5, late.run, late.participants)))
    early = world.write([0] * ROWS)
    with pytest.raises(BatchRefused, match=r"batch 0 comes after batch 5.*delete group q"):
        play(world, commit(early))
    assert world.statuses[early.participants[0].transactional_id] is TransactionStatus.ABORTED


def test_another_query_carries_out_what_the_one_before_has_decided() -> None:
    world = World()
    before = world.write([0] * ROWS)
    _up_to(world, commit(before), End)
    mine = world.write([0] * ROWS)
    play(world, commit(Batch(NAME, "another", 0, mine.run, mine.participants)))
    assert world.visible() == Counter(dict.fromkeys(range(ROWS), 2))
    kept = kept_in(NAME, world.texts)
    assert [each.query for each in kept.decisions] == ["another"]


def test_stale_transactions_are_aborted_and_those_of_successors_and_strangers_are_not() -> None:
    world = World()
    old = world.write([0] * ROWS)
    mine = world.write([0] * ROWS)
    attempt = f"{NAME}-{mine.run}-0-1"
    young = world.write([0] * ROWS)
    world.clock += 1
    for name in (attempt, "q-r-000000000001-0-0", "q-000000000001-0-0-0"):
        world.statuses[name], world.rows[name] = TransactionStatus.OPEN, ()
        world.started[name] = world.clock if name == attempt else 0
    play(world, commit(mine))
    still = {name for name, status in world.statuses.items() if status is TransactionStatus.OPEN}
    assert still == {
        young.participants[0].transactional_id,
        "q-r-000000000001-0-0",
        "q-000000000001-0-0-0",
    }
    assert world.statuses[old.participants[0].transactional_id] is TransactionStatus.ABORTED


def test_a_batch_without_rows_decides_nothing_and_ends_what_was_decided() -> None:
    world = World()
    _up_to(world, commit(world.write([0, 1, 2, 0])), End)
    empty = Batch(NAME, "the query", 0, "e" * 12, ())
    play(world, commit(empty))
    assert world.visible() == Counter(range(ROWS))
    play(world, commit(Batch(NAME, "the query", 1, "e" * 12, ())))
    assert [each.batch for each in kept_in(NAME, world.texts).decisions] == [0]


def test_a_decision_of_many_tasks_has_several_texts_each_below_the_limit() -> None:
    tasks = tuple(
        sorted(Participant(f"q-{'a' * 12}-{n}-0", 10**12 + n, 0, True, 10**6) for n in range(500))
    )
    decision = Decision("the query", 9, "a" * 12, tasks)
    texts = texts_of("q", decision)
    assert len(texts) > 3
    assert max(len(text) for text in texts) < 4_000
    places = {TopicPartition("a", part): text for part, text in enumerate(texts)}
    assert kept_in("q", places).decisions == (decision,)
    places[TopicPartition("a", 0)] = texts_of("q", Decision("the query", 10, "b" * 12, ()))[0]
    assert [each.batch for each in kept_in("q", places).decisions] == [10]
    assert kept_in("q", {TopicPartition("a", 0): "something else"}).decisions == ()
