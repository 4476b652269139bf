"""What every client class is made of: connections, clock and recovery from a configuration."""
