"""One table over every study, those of the package and the one kept outside: what any study must deliver."""

from __future__ import annotations

import dataclasses
import math
import re
from functools import cache
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
import pytest

from assay.lab import NotMeasured, discovery, results
from assay.lab.backends import prepare_process
from assay.lab.execute import measure
from assay.lab.plan import Request, make_plan
from assay.lab.study import PRESETS

OUTSIDE = str(Path(__file__).parent / "outside")
DOCS = Path(__file__).parents[2] / "docs" / "studies"
STUDIES = discovery.studies(OUTSIDE)
CHECKED = [pytest.param(name, id=name) for name in STUDIES]
KEYS = {
    "study",
    "id",
    "statement",
    "source",
    "verdict",
    "estimate",
    "low",
    "high",
    "criterion",
    "seeds",
    "preset",
    "set",
}
VERDICTS = ("holds", "fails", "undecided", "not run")

every_study = pytest.mark.parametrize("name", CHECKED)
every_arm = pytest.mark.parametrize(
    ("name", "arm"), [pytest.param(name, arm, id=f"{name}-{arm}") for name in STUDIES for arm in STUDIES[name].arms]
)


@pytest.fixture(scope="session")
def smoke(tmp_path_factory, make_bench):
    """The smoke run of a study, made once: (result, progress, measurements, findings)."""
    folder = tmp_path_factory.mktemp("conformance")

    @cache
    def run(name: str):
        bench = make_bench(folder, OUTSIDE)
        result = bench.run(name)
        found = results.findings(bench.store(name), bench.study(name), result.manifest)
        return result, bench.progress, bench.load(name, result.manifest), found

    return run


def test_there_is_a_study_to_check():
    assert "coin" in STUDIES


@every_study
@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_valid_with_every_setting(name, preset):
    study = STUDIES[name]
    assert study.preset(preset).seconds > 0
    study.resolve(preset, {})
    for setting in study.settings:
        assert isinstance(study.resolve(preset, {}, setting), study.model)
    plan = make_plan(study, Request(preset))
    assert plan.units
    named = {*study.arms, *study.settings}
    chosen = study.preset(preset)
    assert {*chosen.fewer, *chosen.arms, *chosen.skip, *chosen.settings} <= named


@every_study
def test_presets_grow(name):
    smoke, laptop, paper = (STUDIES[name].presets[preset] for preset in PRESETS)
    assert smoke.seconds <= laptop.seconds <= paper.seconds
    assert smoke.seconds <= 30
    assert laptop.seconds <= 360
    assert smoke.seeds >= 3
    assert min([laptop.seeds, *laptop.fewer.values()]) >= 3


@every_study
def test_every_parameter_is_described(name):
    assert [field for field, info in STUDIES[name].model.model_fields.items() if not info.description] == []


@every_study
def test_claims_have_identifier_statement_source_and_a_control(name):
    study = STUDIES[name]
    assert study.title
    assert study.question.endswith("?")
    assert study.source
    for claim in study.claims.values():
        assert re.fullmatch(r"[CN]\d+[a-z]?", claim.id)
        assert claim.statement.strip()
        assert claim.source.strip()
    assert [claim.id for claim in study.claims.values() if claim.control]
    assert [claim.id for claim in study.claims.values() if not claim.control]


@every_study
def test_the_smoke_run_succeeds(name, smoke):
    result, progress, measurements, _ = smoke(name)
    assert [f"{failure.unit.label}: {failure.trace}" for failure in result.failures] == []
    assert result.manifest["status"] == "complete"
    assert len(progress.finished) == progress.total == len(result.manifest["units"])
    assert {"arm", "seed", "step", "metric", "value"} <= set(measurements.frame.columns)
    assert set(measurements.frame["arm"]) == set(result.manifest["arms"])


