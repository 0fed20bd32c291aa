"""Signalbox inside a Django project: the model field, attached models, the backend of tasks."""
