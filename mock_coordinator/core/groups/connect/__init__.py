"""Connect groups: workers that share connectors and tasks. A DRAFT that no Kafka release has
(docs/reference/draft-protocols.md).

Theory of operation
===================

A Connect group is a reconciled group (``reconciled_group``) with other resources: tasks and
connectors take the place of a topic's partitions (``items``). Epochs, identity, static membership,
timers, fencing and the steps towards the target are the same code.

The differences follow from two facts. First, the coordinator does not know which connectors exist.
So a worker always computes the target (``client_assignors.rounds`` selects it), may leave items
out, and says which ones it holds back for a worker that may return (``computing``). Second, a task
of a new generation must not start while one of an older generation may still run anywhere. So an
item may have to wait although no worker has it (``group``).
"""

from __future__ import annotations

__all__: list[str] = []
