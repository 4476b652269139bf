"""The common parts of all client classes: connections, clock and recovery from a configuration."""
