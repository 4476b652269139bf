"""The driver of a simulated query: ``SourceDriver`` with its two kinds of ownership, without
brokers and threads. All decisions are those of the pure modules."""

from __future__ import annotations

import json
from functools import cache

from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error
from kip848_client.spark.source.core import _ownership
from kip848_client.spark.source.core._begin import GroupOffset, Lineage, OnGroupReset
from kip848_client.spark.source.core._exclusive_plan import ExclusivePlan
from kip848_client.spark.source.core._manifest import Manifest, Ownership
from kip848_client.spark.source.core._offset_limits import BEGIN
from kip848_client.spark.source.core._options import SourceOptions, source_options
from kip848_client.spark.source.core._planning import DataLost, Planning, Seen
from kip848_client.spark.source.core._shared_plan import SharedPlan
from tests.simulation.spark.kafka import TOPIC, Group, Kafka
from tests.simulation.spark.ledger import Ledger

__all__ = ["Driver", "Ranges", "options_for"]

Ranges = dict[TopicPartition, tuple[int, int]]


@cache
def options_for(
    ownership: Ownership, starting: str | None, group: str, on_reset: OnGroupReset
) -> SourceOptions:
    """Options as a user sets them."""
    said = {
        "kafka.bootstrap.servers": "h:1",
        "subscribe": TOPIC,
        "kafka.group.id": group,
        "ownership": ownership,
        "onGroupReset": on_reset,
    }
    if starting is not None:
        said["startingOffsets"] = starting
    return source_options(said, is_stream=True)


