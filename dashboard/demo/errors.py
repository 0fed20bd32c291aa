from __future__ import annotations


class DemoFailed(Exception):
    """The demo cannot go on; the text says why, to the person who typed the command."""
