"""What a run comes to: a result when everything held, or a failure that tells how to see it
again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from mock_coordinator.sim.swarm import AnyParameters, Parameters
from mock_coordinator.sim.trace import Trace

__all__ = ["Failure", "Outcome", "Stuck"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[AnyParameters]):
    """What a run that held every invariant leaves, whatever kind of world it was."""

    options: AnyParameters
    digest: str
    lines: int
    events: int
    virtual_ms: int
    converged_ms: int
    """From the healing to order."""
    records: int
    """Handed out."""
    probes: Mapping[str, int]

    def details(self) -> str:
        """What is worth a look, for a kind of world."""
        return ""

    def line(self) -> str:
        """The run in one line."""
        return (
            f"seed {self.options.seed:>6}  {self.options.profile}  "
            f"{self.virtual_ms / 1000:>7.1f} virtual s  {self.events:>7} events  "
            f"{self.details()}  {self.digest[:12]}"
        )


class Failure(Exception):
    """A run in which something did not hold: what, how to see it again, and the last events."""

    def __init__(
        self, options: Parameters, cause: BaseException, trace: Trace, replay: str
    ) -> None:
        self.options = options
        self.cause = cause
        self.last = trace.last
        super().__init__(
            "\n".join(
                (
                    f"{type(cause).__name__}: {cause}",
                    f"seed {options.seed}",
                    f"options {options.describe()}",
                    *trace.last,
                    f"replay: {replay}",
                )
            )
        )


class Stuck(Exception):
    """A healed world did not come to rest in order."""
