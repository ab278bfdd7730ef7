"""The plane in which neurons are looked at: the true direction, and across it the one along which they differ most."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from assay.probes.directions import unit_rows


def disk(snapshots: Sequence[Tensor], truth: Tensor) -> Tensor:
    """The directions of neurons (neurons, dim) of every snapshot as points of the unit disk: (snapshots, neurons, 2).

    The first coordinate is the cosine with ``truth`` (dim,), so that the true direction lies at (1, 0). The second is
    the cosine with the leading principal direction of what is left without the truth, over all snapshots: one
    plane for the whole training, in which a point moves exactly when its weight turns.
    """
    rows = torch.stack([unit_rows(weights.double()) for weights in snapshots])
    along = unit_rows(truth.double()[None])[0]
    cosines = rows @ along
    across = rows - cosines.unsqueeze(-1) * along
    flat = across.flatten(0, 1)
    axis = torch.linalg.eigh(flat.mT @ flat).eigenvectors[:, -1]
    axis = axis * axis[axis.abs().argmax()].sign()  # an axis has no sign of its own
    return torch.stack([cosines, across @ axis], -1)
