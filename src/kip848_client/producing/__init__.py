"""The producer's core, pure: ``ProducerCore.step(now_ms, event) -> commands``.

Batches by partition, their order and their sequence numbers, what is sent to whom and when, what an
error leads to, and transactions. No clock, no I/O, no randomness of its own.
"""
