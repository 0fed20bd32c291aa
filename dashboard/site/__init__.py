"""What the settings of Signalbox's own site are made of: environment, folder, stores, log.

A project that mounts the dashboard uses none of it. Nothing here loads ``dashboard.settings``.
"""
