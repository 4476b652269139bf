"""What is known of one transaction, from its beginning until the next one begins."""

from __future__ import annotations

from dataclasses import dataclass, field

from kip848_client.errors import TransactionAborted

__all__ = ["OpenTransaction"]


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
    needs_bump: bool = False
    """Another epoch is needed before the next transaction."""
    has_sent: bool = False
    """Batches of it have been on their way."""
    is_abort_untold: bool = False
    """It is aborted, and nobody was there to be told; so it may be asked for once more."""
    end_told: set[int] = field(default_factory=set[int])
    """Who was told that it is committed, or else aborted; but may not have heard it."""
    is_told_commit: bool = False
