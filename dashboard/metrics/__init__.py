"""Figures for Prometheus: ``/metrics``."""
