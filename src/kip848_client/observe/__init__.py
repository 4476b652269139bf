"""What a client reports of itself: metrics, events, health and KIP-714 telemetry."""
