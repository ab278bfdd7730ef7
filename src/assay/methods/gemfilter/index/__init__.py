"""Texts read once up to the filter layer, and asked many times: a question runs its own tokens alone."""

from assay.methods.gemfilter.index.cost import IndexCost, index_cost
from assay.methods.gemfilter.index.found import Found
from assay.methods.gemfilter.index.index import Changes, FilterIndex
from assay.methods.gemfilter.index.profiling import IndexProfile, profile_index
from assay.methods.gemfilter.index.store import DamagedIndex, FolderStore, MemoryStore, OtherIndex

__all__ = [
    "Changes",
    "DamagedIndex",
    "FilterIndex",
    "FolderStore",
    "Found",
    "IndexCost",
    "IndexProfile",
    "MemoryStore",
    "OtherIndex",
    "index_cost",
    "profile_index",
]
