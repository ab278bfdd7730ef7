from __future__ import annotations

import torch

from assay.studies.fourier_circuits.grokking.arms import train_transformer
from assay.studies.fourier_circuits.study import study
from assay.training.seeds import Seeds


def test_a_transformer_trains_at_even_p():
    params = study.resolve("smoke", {"sum-of-2.modulus": "6"}, "sum-of-2")
    found: dict[str, list[float]] = {}

    def record(**values):
        found.update({k: torch.as_tensor(v).tolist() for k, v in values.items() if k not in ("step", "at")})

    record.array = lambda *_, **__: None
    train_transformer(params, Seeds((0, 1)), record)
    for name in ("top2_trained", "top2_untrained", "mirrored_share"):
        assert all(0 < value <= 1 for value in found[name]), name
