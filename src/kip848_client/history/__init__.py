"""What happened to a group: recorded, read back, checked and drawn."""
