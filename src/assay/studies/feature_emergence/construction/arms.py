"""The construction: a network of 3(k+1) neurons along the sum of the relevant patterns outputs the label."""

from __future__ import annotations

from assay import lab
from assay.training import Seeds

from ..params import Patterns
from .theory import check_good_networks, largest_output

part = lab.Part("construction", params=Patterns)


@part.arm("good-network", uses=("relevant",), dtype="float64", tolerance=1e-9)
def good_network(params: Patterns, seeds: Seeds, record: lab.Recorder) -> None:
    """The constructed network of 3(k+1) neurons on random label sets, means and sizes."""
    draws = seeds.uniform("label sets", 100, 60)
    errors, biases = zip(*(check_good_networks(each, 2 * params.relevant) for each in draws), strict=True)
    record(largest_error=errors, bias_share_of_bound=biases)
    for family in ("orthonormal", "general"):
        largest = largest_output(params.relevant, general=family == "general")
        record(at={"family": family}, output_per_pattern=largest / params.relevant)
