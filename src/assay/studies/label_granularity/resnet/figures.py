"""The granularity curve of a ResNet."""

from __future__ import annotations

import altair as alt

from assay.lab import Measurements

from ..images.figures import granularity_chart
from .arms import Params, part


@part.figure(
    "resnet-granularity",
    caption="The granularity curve with a ResNet (optional arms). Clusters are of features that learned to tell "
    "rotations.",
    shows=("C9q", "C9r", "C9s", "C9t", "C9u", "C11c"),
)
def resnet_granularity(m: Measurements[Params]) -> alt.LayerChart:
    return granularity_chart(m, "resnet-hierarchies", "resnet-clusters")
