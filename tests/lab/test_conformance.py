"""One table over every study, those of the package and the one kept outside: what any study must deliver."""

from __future__ import annotations

import copy
import dataclasses
import math
import re
from functools import cache, partial
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
import pytest

from assay.lab import Claim, Every, Measurements, NotMeasured, Params, Values, combine, discovery, results
from assay.lab.agreement import disagreements
from assay.lab.backends import one_thread
from assay.lab.checking import unquotable
from assay.lab.execute import measure
from assay.lab.planning import make_plan
from assay.lab.study import PRESETS
from assay.lab.units import Request

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
    "run",
    "headline",
    "preset",
    "set",
}
MORE = {"printed", "paper", "reason", "method", "decided_by", "met", "needed", "p", "adjusted", "note", "values"}
MORE |= {"share_low", "share_high"}
VERDICTS = ("holds", "fails", "undecided", "not run")

every_study = pytest.mark.parametrize("name", CHECKED)
of_the_package = pytest.mark.parametrize("name", [name for name in STUDIES if name in discovery.studies()])
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
        assert re.fullmatch(r"[CNX]\d+[a-z]?", claim.id)
        assert claim.statement.strip()
        assert claim.source.strip()
    assert [claim.id for claim in study.claims.values() if claim.control]
    assert [claim.id for claim in study.claims.values() if not claim.control]


@every_study
def test_headlines_tell_the_story_in_sentences_that_can_be_quoted(name):
    study = STUDIES[name]
    assert [str(problem) for problem in unquotable(study)] == []
    if len(study.claims) >= 10:
        assert 5 <= sum(claim.headline for claim in study.claims.values()) <= 9


@of_the_package
def test_every_claim_is_to_be_seen_in_a_figure_or_table(name):
    """A report has something to put beside each claim, and a search for its identifier finds it."""
    study = STUDIES[name]
    seen = {shown for each in (*study.figures.values(), *study.tables.values()) for shown in each.shows}
    assert [claim for claim in study.claims if claim not in seen] == []


@every_study
def test_the_smoke_run_succeeds(name, smoke):
    result, progress, measurements, _ = smoke(name)
    assert [f"{failure.unit.label}: {failure.trace}" for failure in result.failures] == []
    assert result.manifest.status == "complete"
    assert len(progress.finished) == progress.total == len(result.manifest.units)
    assert {"arm", "seed", "step", "metric", "value"} <= set(measurements.frame.columns)
    assert set(measurements.frame["arm"]) == set(result.manifest.arms)


@every_study
def test_every_claim_is_judged(name, smoke):
    found = smoke(name)[3]
    assert {finding.claim.id for finding in found} == set(STUDIES[name].claims)
    assert [finding.claim.order for finding in found] == sorted(finding.claim.order for finding in found)
    for finding in found:
        judgement, row = finding.judgement, finding.row()
        assert judgement.verdict in VERDICTS
        assert set(row) >= KEYS
        assert set(row) <= KEYS | MORE
        if judgement.verdict == "not run":
            assert judgement.reason
        else:
            assert judgement.criterion.strip()
            assert judgement.seeds >= 1 or judgement.method == "exact"
        if judgement.verdict in ("holds", "fails") and not judgement.reason:
            assert math.isfinite(judgement.estimate)
            if judgement.method in ("exact", "equal"):
                assert math.isnan(judgement.low), "one number has no interval"
            else:
                assert judgement.low <= judgement.estimate <= judgement.high


@every_study
def test_a_claim_is_left_out_only_for_an_arm_or_a_domain_that_is(name, smoke):
    """What the smoke run measures it also judges: a claim is not run for a misspelt query."""
    result, _, _, found = smoke(name)
    absent = set(STUDIES[name].arms) - set(result.manifest.arms)
    for finding in found:
        if finding.judgement.verdict == "not run":
            reason = finding.judgement.reason
            assert reason.startswith("the claim is about") or names_an_arm(reason, absent), reason


def names_an_arm(reason: str, arms: set[str]) -> bool:
    return any(f"the arm '{arm}' did not run" in reason for arm in arms)


def shown(name: str, exhibit, smoke):
    """A figure or table of the smoke run; None where it waits for an optional arm that did not run."""
    result, _, measurements, _ = smoke(name)
    absent = {arm.name for arm in STUDIES[name].arms.values() if arm.optional} - set(result.manifest.arms)
    try:
        return exhibit.make(measurements)
    except NotMeasured as error:
        if names_an_arm(str(error), absent | set(result.manifest.skipped)):
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
    with one_thread():
        company = measure(study, dataclasses.replace(unit, seeds=(0, 1, 2))).frame()
        alone = measure(study, dataclasses.replace(unit, seeds=(1,))).frame()
    assert set(alone["seed"]) == {1}
    assert disagreements(alone, company, study.arms[arm]) == []


def runs_by_default(study, arm: str) -> bool:
    preset = study.preset("smoke")
    return (not study.arms[arm].optional or arm in preset.arms) and arm not in preset.skip


@of_the_package
def test_a_study_of_the_package_has_a_page(name):
    page = DOCS / f"{name.replace('-', '_')}.md"
    if not page.exists():
        page = DOCS / f"{name}.md"
    text = page.read_text()
    assert text.startswith("# ")
    written = re.sub(r"<!-- \w+: .*?<!-- end -->\n", "", text, flags=re.S)  # tables are made from saved results
    assert len(written.splitlines()) <= 80