class Driver:
    """One run of a query."""

    def __init__(
        self,
        kafka: Kafka,
        groups: dict[str, Group],
        options: SourceOptions,
        ledger: Ledger,
        token: str,
        *,
        fails_on_data_loss: bool,
    ) -> None:
        self.kafka, self.groups, self.options, self.ledger = kafka, groups, options, ledger
        self.planning = Planning(fails_on_data_loss)
        self.token = token
        self.commits_fail = False
        self.plan: SharedPlan | ExclusivePlan | None = None
        self.failure: Kip848Error | None = None
        self.now_ms = 0
        self._start: tuple[Manifest, _ownership.GroupState] | None = None
        self._group_then = dict(self.group.offsets)
        self._repeated: dict[str, Ranges] = {}
        self._is_planned = False
        self._is_ready = False
        """Whether the query has taken over its partitions."""

    @property
    def group(self) -> Group:
        """The group of the options."""
        assert self.options.group_id is not None
        return self.groups.setdefault(self.options.group_id, Group(self.kafka))

    # -- what Spark calls ----------------------------------------------------------------------

    def first(self) -> Manifest:
        """As ``initialOffset``."""
        if self._start is None:
            seen, group = self.kafka.seen(None), self.group.state()
            side = 0 if self.options.starting.everywhere == BEGIN else 1
            places = {tp: span[side] for tp, span in seen.bounds.items()}
            me = _ownership.lineage_of(None, self.options, self.token)
            start = _ownership.first_manifest(me, self.options, places, seen, group)
            self._start = start, group
        return self._start[0]

    def stop_at_what_is_there(self) -> None:
        """As ``prepareForTriggerAvailableNow``."""
        self.planning.until = {tp: self.kafka.log(tp).end for tp in self.kafka.partitions}

    def next(self, start: Manifest, limit: int | None) -> Manifest:
        """As ``latestOffset``."""
        plan = self._taken_over(start, is_repeated=False)
        self.batch_done(start)
        if plan.in_hand is not None and start.number < plan.in_hand.number:
            return plan.in_hand
        if self.failure is not None:
            raise self.failure
        seen = self._look()
        if isinstance(plan, SharedPlan):
            self._check_topics(plan, seen)
        found = plan.next(seen, limit, self.now_ms)
        self._note_losses()
        self._is_planned = True
        return start if found.number == start.number else found

    def batch(self, planned: Manifest) -> Ranges:
        """As ``partitions``."""
        if self._is_planned:
            return dict(planned.ranges)
        text = json.dumps(planned.to_json())
        if text not in self._repeated:
            plan = self._taken_over(planned, is_repeated=True)
            offsets = self.group.offsets if isinstance(plan, SharedPlan) else self._group_then
            self._repeated[text] = plan.again(offsets, self._look())
            self._note_losses()
        return self._repeated[text]

    def close(self) -> None:
        """As ``stop``, and what the coordinator does about a process that died."""
        self.plan = None
        self.group.leave(self)

    # -- in between ----------------------------------------------------------------------------

    def batch_done(self, batch: Manifest) -> None:
        """Also what the control channel does."""
        if self.plan is not None:
            self.plan.is_done(batch)
            self.commit()

    def commit(self) -> None:
        """Commit to the group what it lacks, which may fail."""
        plan = self.plan
        if isinstance(plan, SharedPlan):
            offsets = dict(plan.to_commit)
            ids = plan.topic_ids
        elif plan is not None:
            offsets = plan.to_commit(self.now_ms)
            ids = dict(plan.kept.topic_ids)
            if self.group.state().has_members:
                return
        else:
            return
        if not offsets or self.commits_fail:
            return
        for tp, at in offsets.items():
            self._write(plan, tp, at, ids.get(TOPIC))
        if isinstance(plan, SharedPlan):
            plan.is_committed(offsets)
        else:
            plan.is_committed(offsets, self.now_ms)

    def _write(
        self, plan: SharedPlan | ExclusivePlan, tp: TopicPartition, at: int, topic_id: str | None
    ) -> None:
        note = plan.me.note(plan.kept.number, topic_id)
        if tp.partition < len(self.kafka.logs):
            if topic_id == self.kafka.topic_id:
                self.ledger.check(tp, at, plan.kept.epochs.get(tp), "committed to the group")
            self.group.offsets[tp] = GroupOffset(at, note)

    # -- ownership -----------------------------------------------------------------------------

    def _taken_over(self, kept: Manifest, *, is_repeated: bool) -> SharedPlan | ExclusivePlan:
        if self.plan is not None:
            return self.plan
        _ownership.check_ownership(kept, self.options)
        me = self._lineage(kept)
        seen = self.kafka.seen(kept, is_first=True)
        if self.options.is_shared:
            self._share(SharedPlan(self.planning, me, kept), seen, is_repeated=is_repeated)
        else:
            self._exclude(ExclusivePlan(self.planning, me, kept), seen)
        self._note_losses()
        self._is_ready = True
        assert self.plan is not None
        return self.plan

    def _lineage(self, kept: Manifest) -> Lineage:
        if self._start is None or self._start[0].token != kept.token:
            return _ownership.lineage_of(kept, self.options, self.token)
        me = _ownership.lineage_of(None, self.options, self.token)
        _ownership.check_unused(me, self.options, self._start[1])
        return me

    def _share(self, plan: SharedPlan, seen: Seen, *, is_repeated: bool) -> None:
        state = self.group.state()
        kept = plan.kept = _ownership.upgraded(plan.kept, seen, state)
        if is_repeated:
            plan.in_hand = kept
        self.plan = plan
        if _ownership.is_new_to_the_group(kept, self.options, state):
            starts = {tp: start for tp, (start, _) in kept.ranges.items()} if is_repeated else {}
            self.ledger.group_changes(kept)
            for tp, at in {**kept.ends, **starts}.items():
                if tp in seen.bounds:
                    self._write(plan, tp, at, kept.topic_ids.get(tp.topic))
        self.group.join(self)

    def _exclude(self, plan: ExclusivePlan, seen: Seen) -> None:
        kept = plan.kept
        name = kept.group if kept.ownership == "shared" and kept.group else self.options.group_id
        assert name is not None
        self._group_then = dict(self.groups[name].offsets) if name in self.groups else {}
        plan.kept = _ownership.upgraded(kept, seen, _ownership.GroupState(offsets=self._group_then))
        if kept.ownership == "shared":
            self.ledger.takes_over(kept, self.groups.get(name))
            plan.take_over(self._group_then, seen)
        self.plan = plan

    def _look(self) -> Seen:
        kept = None if self.plan is None else self.plan.kept
        return self.kafka.seen(kept, is_first=not self._is_ready)

    def _check_topics(self, plan: SharedPlan, seen: Seen) -> None:
        others = plan.created_again(seen)
        if others and self.planning.fails_on_data_loss:
            raise DataLost("records are lost: topic a was deleted and created again")

    def _note_losses(self) -> None:
        for what in self.planning.losses:
            self.ledger.loss_is_announced(what)
        self.planning.losses.clear()

    # -- what the group asks -------------------------------------------------------------------

    def assigned(self, tps: list[TopicPartition]) -> None:
        """New partitions."""
        plan = self.plan
        if not isinstance(plan, SharedPlan):
            return
        seen = self._look()
        try:
            self._check_topics(plan, seen)
            self.ledger.assigned(tps, plan, self.group)
            plan.assigned(tps, self.group.offsets, seen)
        except Kip848Error as err:
            self.failure = err
            return
        self._note_losses()
        self.commit()

    def revoked(self, tps: list[TopicPartition]) -> bool:
        """Let partitions go, if Spark is done with them."""
        plan = self.plan
        if not isinstance(plan, SharedPlan):
            return True
        plan.asked_back(tps)
        if not plan.is_free(tps):
            return False
        self.commit()
        plan.gone(tps)
        return True

    def lost(self) -> None:
        """The session is over."""
        if isinstance(self.plan, SharedPlan):
            self.plan.gone(list(self.plan.owned))
