from __future__ import annotations

import polars as pl
import pytest
import torch

from assay.lab import Measurements, discovery
from assay.methods.gradient_descent_rates import step_sizes
from assay.methods.looped_transformer import LoopedLinearTransformer
from assay.studies.looped_transformers.problem import LinearVectorGeneration
from assay.studies.looped_transformers.theory import gradient_descent
from assay.training.seeds import Seeds

STUDY = discovery.find("looped-transformers")
SEEDS = Seeds((0, 1, 2, 3), dtype=torch.float64)
LOOPS = 12


def measured(**metrics: torch.Tensor) -> Measurements:
    """Curves (loops+1, seeds) as the arm records them."""
    rows = [
        ("convergence", 16, seed, step, metric, float(value))
        for metric, curve in metrics.items()
        for step, values in enumerate(curve)
        for seed, value in enumerate(values)
    ]
    schema = ["arm", "examples", "seed", "step", "metric", "value"]
    return Measurements(pl.DataFrame(rows, schema=schema, orient="row"), STUDY.resolve("smoke", {}))


@pytest.mark.parametrize(("mask", "verdict"), [("query_reads_examples", "holds"), ("causal", "fails")])
def test_the_lemma_is_about_descent_and_not_about_the_output_itself(mask, verdict):
    """Any output q is within Cauchy's inequality of its own q/α; only the construction is within that of descent."""
    prompts = LinearVectorGeneration(16, 4).sample(SEEDS, "lemma")
    rows = LoopedLinearTransformer(4, LOOPS, "1/L", mask=mask, fast=False).query_rows(prompts.matrix())
    steps = step_sizes("1/L", prompts.inputs, LOOPS)
    task, own = prompts.task_error(-rows[..., :-1]), prompts.parameter_error(-rows[..., :-1])
    descent = prompts.parameter_error(gradient_descent(prompts.inputs, prompts.targets, steps))
    assert bool((task <= own + 1e-12).all())
    m = measured(task_error=task, descent_squared_error=descent.square())
    assert STUDY.claims["C3"].judge(m).verdict == verdict


def test_right_or_wrong_trials_know_little_when_all_agree():
    """Four of four trials above the bound: the share may still be a half."""
    above, condition = torch.ones(1, 4), torch.full((1, 4), 2.0)
    m = measured(descent_squared_error=above, condition=condition)
    m.frame = m.frame.with_columns(examples=pl.lit(128))
    judged = STUDY.claims["C6g"].judge(m)
    assert (judged.estimate, judged.verdict) == (1.0, "undecided")
