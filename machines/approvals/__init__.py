"""Approvals: requests that a second person decides."""
