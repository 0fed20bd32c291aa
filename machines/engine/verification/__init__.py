"""Verification: what a machine can and cannot do, found by walking over its snapshots on the interpreter."""
