"""A study of one folder: how fast does the mean of n coin tosses find the coin's bias?"""

from pydantic import Field

from assay import lab


class Params(lab.Params):
    bias: float = Field(0.6, gt=0, lt=1, description="probability of heads")
    tosses: int = Field(1000, ge=10, description="tosses per seed")


study = lab.Study(
    "coin",
    title="A biased coin",
    question="Does the share of heads approach the bias of the coin?",
    source="every first course in probability",
    params=Params,
    presets={
        "smoke": lab.Preset(seeds=4, cost="1 s", tosses=400),
        "laptop": lab.Preset(seeds=8, cost="1 s"),
        "paper": lab.Preset(seeds=16, cost="2 s", tosses=100_000),
    },
    settings={"few": {"tosses": 20}, "many": {}},
)


@study.arm("tossed", over={"setting": ["few", "many"]})
def tossed(params, seeds, record, *, setting):
    """Toss and count."""
    heads = (seeds.uniform("tosses", params.tosses) < params.bias).double()
    record(share=heads.mean(1), error=(heads.mean(1) - params.bias).abs())
