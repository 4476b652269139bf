"""Properties of Kafka's Java clients that have no effect here, with the reason.

For programs that take options written for Java, such as a Spark job: they accept these and log
them once. The names are those of Kafka 4.4 and earlier 4.x releases. Properties that change what is
read or written, or who may log in, are not among them: those are refused.
"""

from __future__ import annotations

from typing import Final

__all__ = ["CONSUMER_WITHOUT_EFFECT", "PRODUCER_WITHOUT_EFFECT"]

_JAVA: Final = "a setting of Java"
_LOGIN: Final = "logins are renewed when they expire"
_METRICS: Final = "metrics of Java's clients"
_SOCKETS: Final = "sockets have the system's settings"
_TOKENS: Final = "brokers check tokens"

_CLIENT: Final = {
    "bootstrap.resolve.timeout.ms": "names are resolved within request.timeout.ms",
    "client.dns.lookup": "all addresses of a name are tried",
    "enable.metrics.push": "clients of Spark push no metrics",
    "metadata.cluster.check.enable": "not checked here",
    "metric.reporters": _METRICS,
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "receive.buffer.bytes": _SOCKETS,
    "reconnect.backoff.max.ms": "retry.backoff.max.ms applies to connections, too",
    "reconnect.backoff.ms": "retry.backoff.ms applies to connections, too",
    "sasl.kerberos.kinit.cmd": "the ticket cache of the system is used",
    "sasl.kerberos.min.time.before.relogin": _LOGIN,
    "sasl.kerberos.ticket.renew.jitter": _LOGIN,
    "sasl.kerberos.ticket.renew.window.factor": _LOGIN,
    "sasl.login.refresh.buffer.seconds": _LOGIN,
    "sasl.login.refresh.min.period.seconds": _LOGIN,
    "sasl.login.refresh.window.factor": _LOGIN,
    "sasl.login.refresh.window.jitter": _LOGIN,
    "sasl.login.retry.backoff.max.ms": "retry.backoff.max.ms applies to logins, too",
    "sasl.login.retry.backoff.ms": "retry.backoff.ms applies to logins, too",
    "sasl.oauthbearer.allow.unverified.audience": _TOKENS,
    "sasl.oauthbearer.allow.unverified.issuer": _TOKENS,
    "sasl.oauthbearer.clock.skew.seconds": _TOKENS,
    "sasl.oauthbearer.expected.audience": _TOKENS,
    "sasl.oauthbearer.expected.issuer": _TOKENS,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _TOKENS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _TOKENS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _TOKENS,
    "sasl.oauthbearer.jwks.endpoint.url": _TOKENS,
    "sasl.oauthbearer.jwt.validator.class": _TOKENS,
    "sasl.oauthbearer.scope.claim.name": _TOKENS,
    "sasl.oauthbearer.sub.claim.name": _TOKENS,
    "send.buffer.bytes": _SOCKETS,
    "socket.connection.setup.timeout.max.ms": "request.timeout.ms limits connecting, too",
    "socket.connection.setup.timeout.ms": "request.timeout.ms limits connecting, too",
    "ssl.keymanager.algorithm": _JAVA,
    "ssl.keystore.password": "PEM files have no password; ssl.key.password is for the key",
    "ssl.provider": _JAVA,
    "ssl.secure.random.implementation": _JAVA,
    "ssl.trustmanager.algorithm": _JAVA,
    "ssl.truststore.password": "PEM files have no password",
}

CONSUMER_WITHOUT_EFFECT: Final = _CLIENT | {
    "auto.commit.interval.ms": "offsets are committed when Spark has committed a batch",
    "exclude.internal.topics": "subscribePattern matches no internal topics",
    "heartbeat.interval.ms": "the broker sets it (group.consumer.heartbeat.interval.ms)",
    "internal.throw.on.fetch.stable.offset.unsupported": "internal to Java's consumer",
    "max.poll.records": "maxOffsetsPerTrigger limits a batch",
    "partition.assignment.strategy": "the broker assigns (group.remote.assignor)",
    "session.timeout.ms": "the broker sets it (group.consumer.session.timeout.ms)",
    "share.acknowledgement.mode": "for share groups",
    "share.acquire.mode": "for share groups",
}
"""By name: why a consumer's property has no effect."""

PRODUCER_WITHOUT_EFFECT: Final = _CLIENT | {
    "buffer.memory.allocation.strategy": _JAVA,
    "client.rack": "for a partitioner that knows racks",
    "compression.gzip.level": "the codec's default level is used",
    "compression.lz4.level": "the codec's default level is used",
    "compression.zstd.level": "the codec's default level is used",
    "partitioner.adaptive.partitioning.enable": "the partitioner is not adaptive",
    "partitioner.availability.timeout.ms": "the partitioner is not adaptive",
    "partitioner.rack.aware": "the partitioner is not adaptive",
    "retries": "delivery.timeout.ms limits retries",
}
"""By name: why a producer's property has no effect."""
