"""Client quotas as data: stored and described, but never enforced (KIP-546).

An entity is a combination of user and client id, or an address; the name ``None`` stands for the
default of its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["QuotaEntity", "QuotaStore", "quota_entity"]

QuotaEntity = tuple[tuple[str, str | None], ...]
"""(type, name) pairs, in one order for all, so that equal entities are equal tuples."""

_ORDER = ("client-id", "user", "ip")


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """The entity of these parts; of a type that is named twice the last one counts."""
    by_type = dict(parts)
    known = [(kind, by_type[kind]) for kind in _ORDER if kind in by_type]
    return (*known, *((kind, name) for kind, name in by_type.items() if kind not in _ORDER))


class QuotaStore:
    """The quotas of each entity that has any."""

    def __init__(self) -> None:
        self._quotas: dict[QuotaEntity, dict[str, float]] = {}

    @property
    def quotas(self) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """Key to value, by entity."""
        return self._quotas

    def alter(self, entity: QuotaEntity, changes: Mapping[str, float | None]) -> None:
        """Set these quotas of an entity; ``None`` removes one."""
        own = self._quotas.setdefault(entity, {})
        for key, value in changes.items():
            if value is None:
                own.pop(key, None)
            else:
                own[key] = value
        if not own:
            del self._quotas[entity]
