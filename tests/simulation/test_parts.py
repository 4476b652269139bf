"""The parts of the simulation, each by itself: clock, network, records, checkers, options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kip848_client.core.member import EXTRA_HEARTBEATS_MAX, LossReason, MemberState
from kip848_client.core.types import GroupId, TopicId, TopicIdPartition
from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.errors import ConfigError
from mock_coordinator.core.groups.records.state_records import (
    CurrentAssignment,
    CurrentMemberAssignment,
    GroupEpoch,
    GroupEpochMetadata,
    OffsetAndMetadata,
    OffsetCommit,
    StateRecord,
    TargetAssignmentMetadata,
    TargetEpoch,
)
from mock_coordinator.sim.checkers import Checkers, Tag
from mock_coordinator.sim.client_connection import ClientConnection
from mock_coordinator.sim.command_line import main, seeds_of
from mock_coordinator.sim.early_heartbeats import EarlyHeartbeats
from mock_coordinator.sim.invariants import (
    Commits,
    Deliveries,
    EpochsRise,
    Lease,
    Rates,
    SoleHolder,
    Violation,
)
from mock_coordinator.sim.kernel import Kernel, Spinning
from mock_coordinator.sim.network import Connection, Network, Packet
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.recorded_groups import RecordedGroups
from mock_coordinator.sim.swarm import Options, draw_options, with_changes
from mock_coordinator.sim.trace import Trace, shown_partitions

T = TopicId(b"t" * 16)


class TestKernel:
    def test_things_happen_in_order_of_time_and_then_of_asking(self) -> None:
        kernel, seen = Kernel(1, start_ms=0), list[str]()
        kernel.at(20, lambda: seen.append("late"))
        kernel.at(10, lambda: seen.append("first"))
        kernel.at(10, lambda: seen.append("second"))
        kernel.run_until(15)
        assert (seen, kernel.now_ms) == (["first", "second"], 15)
        kernel.run_until(30)
        assert (seen[-1], kernel.now_ms, kernel.events) == ("late", 30, 3)

    def test_a_cancelled_timer_never_fires(self) -> None:
        kernel, seen = Kernel(1), list[str]()
        timer = kernel.after(5, lambda: seen.append("never"))
        assert timer.pending
        timer.cancel()
        assert not kernel.run_until(kernel.now_ms + 10)
        assert (seen, timer.pending) == ([], False)

    def test_the_past_is_now(self) -> None:
        kernel, seen = Kernel(1, start_ms=100), list[int]()
        kernel.at(5, lambda: seen.append(kernel.now_ms))
        kernel.run_until(100)
        assert seen == [100]

    def test_it_stops_early_and_goes_on(self) -> None:
        kernel, seen = Kernel(1, start_ms=0), list[int]()
        for time_ms in (1, 2, 3):
            kernel.at(time_ms, lambda: seen.append(kernel.now_ms))
        assert kernel.run_until(10, lambda: len(seen) == 2)
        assert seen == [1, 2]
        kernel.run_until(10)
        assert seen == [1, 2, 3]

    def test_what_feeds_itself_is_named(self) -> None:
        kernel = Kernel(1)

        def again() -> None:
            kernel.after(0, again)

        again()
        with pytest.raises(Spinning):
            kernel.run_until(kernel.now_ms + 1)


class Wires:
    """A network with one client and one server that notes what it gets and echoes it."""

    def __init__(self, **changes: object) -> None:
        calm = {
            "lose_request": 0.0,
            "lose_response": 0.0,
            "duplicate": 0.0,
            "delay_ms_max": 50,
            "codec": "false",
            **changes,
        }
        self.options: Options = with_changes(
            draw_options(1), {name: str(value) for name, value in calm.items()}
        )
        self.kernel = Kernel(1, start_ms=0)
        self.network = Network(self.kernel, self.options, Trace(0), Probes())
        self.arrived: list[Packet] = []
        self.answers: list[Packet] = []
        self.broken = 0
        self.network.servers["broker"] = self._serve

    def _serve(self, connection: Connection, packet: Packet) -> None:
        self.arrived.append(packet)
        if not packet.again:
            self.network.answer(connection, packet)

    def connect(self) -> Connection:
        connection = self.network.connect("m", "broker", self.answers.append, self._on_broken)
        assert connection is not None
        return connection

    def _on_broken(self) -> None:
        self.broken += 1

    def send(self, connection: Connection, count: int) -> None:
        for number in range(count):
            packet = Packet(number, 3, 12, MetadataRequest(topics=()))
            self.network.send(connection, packet, 60_000)


class TestNetwork:
    def test_one_connection_keeps_its_order(self) -> None:
        wires = Wires()
        wires.send(wires.connect(), 50)
        wires.kernel.run_until(10_000)
        assert [packet.correlation for packet in wires.answers] == list(range(50))

    def test_two_connections_do_not(self) -> None:
        wires = Wires()
        for number in range(50):
            packet = Packet(number, 3, 12, MetadataRequest(topics=()))
            wires.network.send(wires.connect(), packet, 60_000)
        wires.kernel.run_until(10_000)
        order = [packet.correlation for packet in wires.arrived]
        assert sorted(order) == list(range(50)) != order

    def test_after_a_loss_nothing_more_arrives_there(self) -> None:
        wires = Wires(lose_request=0.2)
        wires.send(wires.connect(), 50)
        wires.kernel.run_until(10_000)
        arrived = [packet.correlation for packet in wires.arrived]
        assert arrived == list(range(len(arrived)))
        assert len(arrived) < 50

    def test_a_lost_response_was_acted_on(self) -> None:
        wires = Wires(lose_response=1.0)
        wires.send(wires.connect(), 1)
        wires.kernel.run_until(10_000)
        assert (len(wires.arrived), wires.answers) == (1, [])

    def test_a_cut_loses_one_way_or_both(self) -> None:
        wires = Wires()
        connection = wires.connect()
        wires.network.cut("broker", "m", 1_000, both_ways=False)
        wires.send(connection, 1)
        wires.kernel.run_until(500)
        assert (len(wires.arrived), wires.answers) == (1, [])
        wires.network.cut("m", "broker", 1_000, both_ways=True)
        nothing = (wires.answers.append, wires._on_broken)
        assert wires.network.connect("m", "broker", *nothing) is None
        wires.kernel.run_until(2_000)
        assert wires.network.connect("m", "broker", *nothing) is not None

    def test_a_clog_delays_and_loses_nothing(self) -> None:
        wires = Wires()
        wires.network.clog("m", "broker", 5_000)
        wires.send(wires.connect(), 3)
        wires.kernel.run_until(4_999)
        assert wires.arrived == []
        wires.kernel.run_until(6_000)
        assert len(wires.arrived) == 3

    def test_a_copy_comes_later_and_is_marked(self) -> None:
        wires = Wires(duplicate=1.0)
        wires.send(wires.connect(), 1)
        wires.kernel.run_until(60_000)
        assert [packet.again for packet in wires.arrived] == [False, True]
        assert [packet.again for packet in wires.answers] == [False, True]

    def test_what_was_sent_before_giving_up_still_arrives(self) -> None:
        wires = Wires()
        connection = wires.connect()
        wires.send(connection, 1)
        wires.network.close(connection)
        wires.kernel.run_until(1_000)
        assert (len(wires.arrived), wires.answers, wires.broken) == (1, [], 0)

    def test_a_server_that_dies_breaks_its_connections(self) -> None:
        wires = Wires()
        wires.send(wires.connect(), 1)
        del wires.network.servers["broker"]
        wires.network.reset_all("broker")
        wires.kernel.run_until(1_000)
        assert (wires.arrived, wires.broken) == ([], 1)
        assert wires.network.connect("m", "broker", wires.answers.append, wires._on_broken) is None

    def test_healing_ends_every_trouble(self) -> None:
        wires = Wires(lose_request=1.0)
        wires.network.clog("m", "broker", 5_000)
        wires.send(wires.connect(), 1)
        wires.network.heal()
        wires.kernel.run_until(100)
        assert wires.broken == 1
        wires.send(wires.connect(), 1)
        wires.kernel.run_until(200)
        assert len(wires.answers) == 1


class TestClientConnection:
    def connection(self, wires: Wires) -> ClientConnection:
        return ClientConnection(wires.kernel, wires.network, "m", "broker", codec=False)

    def test_one_late_answer_takes_the_connection_with_it(self) -> None:
        wires, seen = Wires(lose_response=1.0), list[Any]()
        connection = self.connection(wires)
        connection.call(MetadataRequest(topics=()), 12, 100, seen.append)
        connection.call(MetadataRequest(topics=()), 12, 900, seen.append)
        wires.kernel.run_until(2_000)
        assert set(seen) <= {LossReason.TIMED_OUT, LossReason.DISCONNECTED}
        assert len(seen) == 2

    def test_nobody_listens(self) -> None:
        wires, seen = Wires(), list[Any]()
        del wires.network.servers["broker"]
        self.connection(wires).call(MetadataRequest(topics=()), 12, 100, seen.append)
        wires.kernel.run_until(100)
        assert seen == [LossReason.NOT_SENT]

    def test_only_who_asks_for_repeats_gets_them(self) -> None:
        wires, once, twice = Wires(duplicate=1.0), list[Any](), list[Any]()
        connection = self.connection(wires)
        connection.call(MetadataRequest(topics=()), 12, 60_000, once.append)
        connection.call(MetadataRequest(topics=()), 12, 60_000, twice.append, repeats=True)
        wires.kernel.run_until(60_000)
        assert (len(once), len(twice)) == (1, 2)

    def test_a_closed_connection_tells_nobody(self) -> None:
        wires, seen = Wires(), list[Any]()
        connection = self.connection(wires)
        connection.call(MetadataRequest(topics=()), 12, 100, seen.append)
        connection.close()
        wires.kernel.run_until(1_000)
        assert seen == []


@dataclass(eq=False)
class Member:
    """What the checkers see."""

    name: str
    held: frozenset[TopicIdPartition] = frozenset()
    state: MemberState = MemberState.STABLE

    last_commit_ms: int = 0

    @property
    def group_id(self) -> GroupId:
        return GroupId("g")

    @property
    def member_id(self) -> str:
        return self.name


def current(member: str, epoch: int, *assigned: int, revoking: int | None = None) -> StateRecord:
    pending = {} if revoking is None else {T: {revoking: epoch}}
    return CurrentMemberAssignment(
        "g",
        member,
        CurrentAssignment(
            member_epoch=epoch,
            assigned={T: dict.fromkeys(assigned, epoch)} if assigned else {},
            pending_revocation=pending,
        ),
    )


def recorded(*records: StateRecord) -> Iterator[tuple[RecordedGroups, StateRecord]]:
    groups = RecordedGroups(0)
    for record in records:
        groups.note(record)
        yield groups, record


def holds(*partitions: int) -> frozenset[TopicIdPartition]:
    return frozenset((T, partition) for partition in partitions)


class TestCheckers:
    def test_a_partition_has_one_holder(self) -> None:
        checker = SoleHolder()
        for groups, record in recorded(
            current("a", 1, 0, 1), current("a", 1, 0, revoking=1), current("a", 2, 0)
        ):
            checker.note(groups, record)
        for groups, record in recorded(current("a", 2, 0), current("b", 2, 1)):
            checker.note(groups, record)

    def test_what_is_being_revoked_is_held(self) -> None:
        checker = SoleHolder()
        records = recorded(current("a", 1, 0, revoking=1), current("b", 2, 1))
        checker.note(*next(records))
        with pytest.raises(Violation, match="given to b while a has it"):
            checker.note(*next(records))

    def test_a_members_epoch_falls_to_minus_two_alone(self) -> None:
        checker = EpochsRise()
        records = recorded(current("a", 3), current("a", -2), current("a", 3), current("a", 2))
        for _ in range(3):
            checker.note(*next(records))
        with pytest.raises(Violation, match="a went from 3 to 2"):
            checker.note(*next(records))

    @pytest.mark.parametrize(
        "second",
        [
            GroupEpochMetadata("g", GroupEpoch(4)),
            TargetAssignmentMetadata("g", TargetEpoch(6)),
        ],
    )
    def test_a_groups_epochs_rise_in_step(self, second: StateRecord) -> None:
        checker = EpochsRise()
        records = recorded(GroupEpochMetadata("g", GroupEpoch(5)), second)
        checker.note(*next(records))
        with pytest.raises(Violation):
            checker.note(*next(records))

    def test_a_lease_covers_what_is_held(self) -> None:
        groups = RecordedGroups(0)
        groups.note(current("a", 2, 0, revoking=1))
        checker = Lease()
        checker.check(groups, [Member("a", holds(0, 1))])
        with pytest.raises(Violation, match="took from it"):
            checker.check(groups, [Member("a", holds(0, 1, 2))])

    def test_without_a_lease_anything_may_be_believed(self) -> None:
        groups = RecordedGroups(0)
        groups.note(current("b", 2, 0))
        checker = Lease()
        checker.check(groups, [Member("gone", holds(0)), Member("b", holds(0))])
        assert checker.zombies == 1

    def test_whom_a_late_request_harmed_is_exempt_until_it_is_told(self) -> None:
        groups, member = RecordedGroups(0), Member("a", holds(0, 1))
        groups.note(current("a", 2, 0))
        checker = Lease()
        checker.suspect(member, 5)
        checker.check(groups, [member])
        checker.informed(member, 5)  # the answer to a heartbeat that was served before
        checker.informed(member, 6)
        checker.check(groups, [member])  # told, and still giving back
        member.held = holds(0)
        checker.check(groups, [member])
        member.held = holds(0, 1)
        with pytest.raises(Violation):
            checker.check(groups, [member])

    def test_records_are_not_skipped(self) -> None:
        checker, member = Deliveries(), Member("a")
        checker.delivered(member, (T, 0), 0, 5, renamed=False)
        checker.delivered(member, (T, 0), 3, 8, renamed=False)
        with pytest.raises(Violation, match="skips 8 to 9"):
            checker.delivered(member, (T, 0), 9, 10, renamed=False)
        assert checker.total() == 8

    def test_nobody_delivers_out_of_the_group(self) -> None:
        checker = Deliveries()
        with pytest.raises(Violation, match="delivers while FENCED"):
            checker.delivered(Member("a", state=MemberState.FENCED), (T, 0), 0, 1, renamed=False)

    def test_a_commit_does_not_go_back(self) -> None:
        checker, groups = Commits(), RecordedGroups(0)

        def commit(offset: int | None, *, doubtful: bool = False) -> None:
            value = None
            if offset is not None:
                value = OffsetAndMetadata(offset=offset, commit_timestamp_ms=0)
            record = OffsetCommit("g", "t", 0, value)
            checker.note(groups, record, doubtful=doubtful)
            groups.note(record)

        for offset in (5, 7, None, 3):
            commit(offset)
        commit(1, doubtful=True)
        commit(0)  # what comes after a doubtful one cannot be judged by it
        with pytest.raises(Violation, match="went back from 0 to -1"):
            commit(-1)

    def test_a_commit_that_was_given_up_may_be_overtaken(self) -> None:
        """It counts as lost, but is not: the younger one goes out on another connection."""
        checkers, member = Checkers(Probes(), 0, extra_heartbeats=True), Member("a")

        def is_late(commit: int, *, given_up: bool) -> bool:
            tag = Tag(member, 5, 1, commit=commit)
            return checkers.is_late(tag, again=False, given_up=given_up)

        assert not is_late(1, given_up=False)
        assert not is_late(2, given_up=True), "and yet it is the youngest"
        assert not is_late(4, given_up=False)
        assert is_late(3, given_up=True)
        assert not is_late(3, given_up=False), "two were under way at once: that is a bug"

    def test_nobody_asks_in_a_loop(self) -> None:
        checker, member = Rates(), Member("a")
        for second in range(3):
            for _ in range(15):
                checker.asked(second * 1_000, member, "heartbeats")
        with pytest.raises(Violation, match="16 times heartbeats"):
            checker.asked(2_999, member, "heartbeats")


class TestEarlyHeartbeats:
    def checker(self, *, extra: bool = True) -> tuple[EarlyHeartbeats, Member]:
        checker, member = EarlyHeartbeats(Probes(), extra=extra), Member("a")
        checker.sent(10_000, member)
        checker.told(member, 1_000, news=False)
        return checker, member

    def test_the_interval_is_the_rule(self) -> None:
        checker, member = self.checker()
        for now_ms in (11_000, 12_000, 20_000, 21_000):
            checker.sent(now_ms, member)
        assert checker.count == 0
        with pytest.raises(Violation, match="after 999 ms of 1000, and nothing has changed"):
            checker.sent(21_999, member)

    def test_a_cause_is_worth_one(self) -> None:
        checker, member = self.checker()
        checker.cause(member)
        checker.sent(10_001, member)
        with pytest.raises(Violation, match="nothing has changed"):
            checker.sent(10_002, member)

    def test_news_are_worth_twenty_and_the_interval_goes_on(self) -> None:
        checker, member = self.checker()
        checker.told(member, 1_000, news=True)
        for number in range(1, 24):
            checker.sent(10_000 + number * 100, member)
        assert checker.count == EXTRA_HEARTBEATS_MAX + 1
        with pytest.raises(Violation, match="nothing has changed"):
            checker.sent(12_400, member)

    def test_news_are_worth_nothing_where_extra_heartbeats_are_off(self) -> None:
        checker, member = self.checker(extra=False)
        checker.told(member, 1_000, news=True)
        with pytest.raises(Violation, match="nothing has changed"):
            checker.sent(10_500, member)


class TestOptions:
    def test_each_seed_has_its_own_and_five_in_a_row_have_all_profiles(self) -> None:
        drawn = [draw_options(seed) for seed in range(100, 105)]
        assert sorted(options.profile for options in drawn) == ["4.0", "4.1", "4.2", "4.3", "4.4"]
        assert drawn == [draw_options(seed) for seed in range(100, 105)]

    @pytest.mark.parametrize(
        "change", [{"weather": "fine"}, {"groups": "many"}, {"codec": "maybe"}, {"static": ""}]
    )
    def test_a_wrong_change_is_refused(self, change: dict[str, str]) -> None:
        with pytest.raises(ConfigError):
            with_changes(draw_options(1), change)

    @pytest.mark.parametrize("text", ["", "a", "1..", "..2", "1..b", "5..1"])
    def test_wrong_seeds_are_refused(self, text: str) -> None:
        with pytest.raises(ConfigError):
            seeds_of(text)

    def test_seeds_count_both_ends(self) -> None:
        assert (list(seeds_of("7")), list(seeds_of("3..5"))) == ([7], [3, 4, 5])

    @pytest.mark.parametrize("arguments", [["--seed", "x"], ["--set", "foo"], ["--set", "foo=1"]])
    def test_the_command_line_says_what_is_wrong(
        self, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(arguments) == 2
        assert capsys.readouterr().err

    def test_the_command_line_plays(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--seed", "5..6", "--set", "safety_ms=10000", "--probes"]) == 0
        said = capsys.readouterr().out.splitlines()
        assert [line.split()[:2] for line in said[:2]] == [["seed", "5"], ["seed", "6"]]
        assert any("session expiry" in line for line in said[2:])


def test_partitions_are_shown_in_short() -> None:
    assert shown_partitions([(T, 2), (T, 0), (TopicId(bytes(16)), 1)]) == "00:1 74:0,2"
    assert shown_partitions([]) == "-"


def test_an_unknown_probe_is_refused() -> None:
    with pytest.raises(KeyError):
        Probes().reached("nowhere")
