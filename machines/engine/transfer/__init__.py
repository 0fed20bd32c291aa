"""Moves the instances of a machine: into a file, from a file, and between partitions."""

from .exporting import Export
from .importing import Import, ImportReport
from .records import Damaged, TransferHeader

__all__ = ["Damaged", "Export", "Import", "ImportReport", "TransferHeader"]
