"""Versions of a machine: how they differ, and how instances move from one to another."""
