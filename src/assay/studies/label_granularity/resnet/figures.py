"""The granularity curve of a ResNet."""

from __future__ import annotations

import altair as alt

from assay.lab import Measurements

from ..images.figures import granularity_chart
from .arms import Params, part


@part.figure(
    "resnet-granularity",
    caption="The same curve with a ResNet (an optional arm). Clusters are of features that learned to tell rotations.",
)
def resnet_granularity(m: Measurements[Params]) -> alt.LayerChart:
    return granularity_chart(m, "resnet-hierarchies", "resnet-clusters")
