"""Run a study, read its table, draw a figure and judge a claim, as in a notebook.

The same from the shell: assay run looped-transformers --preset smoke; assay claims looped-transformers;
assay report looped-transformers
"""

import polars as pl

from assay import lab

run = lab.run("looped-transformers", preset="smoke", arms="convergence,steps,condition-numbers")
means = run.measurements.filter(metric="condition", arm="convergence").group_by("examples").agg(pl.mean("value"))
print(means.sort("examples"))
run.figure("convergence").save("convergence.svg")
print(run.results.final("squared_error", arm="convergence", examples=16).at_most(1e-6))
print(run.claims["C4a"].judgement.verdict, "-", run.claims["C4a"].claim.statement)
print(lab.plan("looped-transformers", preset="smoke", arms="convergence", seeds=6))
