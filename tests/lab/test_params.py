"""Parameters: presets, settings, overrides and what an arm may read."""

from __future__ import annotations

import pytest
from pydantic import Field, field_validator, model_validator

from assay.lab import Params, Preset, Study, UserError
from assay.lab.params import ParamsView, build, parse_assignments


class Sizes(Params):
    dim: int = Field(20, ge=2)
    width: int = Field(8, ge=1)
    rate: float = Field(0.1, gt=0)


@pytest.fixture
def study():
    return Study(
        "sizes",
        title="t",
        question="q",
        source="s",
        params=Sizes,
        presets={
            "smoke": Preset(seeds=3, cost="10 s", dim=4),
            "laptop": Preset(seeds=8, cost="about 5 min", settings={"wide": {"rate": 0.5}}),
            "paper": Preset(seeds=8, cost="1.5 h"),
        },
        settings={"plain": {}, "wide": {"width": 64}},
    )


def test_overrides_are_names_and_values():
    assert parse_assignments(["dim=40", " wide.width = 20 ", "name=a=b", "empty="], "--set") == {
        "dim": "40",
        "wide.width": "20",
        "name": "a=b",
        "empty": "",
    }


@pytest.mark.parametrize("text", ["garbage", "=3", " =3", ""])
def test_an_override_of_another_form_is_refused(text):
    with pytest.raises(UserError, match="--set takes name=value"):
        parse_assignments([text], "--set")


def test_layers_and_text_values():
    built = build(Sizes, {"dim": 4, "width": 5}, {"dim": "6"})
    assert (built.dim, built.width, built.rate) == (6, 5, 0.1)


