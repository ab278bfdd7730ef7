"""Texts read once up to the filter layer, and asked many times: a question runs its own tokens alone."""

from assay.methods.gemfilter.index.found import Found
from assay.methods.gemfilter.index.index import Changes, FilterIndex
from assay.methods.gemfilter.index.store import DamagedIndex, FolderStore, MemoryStore, OtherIndex

__all__ = ["Changes", "DamagedIndex", "FilterIndex", "FolderStore", "Found", "MemoryStore", "OtherIndex"]
