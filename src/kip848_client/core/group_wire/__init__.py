"""Translation between the commands of a group's cores and Kafka's messages."""
