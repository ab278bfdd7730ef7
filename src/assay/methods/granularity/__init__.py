"""How fine should pretraining labels be? Label hierarchies, transfer with its baselines, and a report beforehand."""

from .heads import swap_head
from .hierarchies import (
    CLUSTER_CHOICES,
    LabelHierarchy,
    LabelTree,
    binary_by_ancestor,
    clusters_of_all,
    clusters_per_superclass,
    one_per_sample,
    random_ids,
    rebalanced_clusters,
    tree_level,
)
from .readout import max_readout, sum_readout
from .report import GranularityReport, granularity_report
from .stage import Stage
from .transfer import FineToCoarse, fine_to_coarse
from .transfer_report import TransferReport, TransferScore

__all__ = [
    "CLUSTER_CHOICES",
    "FineToCoarse",
    "GranularityReport",
    "LabelHierarchy",
    "LabelTree",
    "Stage",
    "TransferReport",
    "TransferScore",
    "binary_by_ancestor",
    "clusters_of_all",
    "clusters_per_superclass",
    "fine_to_coarse",
    "granularity_report",
    "max_readout",
    "one_per_sample",
    "random_ids",
    "rebalanced_clusters",
    "sum_readout",
    "swap_head",
    "tree_level",
]
