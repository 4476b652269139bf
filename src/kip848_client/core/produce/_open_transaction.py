"""What is known of one transaction, from its beginning until the next one begins."""

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
    """A new one knows nothing bad; what it learns is forgotten with it."""

    harm: TransactionAborted | None = None
    """The first error; it cannot be committed."""
    is_asking: bool = False
    """The coordinator has to tell whether we may go on."""
    is_harm_asked: bool = False
    """And that is why it cannot be committed."""
    is_over: bool = False
    """It told that we may: the transaction has ended without us."""
    is_doubtful: bool = False
    """A commit may have happened without our knowing."""
    was_open: bool = False
    """The coordinator has had it open under our epoch, for certain."""
    may_be_ended: bool = False
    """We may have ended it by ourselves, without another epoch."""
    asks_as: ProducerId | None = None
    """Who asks whether we may go on; ``None``: who we are."""
    needs_bump: bool = False
    """Another epoch is needed before the next transaction."""
    has_sent: bool = False
    """Batches of it have been on their way."""
    is_abort_untold: bool = False
    """It is aborted, and nobody was there to be told; so it may be asked for once more."""
    end_told: set[int] = field(default_factory=set[int])
    """Who was told that it is committed, or else aborted; but may not have heard it."""
    is_told_commit: bool = False

    def asks_further(self, job: PendingRequest, error: Kip848Error, *, has_added: bool) -> bool:
        """Whether a question that was answered "you are fenced" is to be asked once more, as who we
        would be if the coordinator had ended our transaction: under the next epoch.

        A coordinator that ends a transaction behind its producer's back raises the epoch by one,
        for nobody. From which one it did so it keeps in memory, if at all: not in clusters with
        transactions V1, and not when another coordinator has taken over. Whoever took an id over
        with that transaction open is further on, by two at least, and fences us for certain.
        ``has_added``: the coordinator has said that something is in the transaction.
        """
        is_fenced = isinstance(error, BrokerError) and error.code in _FENCED
        was_open = (self.was_open or has_added) and not self.may_be_ended
        is_first = self.is_asking and self.asks_as is None
        if not (job.api is Api.INIT_PRODUCER_ID and is_fenced and was_open and is_first):
            return False
        self.asks_as = ProducerId(job.producer.number, job.producer.epoch + 1)
        return True
