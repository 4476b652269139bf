"""Administration: topics that are made, grown, deleted and made again, in right and wrong ways;
settings of topics, brokers and groups, read and changed; groups that are listed, looked for and
described meanwhile.
"""

from __future__ import annotations

from typing import Any, Final

from tests.differential._admin_requests import ADMIN, AdminModel
from tests.differential._conversation import new_state
from tests.differential._group_configs import GROUP_CONFIGS
from tests.differential._groups import GROUPS
from tests.differential._heartbeats import join
from tests.differential._plan import Kind, Plan, Steps
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask, SettleMetadata

__all__ = ["KIND"]

_REQUESTS: Final = 36
_CHANGES: Final = ("create-topics", "create-partitions", "delete-topics", "alter-configs")


class _Conversation:
    def __init__(self, state: SequenceState) -> None:
        self._state = state
        self._model = AdminModel()
        self._sent = 0

    def steps(self) -> Steps:
        state = self._state
        yield from self._ask(join(state))
        while self._sent < _REQUESTS:
            roll = state.rng.random()
            if roll < 0.75:
                weights = [weight for weight, _ in ADMIN]
                (chosen,) = state.rng.choices([each for _, each in ADMIN], weights)
                yield from self._ask(chosen(state, self._model))
            else:
                table = GROUP_CONFIGS if roll < 0.9 else GROUPS
                _, _, chooser = state.rng.choice(table)
                ask = chooser(state)
                if ask is not None:
                    yield from self._ask(ask)

    def _ask(self, ask: Ask) -> Steps:
        self._sent += 1
        answer = yield ask
        if ask.action in _CHANGES or ask.action == "alter-group":
            yield SettleMetadata()
        if ask.action in _CHANGES:
            self._learn(ask, answer)

    def _learn(self, ask: Ask, answer: Any) -> None:
        topics = self._model.topics
        if ask.action == "create-topics" and not ask.message.validate_only:
            asked = {each.name: each for each in ask.message.topics}
            for each in answer.topics:
                if each.error_code == 0 and each.name in asked:
                    given = asked[each.name]
                    count = len(given.assignments) or max(1, given.num_partitions)
                    topics[each.name] = (each.topic_id, count)
        elif ask.action == "create-partitions" and not ask.message.validate_only:
            counts = {each.name: each.count for each in ask.message.topics}
            for each in answer.results:
                if each.error_code == 0 and each.name in topics:
                    topics[each.name] = (topics[each.name][0], counts[each.name])
        elif ask.action == "delete-topics":
            for each in answer.responses:
                if each.error_code == 0 and each.name in topics:
                    self._model.gone.append(topics.pop(each.name)[0])


def sequence(plan: Plan) -> Steps:
    """The steps of one seed."""
    return _Conversation(new_state(plan, pattern_share=0)).steps()


KIND: Final = Kind("admin", 6, sequence)
