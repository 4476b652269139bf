"""Nodes that get into trouble: moments in which one refuses a request of a producer, before it has
done what was asked or after, and quotas that are used up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.transactions import InitProducerIdRequest
from mock_coordinator.sim.nodes import Nodes, Waiting, node_name
from mock_coordinator.sim.producing.log_checks import LogChecks
from mock_coordinator.sim.producing.refusals import BEFORE, LATE, refusal_of
from mock_coordinator.sim.swarm import AnyParameters
from mock_coordinator.sim.world_context import WorldContext

__all__ = ["FaultRates", "FaultyNodes"]

_THROTTLE_MS_MAX: Final = 1_000


class FaultRates(Protocol):
    """How often."""

    @property
    def throttle(self) -> float:
        """A quota is used up."""
        ...

    @property
    def refuse(self) -> float:
        """An answer is an error."""
        ...

    @property
    def refuse_late(self) -> float:
        """The same, although the request was performed."""
        ...


class FaultyNodes(Nodes[AnyParameters]):
    """``writing`` learns which producer gets a transactional id."""

    def __init__(
        self,
        context: WorldContext[AnyParameters],
        settings: Mapping[str, str],
        rates: FaultRates,
        writing: LogChecks,
    ) -> None:
        self._rates = rates
        self._writing = writing
        self._rng = context.kernel.rng("brokers")
        super().__init__(context, settings)

    def refusal(self, waiting: Waiting) -> Message | None:
        """What a node answers that does not even look at the request."""
        context, codes = self._world, BEFORE.get(type(waiting.request))
        if codes is None or not context.happens("refuse", self._rates.refuse):
            return None
        code = self._rng.choice(codes)
        self._tell(waiting, f"refuses {code.name}")
        context.probes.reached("a request refused")
        return refusal_of(waiting.request, code)

    def spoilt(self, waiting: Waiting, response: Any) -> Any:
        """An answer as it leaves a troubled node."""
        context, request = self._world, waiting.request
        if isinstance(request, InitProducerIdRequest) and not response.error_code:
            self._writing.initialised(request.transactional_id, waiting.connection.client)
        codes = LATE.get(type(request))
        if codes is None or waiting.packet.again:
            return response
        if context.happens("throttle", self._rates.throttle):
            throttle_ms = self._rng.randint(1, _THROTTLE_MS_MAX)
            self._tell(waiting, f"throttles for {throttle_ms} ms")
            context.probes.reached("a client throttled")
            response.throttle_time_ms = throttle_ms
            client, node = waiting.connection.client, node_name(waiting.node_id)
            context.network.clog(client, node, throttle_ms)
        if context.happens("refuse late", self._rates.refuse_late) and _is_good(response):
            code = self._rng.choice(codes)
            self._tell(waiting, f"refuses late {code.name}")
            context.probes.reached("an answer refused late")
            return refusal_of(request, code)
        return response

    def _tell(self, waiting: Waiting, what: str) -> None:
        name = type(waiting.request).__name__.removesuffix("Request")
        who = waiting.connection.client
        self._world.tell(node_name(waiting.node_id), "trouble", f"{what} {name} of {who}")


def _is_good(response: Any) -> bool:
    """Whether all that was asked for was done."""
    if getattr(response, "error_code", 0):
        return False
    rows = [
        *(row for each in getattr(response, "responses", ()) for row in each.partition_responses),
        *(row for each in getattr(response, "topics", ()) for row in each.partitions),
    ]
    added = getattr(response, "results_by_topic_v3_and_below", ())
    codes = [row.error_code for row in rows]
    codes += [row.partition_error_code for each in added for row in each.results_by_partition]
    return not any(codes)
