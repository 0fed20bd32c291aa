"""Prometheus metrics: ``/metrics``."""
