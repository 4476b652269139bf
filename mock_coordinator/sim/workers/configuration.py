"""What there is to run in a world of workers: connectors come and go, and their tasks are
reconfigured."""

from __future__ import annotations

from collections.abc import Iterator

from kip848_client.connect.core import AssignedItem, Configuration, ConnectorTasks
from kip848_client.core.connect import ITSELF
from mock_coordinator.sim.workers.options import WorkerOptions
from mock_coordinator.sim.world_context import WorldContext

__all__ = ["Configured", "items_in"]


class Configured:
    """The newest configuration. Workers read it some time later."""

    def __init__(self, context: WorldContext[WorkerOptions]) -> None:
        self._context: WorldContext[WorkerOptions] = context
        self._rng = context.kernel.rng("configuration")
        options = context.options
        self.newest = Configuration(
            0,
            {
                f"c{number}": ConnectorTasks(self._rng.randint(0, options.tasks_max), 0)
                for number in range(options.connectors)
            },
        )

    def change(self) -> None:
        """One connector comes, goes, or has other tasks."""
        connectors = dict(self.newest.connectors)
        offset = self.newest.offset + 1
        name = f"c{self._rng.randrange(self._context.options.connectors + 2)}"
        if name in connectors and len(connectors) > 1 and self._rng.random() < 0.3:
            del connectors[name]
        else:
            count = self._rng.randint(0, self._context.options.tasks_max)
            connectors[name] = ConnectorTasks(count, offset)
        self.newest = Configuration(offset, connectors)
        self._context.probes.reached("configured anew")
        self._context.tell("operator", "configure", f"{name} at {offset}")


def items_in(configuration: Configuration) -> Iterator[AssignedItem]:
    """Everything that is to run."""
    for name, tasks in configuration.connectors.items():
        yield AssignedItem(name, ITSELF, ITSELF)
        for number in range(tasks.count):
            yield AssignedItem(name, number, tasks.generation)
