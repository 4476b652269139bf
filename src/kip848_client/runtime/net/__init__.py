"""The only place that knows aiokafka: connections, codecs, and batches.

Everything here may touch aiokafka's private names; each that is touched is pinned by
``tests/contract/test_aiokafka_seams.py``, and aiokafka itself by ``>=0.14,<0.15``.
"""

from __future__ import annotations

__all__: list[str] = []
