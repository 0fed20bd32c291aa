"""The command line of a worker: ``command`` is what every worker has, ``standalone`` the worker without Django."""
