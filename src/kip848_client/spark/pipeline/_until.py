"""``run.until``: where a bounded run ends, as options of the source."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any, Final

from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._offset_limits import END, range_limit_from

__all__ = ["NOW", "until_options", "until_text"]

NOW: Final = "now"
"""The ends at the start of the run."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ACCEPTED: Final = (
    "'now', a time with its offset from UTC such as '2026-11-26T18:00:00Z', or offsets such as "
    '\'{"orders": {"0": 500, "1": -1}}\''
)


def until_text(given: Any) -> Any:
    """A time or a table of TOML as text. Anything else stays."""
    if isinstance(given, date):  # a datetime is one
        return given.isoformat()
    return json.dumps(given) if isinstance(given, dict) else given


def until_options(text: str) -> dict[str, str]:
    """The options of the source: none for ``NOW``. Raises ``ValueError``."""
    if text == NOW:
        return {}
    if text.lstrip().startswith("{"):
        options = {"endingoffsets": text}
        try:
            range_limit_from(options, "ending", "latest", END)
        except ConfigError as err:
            raise ValueError(str(err)) from err
        return {"endingOffsets": text}
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"must be {_ACCEPTED}") from None
    if time.tzinfo is None:
        raise ValueError(f"lacks the offset from UTC: must be {_ACCEPTED}")
    return {"endingTimestamp": str(int((time - _EPOCH).total_seconds() * 1000))}
