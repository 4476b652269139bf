"""Bugs in the membership of workers in classic groups, each put in on purpose: a test that looks
for it fails. Those in the membership of the new protocol are in ``test_planted_bugs``."""

from __future__ import annotations

import pytest

from kip848_client.connect.core import ClassicWorkerCore
from kip848_client.connect.core._classic_heartbeat import ClassicHeartbeat
from kip848_client.connect.core._classic_items import HeldItems
from kip848_client.connect.core._classic_leading import Leading
from kip848_client.connect.core._classic_leave import ClassicLeave
from kip848_client.connect.core._classic_rounds import Rounds
from tests.support.planting import Plant, PlantedBug, plant
from tests.unit.connect import test_classic_membership as membership
from tests.unit.connect import test_classic_random_lives as lives
from tests.unit.connect import test_waiting_to_start as waiting

CLASSIC_BUGS = {
    "a worker that cannot reach the coordinator goes on": PlantedBug(
        Plant(
            ClassicWorkerCore,
            "_session_ends_ms",
            "self._beat.session_ends_ms if items.assigned or items.wait_to_start else None",
            "None",
        ),
        membership.test_a_worker_that_is_cut_off_stops_before_its_session_ends,
    ),
    "what only waits to start does not end the session": PlantedBug(
        Plant(
            ClassicWorkerCore,
            "_session_ends_ms",
            "items.assigned or items.wait_to_start",
            "items.assigned",
        ),
        waiting.test_a_classic_worker_that_runs_nothing_yet_gives_up_what_waits_to_start,
    ),
    "what waits to start survives the end of the session": PlantedBug(
        Plant(HeldItems, "stop_all", "self._starting = {}", "pass"),
        waiting.test_a_classic_worker_that_runs_something_gives_up_what_waits_to_start,
    ),
    "the configuration starts items before the end of the session is seen": PlantedBug(
        Plant(ClassicWorkerCore, "step", "self._end_session()", "pass"),
        waiting.test_a_classic_worker_that_slept_past_its_session_starts_nothing,
    ),
    "the delay of an old membership goes on": PlantedBug(
        Plant(Rounds, "end", "self._delay_ends_ms = None", "pass"),
        membership.test_a_worker_that_is_put_out_forgets_the_delay_of_its_old_membership,
    ),
    "it begins to stop when its session ends": PlantedBug(
        Plant(
            ClassicWorkerCore,
            "_session_ends_ms",
            "self._beat.session_ends_ms",
            "self._beat.session_ends_ms + 5_000",
        ),
        membership.test_a_worker_that_is_cut_off_stops_before_its_session_ends,
    ),
    "what was revoked is handed out to nobody": PlantedBug(
        Plant(Rounds, "synced", "if said.revoked:", "if False:"),
        membership.test_what_is_revoked_is_stopped_before_others_get_it,
    ),
    "no heartbeats while a round waits": PlantedBug(
        Plant(
            ClassicHeartbeat,
            "may_be_sent",
            "member.state in st.HEARTBEATING",
            "member.state is st.ClassicState.STABLE",
        ),
        membership.test_heartbeats_go_out_while_a_round_waits_and_while_items_stop,
    ),
    "the end of a delay is not noticed": PlantedBug(
        Plant(
            Rounds,
            "synced",
            "member.now_ms + said.delay_ms if said.delay_ms else None",
            "None",
        ),
        membership.test_a_worker_that_is_killed_is_waited_for,
    ),
    "a leader has no memory": PlantedBug(
        Plant(Leading, "_compute", "self._memory = led.memory", "pass"),
        membership.test_a_worker_that_is_killed_is_waited_for,
    ),
    "items are started without their configuration": PlantedBug(
        Plant(
            Rounds,
            "start",
            "self.configuration.offset < self.assignment.config_offset",
            "False",
        ),
        membership.test_nothing_starts_before_the_configuration_is_known,
    ),
    "a leader computes with a configuration that is behind": PlantedBug(
        Plant(
            Leading,
            "_compute",
            "            configuration.offset,\n",
            "            max(configuration.offset, _newest(joined)),\n",
        ),
        membership.test_a_leader_waits_for_the_configuration_that_others_know,
    ),
    "a leader that cannot know the configuration goes on leading": PlantedBug(
        Plant(
            Leading,
            "_compute",
            "now_ms + settings.worker_sync_timeout_ms",
            "now_ms + 1_000_000_000",
        ),
        membership.test_a_leader_that_cannot_know_the_configuration_lets_another_lead,
    ),
    "tasks that are configured anew go on as they were": PlantedBug(
        Plant(Rounds, "begin", "if outdated:", "if False:"),
        membership.test_tasks_that_are_configured_anew_stop_everywhere_before_they_start_again,
    ),
    "an eager group goes on while a round begins": PlantedBug(
        Plant(
            Rounds,
            "begin",
            "not self.protocol.is_incremental and items.runs_something",
            "False",
        ),
        membership.test_an_eager_group_stops_everything_before_each_round,
    ),
    "a group that becomes eager goes on with what it ran": PlantedBug(
        Plant(Rounds, "joined", "turns_eager and items.runs_something", "False"),
        membership.test_a_group_that_becomes_eager_stops_what_it_ran,
    ),
    "a worker that was put out keeps its id": PlantedBug(
        Plant(ClassicWorkerCore, "_fence", "if forget_id:", "if False:"),
        membership.test_a_member_that_the_coordinator_does_not_know_drops_everything_and_joins_anew,
    ),
    "the id that the coordinator gave is not taken": PlantedBug(
        Plant(
            ClassicWorkerCore,
            "_on_round_answer",
            "self._member.member_id = answer.member_id",
            "pass",
        ),
        membership.test_one_worker_runs_everything,
    ),
    "a leave that nobody answers counts as one": PlantedBug(
        Plant(
            ClassicLeave,
            "give_up",
            'LocalProtocolError("the time for the leave is over")',
            "None",
        ),
        membership.test_a_leave_that_nobody_answers_ends_in_time,
    ),
}


@pytest.mark.parametrize("bug", CLASSIC_BUGS.values(), ids=CLASSIC_BUGS)
def test_a_bug_is_seen(monkeypatch: pytest.MonkeyPatch, bug: PlantedBug) -> None:
    bug.is_found(monkeypatch)


@pytest.mark.parametrize(
    "name",
    [
        "what only waits to start does not end the session",
        "what waits to start survives the end of the session",
    ],
)
def test_random_lives_see_it_too(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Of these lives at least one cuts a worker off while it has news to read."""
    plant(monkeypatch, CLASSIC_BUGS[name].plant)
    for seed in range(9, 60):
        try:
            lives.test_nothing_runs_twice_and_everything_runs_again(seed)
        except AssertionError:
            return
    pytest.fail("no life sees it")
