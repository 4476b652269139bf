"""The only package that uses aiokafka's internals: connections, codecs, and batches.

Everything here may use aiokafka's private names; each one used is pinned by
``tests/contract/test_aiokafka_seams.py``, and aiokafka itself by ``>=0.14,<0.15``.
"""

from __future__ import annotations

__all__: list[str] = []
