"""One file per API family; each message is one dataclass for all its versions."""
