"""Moves the instances of a machine: into a file, from a file, and between partitions."""

from .exporting import Export
from .importing import Import, ImportReport
from .records import Damaged, TransferHeader
from .repartitioning import Outrun, Repartition, RepartitionReport, rescue_all

__all__ = [
    "Damaged",
    "Export",
    "Import",
    "ImportReport",
    "Outrun",
    "Repartition",
    "RepartitionReport",
    "TransferHeader",
    "rescue_all",
]