@every_study
def test_every_claim_is_judged(name, smoke):
    found = smoke(name)[3]
    assert {finding.claim.id for finding in found} == set(STUDIES[name].claims)
    assert [finding.claim.order for finding in found] == sorted(finding.claim.order for finding in found)
    for finding in found:
        judgement, row = finding.judgement, finding.row()
        assert judgement.verdict in VERDICTS
        assert set(row) >= KEYS
        assert set(row) <= KEYS | {"printed", "paper", "reason"}
        if judgement.verdict == "not run":
            assert judgement.reason
        else:
            assert judgement.criterion.strip()
            assert judgement.seeds >= 1
        if judgement.verdict in ("holds", "fails") and not judgement.reason:
            assert math.isfinite(judgement.estimate)
            assert judgement.low <= judgement.estimate <= judgement.high


@every_study
def test_a_claim_is_left_out_only_for_an_arm_or_a_domain_that_is(name, smoke):
    """What the smoke run measures it also judges: a claim is not run for a misspelt query."""
    result, _, _, found = smoke(name)
    absent = set(STUDIES[name].arms) - set(result.manifest["arms"])
    for finding in found:
        if finding.judgement.verdict == "not run":
            reason = finding.judgement.reason
            assert reason.startswith("the claim is about") or names_an_arm(reason, absent), reason


def names_an_arm(reason: str, arms: set[str]) -> bool:
    return any(f"the arm '{arm}' did not run" in reason for arm in arms)


def shown(name: str, exhibit, smoke):
    """A figure or table of the smoke run; None where it waits for an optional arm that did not run."""
    result, _, measurements, _ = smoke(name)
    absent = {arm.name for arm in STUDIES[name].arms.values() if arm.optional} - set(result.manifest["arms"])
    try:
        return exhibit.make(measurements)
    except NotMeasured as error:
        if names_an_arm(str(error), absent | set(result.manifest["skipped"])):
            return None
        raise


@every_study
def test_figures_render(name, smoke):
    assert all(figure.caption for figure in STUDIES[name].figures.values())
    charts = [shown(name, figure, smoke) for figure in STUDIES[name].figures.values()]
    charts = [chart for chart in charts if chart is not None]
    assert charts
    for chart in charts:
        assert isinstance(chart, alt.TopLevelMixin)
        assert chart.to_dict()["$schema"]


@every_study
def test_tables_render(name, smoke):
    assert all(table.caption for table in STUDIES[name].tables.values())
    frames = [shown(name, table, smoke) for table in STUDIES[name].tables.values()]
    frames = [frame for frame in frames if frame is not None]
    assert frames
    for frame in frames:
        assert isinstance(frame, pl.DataFrame)
        assert not frame.is_empty()


@every_arm
def test_a_seed_alone_agrees_with_the_seed_in_company(name, arm):
    study = STUDIES[name]
    plan = make_plan(study, Request("smoke", seeds=3, arms=None if runs_by_default(study, arm) else "+" + arm))
    unit = next((unit for unit in plan.units if unit.arm == arm), None)
    if unit is None:
        pytest.skip(f"{arm} does not run here: {plan.skipped.get(arm)}")
    prepare_process()
    together = by_row(measure(dataclasses.replace(unit, seeds=(0, 1, 2)), OUTSIDE).frame())
    alone = by_row(measure(dataclasses.replace(unit, seeds=(1,)), OUTSIDE).frame())
    assert alone.drop("value").equals(together.drop("value"), null_equal=True)
    tolerance = study.arms[arm].tolerance
    for metric in alone["metric"].unique():
        ours, theirs = (frame.filter(metric=metric)["value"].to_numpy() for frame in (alone, together))
        scale = max(np.abs(ours[np.isfinite(ours)]).max(initial=0.0), 1e-12)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale, err_msg=f"{arm}: {metric}")


def runs_by_default(study, arm: str) -> bool:
    preset = study.preset("smoke")
    return (not study.arms[arm].optional or arm in preset.arms) and arm not in preset.skip


def by_row(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of seed 1, in an order that does not depend on the company."""
    labels = [column for column in frame.columns if column != "value"]
    return frame.filter(seed=1).sort(labels, nulls_last=True, maintain_order=True)


@pytest.mark.parametrize("name", [name for name in STUDIES if name in discovery.studies()])
def test_a_study_of_the_package_has_a_page(name):
    page = DOCS / f"{name.replace('-', '_')}.md"
    if not page.exists():
        page = DOCS / f"{name}.md"
    text = page.read_text()
    assert text.startswith("# ")
    assert len(text.splitlines()) <= 80
