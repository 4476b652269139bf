"""The state of one transaction, from its beginning until the next one begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kip848_client.core.produce._error_rules import Api
from kip848_client.core.produce._model import ProducerId
from kip848_client.core.produce._pending_requests import PendingRequest
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, Kip848Error, TransactionAborted

__all__ = ["OpenTransaction"]

_FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


@dataclass(slots=True)
class OpenTransaction:
    """Starts without errors; its state ends with the transaction."""

    harm: TransactionAborted | None = None
    """The first error. The transaction cannot be committed."""
    is_asking: bool = False
    """The coordinator must confirm whether this producer may continue."""
    is_harm_asked: bool = False
    """That question is the reason why it cannot be committed."""
    is_over: bool = False
    """The coordinator confirmed it: the transaction has already ended without this producer."""
    is_doubtful: bool = False
    """A commit may have happened without confirmation."""
    was_open: bool = False
    """The coordinator certainly had it open under our epoch."""
    may_be_ended: bool = False
    """We may have ended it ourselves, without another epoch."""
    asks_as: ProducerId | None = None
    """The producer id and epoch used for the question; ``None``: the current ones."""
    needs_bump: bool = False
    """Another epoch is needed before the next transaction."""
    has_sent: bool = False
    """Batches of it have been sent."""
    is_abort_untold: bool = False
    """It is aborted, but no caller received the result, so the abort may be requested once more."""
    end_told: set[int] = field(default_factory=set[int])
    """Tickets that were sent the result, but may not have received it."""
    is_told_commit: bool = False

    def asks_further(self, job: PendingRequest, error: Kip848Error, *, has_added: bool) -> bool:
        """Whether a question that was answered with "fenced" is repeated, under the epoch we would
        have if the coordinator had ended our transaction: the next one.

        A coordinator that ends a transaction on its own raises the epoch by one without assigning
        it to a producer. It keeps the previous epoch in memory at best: not in clusters with
        transactions V1, and not after another coordinator has taken over. A producer that took over
        the id with that transaction open has an epoch at least two higher, so it certainly fences
        us. ``has_added``: the coordinator has confirmed that something is in the transaction.
        """
        is_fenced = isinstance(error, BrokerError) and error.code in _FENCED
        was_open = (self.was_open or has_added) and not self.may_be_ended
        is_first = self.is_asking and self.asks_as is None
        if not (job.api is Api.INIT_PRODUCER_ID and is_fenced and was_open and is_first):
            return False
        self.asks_as = ProducerId(job.producer.number, job.producer.epoch + 1)
        return True