class Watched(Measurements):
    """Notes which rows and which arrays a claim is given. Looking at the table itself counts as reading all of it."""

    def __init__(self, measurements: Measurements) -> None:
        vars(self).update(vars(measurements))
        self._table = measurements.frame
        self._numbered = Measurements(self._table.with_row_index("row number"), self.params)
        self._answering = False
        self.queries: list[tuple[int, ...]] = []
        self.arrays: list[str] = []

    @property
    def frame(self) -> pl.DataFrame:
        if not self._answering:
            self.queries.append(tuple(range(len(self._table))))
        return self._table

    def rows(self, metric=None, **where) -> pl.DataFrame:
        self._answering = True
        try:
            found = super().rows(metric, **where)
        finally:
            self._answering = False
        self.queries.append(tuple(self._numbered.rows(metric, **where)["row number"]))
        return found

    def _seeds_and_array(self, name, step, where):
        self.arrays.append(name if step is None else f"{name}@{step}")
        return super()._seeds_and_array(name, step, where)


def spoilt(measurements: Measurements, claim) -> dict[str, Measurements]:
    """The measurements that a claim reads with NaN among them, by what is lost: of each metric all rows or those of a
    seed, of one query (a part of many) and of an array those of a seed. It is the first one, which all arms have: a
    difference leaves out a seed that only one side has, whatever its value."""
    watched = Watched(measurements)
    claim.judge(watched)
    assert watched.queries or watched.arrays, f"{claim.id} reads nothing"
    used = sorted(set().union(*watched.queries))
    place = {row: i for i, row in enumerate(used)}
    read = measurements.frame[used]  # the same answers as the whole table's, and found much faster
    seeds, metrics = read["seed"].to_numpy(), read["metric"].to_numpy()
    lost = {}
    queries = list(dict.fromkeys(watched.queries))
    for query in queries[:: max(1, len(queries) // 12)]:  # of a map of cells a dozen will do
        rows = np.array([place[row] for row in query])
        lost[f"the first seed of query {len(lost)}, {metrics[rows[0]]}"] = rows[seeds[rows] == seeds[rows].min()]
    for metric in dict.fromkeys(metrics):
        rows = np.flatnonzero(metrics == metric)
        lost[f"all of {metric}"] = rows
        lost[f"the first seed of {metric}"] = rows[seeds[rows] == seeds[rows].min()]
    made = {words: with_frame(measurements, without(read, rows)) for words, rows in lost.items()}
    for key in dict.fromkeys(watched.arrays):
        made[f"array {key}"] = with_frame(measurements, read)
        made[f"array {key}"]._arrays = partial(without_first_seed, measurements._arrays, key)
    same = dataclasses.astuple(claim.judge(with_frame(measurements, read)))
    assert repr(same) == repr(dataclasses.astuple(claim.judge(measurements)))
    return made


def with_frame(measurements: Measurements, frame: pl.DataFrame) -> Measurements:
    made = copy.copy(measurements)
    made.frame = frame
    return made


def without(frame: pl.DataFrame, rows: np.ndarray) -> pl.DataFrame:
    values = frame["value"].to_numpy().copy()
    values[rows] = np.nan
    return frame.with_columns(value=pl.Series(values))


def without_first_seed(arrays, lost: str, key: str, where):
    parts = [(seeds, np.array(array)) for seeds, array in arrays(key, where)]
    if key == lost and np.issubdtype(parts[0][1].dtype, np.floating):
        parts[0][1][0] = np.nan
    return parts


def takes_nan_for_a_number(measurements: Measurements, claim) -> list[str]:
    """What can be lost without the claim's judgement saying so. Not to hold is not enough: a claim that fails or is
    undecided in this run, and does not see the NaN, holds with it in another."""
    judged = {words: claim.judge(with_nan) for words, with_nan in spoilt(measurements, claim).items()}
    return [
        f"{claim.id}, {words}: {judgement.verdict}"
        for words, judgement in judged.items()
        if judgement.verdict == "holds" or "finite" not in judgement.reason
    ]


@every_study
def test_nan_never_helps_a_claim_or_a_control(name, smoke):
    """There are no exceptions: an arm in which diverging is the event records it as a number."""
    _, _, measurements, found = smoke(name)
    judged = [finding.claim for finding in found if finding.judgement.verdict != "not run"]
    assert [wrong for claim in judged for wrong in takes_nan_for_a_number(measurements, claim)] == []


@pytest.mark.parametrize(
    ("judge", "careless"),
    [
        (lambda m: (m.final("a") - m.final("b")).at_most(9), False),
        (lambda m: combine(max, [m.final("a"), m.final("b")], "largest").at_most(9), False),
        (lambda m: m.every("a").at_most(9), False),
        (
            lambda m: Values({s: max(m.final("b").by_seed[s], v) for s, v in m.final("a").by_seed.items()}).at_most(9),
            True,
        ),
        (lambda m: Values({s: float(v > 9) for s, v in m.final("a").by_seed.items()}).at_most(9), True),
        (lambda m: Values(dict.fromkeys(m.frame["seed"], 1.0)).at_most(9), True),
        (lambda m: Every(m.rows(["a", "b"]).filter(pl.col("value") < 9)).at_most(9), True),
        (lambda m: Values({s: float((m.array("w")[s] < 9).mean()) for s in range(3)}).at_most(9), True),
        (lambda m: m.array_per_seed("w", np.mean, "w").at_most(9), False),
    ],
)
def test_a_claim_that_loses_nan_is_found(judge, careless):
    rows = [("x", seed, None, metric, 1.0 + seed) for seed in range(3) for metric in ("a", "b")]
    schema = {"arm": pl.String, "seed": pl.Int64, "step": pl.Int64, "metric": pl.String, "value": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    m = Measurements(frame, Params(), arrays=lambda key, where: [([0, 1, 2], np.ones((3, 2)))])
    claim = Claim("C1", "a claim", "nowhere", judge, {})
    assert bool(takes_nan_for_a_number(m, claim)) == careless
