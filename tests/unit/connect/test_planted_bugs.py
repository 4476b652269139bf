"""Bugs in the membership of workers, each put in on purpose: a test that looks for it fails. Those
in the membership of classic groups are in ``test_planted_classic_bugs``; the simulation is held to
some of them, too (``tests/simulation/test_planted_worker_bugs.py``)."""

from __future__ import annotations

import pytest

from kip848_client.connect.core import WorkerSettings, _partitions
from kip848_client.connect.core._computing import Computing, _Questions
from kip848_client.connect.core._core import WorkerCore
from kip848_client.connect.core._rebalance_delay import ScheduledRebalance
from kip848_client.connect.core._rebalance_reasons import RebalanceReasons
from tests.support.planting import Plant, PlantedBug
from tests.unit.connect import test_computing as computing
from tests.unit.connect import test_membership as membership
from tests.unit.connect import test_random_lives as random_lives
from tests.unit.connect import test_waiting_to_start as waiting

BUGS = {
    "a worker that cannot reach the coordinator goes on": PlantedBug(
        Plant(
            WorkerSettings,
            "of_member",
            "session_timeout_ms=max(stop_after_ms, self.session_timeout_ms // 2)",
            "session_timeout_ms=None",
        ),
        random_lives.test_nothing_runs_twice_and_everything_runs_again,
        {"seed": 1},
    ),
    "it begins to stop when its session ends": PlantedBug(
        Plant(
            WorkerSettings,
            "of_member",
            "self.session_timeout_ms - self.task_shutdown_graceful_timeout_ms",
            "self.session_timeout_ms + self.task_shutdown_graceful_timeout_ms",
        ),
        membership.test_a_worker_that_cannot_reach_the_coordinator_stops_before_others_start,
    ),
    "items are started without their configuration": PlantedBug(
        Plant(
            WorkerCore,
            "_start_what_waits",
            "self._configuration.offset < self._said.config_offset",
            "False",
        ),
        membership.test_nothing_is_started_before_its_configuration_is_known,
    ),
    "a reason is forgotten with any answer": PlantedBug(
        Plant(RebalanceReasons, "accepted", "attempt == self._told_by", "True"),
        membership.test_a_reason_that_was_not_heard_is_told_again,
    ),
    "only the worker that computed asks again": PlantedBug(
        Plant(
            ScheduledRebalance,
            "announced",
            "self._ends_ms + grace_ms",
            "(None if grace_ms else self._ends_ms)",
        ),
        membership.test_another_worker_tells_it_when_the_one_that_computed_is_gone,
    ),
    "a delay begins anew when it is repeated": PlantedBug(
        Plant(ScheduledRebalance, "announced", "said == self._announced", "False"),
        membership.test_a_delay_that_is_told_again_does_not_begin_anew,
    ),
    "a failed assignor is not tried again": PlantedBug(
        Plant(Computing, "_on_installed", "self.retry_ms = now_ms + pause_ms", "pass"),
        computing.test_an_assignor_that_fails_costs_nobody_what_it_runs,
        {"instead": RuntimeError("no"), "said": "assign() raised RuntimeError: no"},
    ),
    "who computes does not read what others know": PlantedBug(
        Plant(_Questions, "compute", "newest > self._configuration.offset", "False"),
        computing.test_who_computes_reads_what_others_know_first,
    ),
    "the assignor gets no memory": PlantedBug(
        Plant(
            Computing,
            "_on_installed",
            "self._worker_questions.memory = result.memory",
            "pass",
        ),
        computing.test_what_a_killed_worker_ran_waits_for_it_and_then_goes_to_others,
    ),
    "tasks of all generations are the same": PlantedBug(
        Plant(_Questions, "_items", "self._given_of.connectors[connector].generation", "1"),
        computing.test_a_new_generation_of_tasks_replaces_the_old_one,
    ),
    "connectors themselves get lost among tasks": PlantedBug(
        Plant(
            _partitions, "partitions", "_ITSELF_AS_PARTITION if part == ITSELF else part", "part"
        ),
        membership.test_a_worker_that_is_alone_is_given_everything,
    ),
    "what waits to start survives the end of the session": PlantedBug(
        Plant(
            WorkerCore,
            "_perform",
            "                self._waiting = None\n                self._stop(command)",
            "                self._stop(command)",
        ),
        waiting.test_a_worker_that_runs_something_gives_up_what_waits_to_start,
    ),
    "the configuration starts items before the end of the session is seen": PlantedBug(
        Plant(WorkerCore, "step", "self._inner.append(TimerFired())", "pass"),
        waiting.test_a_worker_that_slept_past_its_session_starts_nothing,
    ),
    "the delay of an old membership goes on": PlantedBug(
        Plant(WorkerCore, "_perform", "self._scheduled.forget()", "pass"),
        membership.test_a_worker_that_is_put_out_forgets_the_delay_of_its_old_membership,
    ),
    "a memory from before another worker computed is given": PlantedBug(
        Plant(WorkerCore, "_hear_what_is_said", "if not computed_here:", "if False:"),
        computing.test_a_memory_is_dropped_by_a_worker_that_was_passed_over,
    ),
    "a worker that was put out asks again for what failed before": PlantedBug(
        Plant(Computing, "put_out", "self._tries, self.retry_ms = 0, None", "pass"),
        computing.test_a_worker_that_is_put_out_does_not_ask_again_for_what_failed_before,
    ),
    "the words of an old delay are remembered": PlantedBug(
        Plant(
            ScheduledRebalance,
            "forget",
            "self._announced = self._ends_ms = self.due_ms = None",
            "self._ends_ms = self.due_ms = None",
        ),
        membership.test_a_delay_in_the_same_words_is_a_new_one_for_a_worker_that_was_put_out,
    ),
    "a failed assignor takes what everybody runs": PlantedBug(
        Plant(_Questions, "failed", "error=ASSIGNOR_FAILED", ""),
        computing.test_an_assignor_that_fails_costs_nobody_what_it_runs,
        {"instead": RuntimeError("no"), "said": "assign() raised RuntimeError: no"},
    ),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_bug_is_seen(monkeypatch: pytest.MonkeyPatch, bug: PlantedBug) -> None:
    bug.is_found(monkeypatch)
