"""The clients of a classic group: who has which connection, member id and generation.

As ``_model`` for consumer groups: built from the real broker's answers, so that the generator can
choose requests that mean something. It predicts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kip848_client.error_codes import ErrorCode

__all__ = ["ClassicClient", "ClassicModel"]


@dataclass(slots=True)
class ClassicClient:
    """One client. ``channel`` is its connection; ``waits`` while a request of its is unanswered."""

    channel: int
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    protocols: tuple[tuple[str, bytes], ...] = ()
    names: tuple[str, ...] = ()
    waits: bool = False
    must_sync: bool = False
    is_leader: bool = False
    fellows: tuple[str, ...] = ()
    """Member ids of the whole group, told to the leader."""
    assignment: bytes = b""


@dataclass(slots=True)
class ClassicModel:
    """One group and its clients."""

    group_id: str
    clients: list[ClassicClient] = field(default_factory=list[ClassicClient])
    gone: list[str] = field(default_factory=list[str])
    committed: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def client(self, channel: int) -> ClassicClient | None:
        """Whose connection it is."""
        return next((each for each in self.clients if each.channel == channel), None)

    @property
    def idle(self) -> list[ClassicClient]:
        """Clients that can send something now."""
        return [each for each in self.clients if not each.waits]

    @property
    def members(self) -> list[ClassicClient]:
        """Idle clients that have a member id."""
        return [each for each in self.idle if each.member_id]

    def sent(self, channel: int) -> None:
        """A request is under way."""
        client = self.client(channel)
        if client is not None:
            client.waits = True

    def heard(self, channel: int, answer: Any) -> None:
        """A request was answered."""
        client = self.client(channel)
        if client is None:
            return
        client.waits = False
        kind = type(answer).__name__
        if kind == "JoinGroupResponse":
            self._joined(client, answer)
        elif kind == "SyncGroupResponse":
            self._synced(client, answer)
        elif getattr(answer, "error_code", 0) == ErrorCode.UNKNOWN_MEMBER_ID and kind.startswith(
            "Heart"
        ):
            self.forget(client)

    def _joined(self, client: ClassicClient, answer: Any) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.forget(client)
        elif answer.error_code == 0:
            if client.member_id and client.member_id != answer.member_id:
                self.gone.append(client.member_id)
            client.member_id = answer.member_id
            client.generation = answer.generation_id
            client.must_sync = True
            client.is_leader = answer.leader == answer.member_id
            client.fellows = tuple(each.member_id for each in answer.members)

    def _synced(self, client: ClassicClient, answer: Any) -> None:
        if answer.error_code == 0:
            client.must_sync = False
            client.assignment = answer.assignment
        elif answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.forget(client)

    def forget(self, client: ClassicClient) -> None:
        """The client is no member any more."""
        if client.member_id:
            self.gone.append(client.member_id)
        client.member_id = ""
        client.generation = -1
        client.must_sync = client.is_leader = False
