"""A Celery app and a Dramatiq broker on the server and under the prefix that the environment names."""
