"""The engine and the product on a Redis Cluster of this machine, beside one server in the same run."""
