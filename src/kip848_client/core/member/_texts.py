"""Sentences about a member for its users: what happened, what follows, and the way out.

Logs, health and errors use the same ones. The way out of an error of the broker is in
``_error_rules``.
"""

from __future__ import annotations

__all__ = ["answers_again", "no_answer", "no_answer_yet", "not_polled", "too_few_polls"]


def not_polled(poll_age_ms: int) -> str:
    """How warnings and health say that the application is slow."""
    return f"the application has not asked for records for {poll_age_ms / 1000:.0f} s"


def too_few_polls(poll_age_ms: int, left_ms: int) -> str:
    """The warning before the member leaves for want of a poll in ``left_ms``; or, with 0, when it
    leaves."""
    then = "the member leaves the group, and joins again when it does"
    if left_ms:
        then = f"in {left_ms / 1000:.0f} s the member leaves the group"
    return (
        f"{not_polled(poll_age_ms)}: {then}. Then its partitions go to others, and what is not "
        "committed is processed again; process fewer records at a time (max_poll_records), or "
        "raise max_poll_interval_ms"
    )


def no_answer(silent_ms: int) -> str:
    """How warnings and health say that the coordinator is unreachable."""
    return f"the group coordinator has not answered for {silent_ms / 1000:.0f} s"


def no_answer_yet(silent_ms: int, state: str) -> str:
    """The warning about a coordinator that does not answer a member in this state."""
    return f"{no_answer(silent_ms)}; the member is {state} and keeps trying"


def answers_again(silent_ms: int) -> str:
    """The message when a coordinator answers that was reported as unreachable."""
    return f"the coordinator answers again, after {silent_ms} ms"
