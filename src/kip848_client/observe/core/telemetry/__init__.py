"""The pure part of KIP-714: which metrics to push, and when."""