def test_an_unknown_name_gets_the_allowed_ones_and_the_nearest():
    with pytest.raises(UserError, match=r"unknown parameter 'widht' \(allowed: dim, width, rate\).*mean 'width'"):
        build(Sizes, {"widht": 3})
    with pytest.raises(UserError) as caught:
        build(Sizes, {"zzz": 3})
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"dim": "-3"}, "parameter dim = '-3' is not allowed: input should be greater than or equal to 2"),
        ({"dim": "2.5"}, "parameter dim = '2.5' is not allowed"),
        ({"dim": "many"}, "parameter dim = 'many' is not allowed"),
        ({"rate": "nan"}, "parameter rate = 'nan' is not allowed"),
        ({"rate": "0"}, "greater than 0"),
    ],
)
def test_a_value_out_of_range_gets_one_sentence(value, message):
    with pytest.raises(UserError) as caught:
        build(Sizes, value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_presets_settings_and_overrides_in_their_order(study):
    assert study.resolve("smoke", {}).dim == 4
    assert study.resolve("smoke", {"dim": "9"}).dim == 9
    assert study.resolve("smoke", {}, "wide").width == 64
    assert study.resolve("smoke", {"width": "9"}).width == 9
    assert study.resolve("smoke", {"width": "9"}, "wide").width == 64  # what the setting fixes stays fixed
    assert study.resolve("smoke", {"dim": "9"}, "wide").dim == 9  # what it leaves open follows the base
    assert study.resolve("laptop", {}, "wide").rate == 0.5
    assert study.resolve("smoke", {}, "wide").rate == 0.1


def test_a_dotted_override_addresses_one_setting(study):
    overrides = {"wide.width": "5"}
    assert study.resolve("smoke", overrides, "wide").width == 5
    assert study.resolve("smoke", overrides, "plain").width == 8
    assert study.resolve("smoke", overrides).width == 8


@pytest.mark.parametrize(
    ("overrides", "setting", "message"),
    [
        ({"wdie.width": "5"}, None, "unknown setting 'wdie'.*did you mean 'wide'"),
        ({"wide.widht": "5"}, "wide", "unknown parameter 'widht'"),
        ({"wide.width": "0"}, "wide", "width = '0' is not allowed"),
        ({}, "narrow", "unknown setting 'narrow'"),
    ],
)
def test_bad_settings_are_named(study, overrides, setting, message):
    with pytest.raises(UserError, match=message):
        study.resolve("smoke", overrides, setting)


def test_an_unknown_preset_is_named(study):
    with pytest.raises(UserError, match=r"unknown preset 'big' \(allowed: smoke, laptop, paper\)"):
        study.resolve("big", {})


def test_stated_costs_are_times():
    assert [Preset(seeds=1, cost=c).seconds for c in ("10 s", "about 5 min", "1.5 h")] == [10, 300, 5400]
    with pytest.raises(ValueError, match="does not start with a number"):
        _ = Preset(seeds=1, cost="cheap").seconds
    with pytest.raises(ValueError, match="at least one seed"):
        Preset(seeds=0, cost="1 s")


def test_a_study_needs_all_three_presets():
    with pytest.raises(ValueError, match="no preset laptop, paper"):
        Study("s", title="t", question="q", source="s", params=Sizes, presets={"smoke": Preset(seeds=1, cost="1 s")})


def test_names_are_registered_once(study):
    study.arm("a")(lambda params, seeds, record: None)
    with pytest.raises(ValueError, match="already has the arm a"):
        study.arm("a")(lambda params, seeds, record: None)
    study.claim("C1", "s", source="s")(lambda m: None)
    with pytest.raises(ValueError, match="already has the claim C1"):
        study.claim("C1", "s", source="s")(lambda m: None)
    with pytest.raises(ValueError, match="uses the parameter depth"):
        study.arm("b", uses=("depth",))(lambda params, seeds, record: None)


def test_a_grid_is_a_product_of_axes_or_a_list_of_points(study):
    axes = {"k": [1, 2], "n": lambda params: range(params.dim - 18)}
    study.arm("product", over=axes)(lambda params, seeds, record: None)
    study.arm("listed", over=[{"k": 1}, {"k": 2, "n": 0}])(lambda params, seeds, record: None)
    study.arm("single")(lambda params, seeds, record: None)
    points = {name: arm.points(Sizes()) for name, arm in study.arms.items()}
    assert points["product"] == [{"k": 1, "n": 0}, {"k": 1, "n": 1}, {"k": 2, "n": 0}, {"k": 2, "n": 1}]
    assert points["listed"] == [{"k": 1}, {"k": 2, "n": 0}]
    assert points["single"] == [{}]


def test_parameters_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Sizes().dim = 3


def test_a_view_shows_what_the_arm_declared_and_refuses_the_rest():
    view = ParamsView(Sizes(), ("width", "dim"))
    assert (view.dim, view.width) == (20, 8)
    assert list(view.used().items()) == [("dim", 20), ("width", 8)]
    with pytest.raises(AttributeError, match="'rate' without naming it in uses="):
        _ = view.rate
    with pytest.raises(AttributeError):
        _ = view.nosuch
    assert ParamsView(Sizes(), None).used() == {"dim": 20, "rate": 0.1, "width": 8}


def test_several_values_and_none_can_be_typed():
    class Several(Params):
        widths: tuple[int, ...] = (1,)
        share: float | None = 0.5
        name: str = "x"

    built = build(Several, {"widths": "2, 3,5", "share": "none", "name": "none"})
    assert (built.widths, built.share, built.name) == ((2, 3, 5), None, "none")
    with pytest.raises(UserError, match="widths"):
        build(Several, {"widths": "2,many"})


def test_numbers_are_finite_wherever_they_stand():
    class Rates(Params):
        rate: float = 0.1
        rates: tuple[float, ...] = (0.1,)

    for values in ({"rate": "nan"}, {"rate": "inf"}, {"rate": "-inf"}, {"rates": "0.1,nan"}, {"rates": "1e999"}):
        with pytest.raises(UserError, match="finite number"):
            build(Rates, values)


class Fragile(Params):
    """Its validators were not written for every value."""

    tasks: int = 2
    widths: tuple[int, ...] = (1, 2)
    depth: int = 3

    @field_validator("depth")
    @classmethod
    def _share(cls, depth: int) -> int:
        _ = 1 / depth
        return depth

    @model_validator(mode="after")
    def _largest(self) -> Fragile:
        _ = max(self.tasks, *self.widths), {1: 1, 2: 2}[len(self.widths)]
        return self


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"widths": ""}, "parameter widths = '' is not allowed: TypeError"),
        ({"tasks": "5", "widths": ""}, "parameter widths = '' is not allowed: TypeError"),
        ({"depth": "0", "tasks": "1"}, "parameter depth = '0' is not allowed: ZeroDivisionError"),
        ({"widths": "1,2,3"}, "parameter widths = '1,2,3' is not allowed: KeyError: 3"),
        ({"widths": "1,2,3", "depth": "0"}, "these parameters are not allowed: ZeroDivisionError"),
    ],
)
def test_a_validator_that_breaks_is_bad_input_too(values, says):
    with pytest.raises(UserError) as caught:
        build(Fragile, {"tasks": 3, "widths": (1,)}, values)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_a_refusal_of_a_validator_stays_as_it_is():
    class Choosy(Params):
        name: str = "a"

        @field_validator("name")
        @classmethod
        def _known(cls, name: str) -> str:
            raise UserError("no such name")

    with pytest.raises(UserError, match=r"^no such name$"):
        build(Choosy, {"name": "b"})


def test_a_property_is_held_to_the_parameters_in_use():
    class Sized(Params):
        coins: int = 2
        tosses: int = 4

        @property
        def total(self) -> int:
            return self.coins * self.tosses

        def times(self, k: int) -> int:
            return k * self.tosses

    assert ParamsView(Sized(), None).total == 8
    assert ParamsView(Sized(), ("tosses",)).times(3) == 12
    with pytest.raises(AttributeError, match="reads the parameter 'coins'"):
        _ = ParamsView(Sized(), ("tosses",)).total
    with pytest.raises(AttributeError, match="model_dump"):
        _ = ParamsView(Sized(), ("tosses",)).model_dump
