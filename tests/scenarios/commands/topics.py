"""topic create, grow, delete; group-config: what an administrator does meanwhile."""

from __future__ import annotations

from kip848_client.core.types import TopicId, parse_topic_id
from kip848_client.core.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from tests.scenarios.notation import Arguments, NotationError
from tests.scenarios.scenario_run import DEFAULT_GROUP, ScenarioRun

__all__ = ["group_config", "topic"]

_GROUP_RESOURCE = 32
_SET = 0


def topic(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """Create, enlarge or delete a topic, and wait until groups see it.

    topic create foo partitions=6
    topic create foo partitions=5 id=6vk_PxMHSOqE1zt1ZCW9TA
    topic grow foo partitions=8
    topic delete foo

    Without an id the first topic gets 00000000-0000-0000-0000-000000000001, the second .. 2.
    """
    what = arguments.word("create, grow or delete")
    name = arguments.word("a topic")
    if what == "create":
        numbered = TopicId((len(scenario.topic_ids) + 1).to_bytes(16, "big"))
        text = arguments.text("id")
        wanted = numbered if text is None else parse_topic_id(text)
        partitions = arguments.number("partitions", 1)
        scenario.add_topic(name, scenario.backend.create_topic(name, partitions, wanted))
    elif what == "grow":
        scenario.backend.grow_topic(name, arguments.number("partitions", 1))
    elif what == "delete":
        scenario.backend.delete_topic(name)
    else:
        raise NotationError(f"topic create, grow or delete, not {what!r}")
    return []


def group_config(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """Set configurations of a group (IncrementalAlterConfigs).

    group-config consumer.session.timeout.ms=50000 consumer.heartbeat.interval.ms=6000
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    keys = [key for key in arguments.options if key.startswith("consumer.")]
    request = IncrementalAlterConfigsRequest(
        resources=(
            IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=_GROUP_RESOURCE,
                resource_name=scenario.group_id(group),
                configs=tuple(
                    IncrementalAlterConfigsRequestAlterableConfig(
                        name=key, config_operation=_SET, value=arguments.text(key)
                    )
                    for key in keys
                ),
            ),
        )
    )
    answer = scenario.request(request, 1).responses[0]
    scenario.backend.settle()
    return [scenario.error_text(answer.error_code, answer.error_message)]
