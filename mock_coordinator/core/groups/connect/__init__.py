"""Connect groups: workers that share connectors and tasks. A DRAFT that no Kafka has
(docs/reference/draft-protocols.md).

Theory of operation
===================

A Connect group is a reconciled group (``reconciled_group``) with other resources: what a consumer
group does with the partitions of topics, it does with tasks and connectors (``items``). Epochs,
identity, static membership, timers, fencing and the steps towards the target are the same code.

What is different follows from two facts. The coordinator does not know which connectors exist: so a
worker always computes the target (``client_assignors.rounds`` says who), may leave items out, and
says which ones it holds back for a worker that may return (``computing``). And a task of a new
generation must not start while one of an older generation may still run anywhere: so an item may
have to wait although no worker has it (``group``).
"""

from __future__ import annotations

__all__: list[str] = []
