"""The pure part of KIP-714: what is measured, and the conversation about it."""
