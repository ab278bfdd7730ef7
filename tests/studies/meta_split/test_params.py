"""Parameters that do not go together are refused, whichever part they belong to."""

import pytest

from assay.lab import UserError
from assay.studies.meta_split.study import study


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": 300}, "300 tasks cannot be drawn without replacement"),
        ({"phase_tasks": (2, 300)}, "300 tasks cannot be drawn without replacement"),
        ({"phase_rates": (0.1, 0.1)}, "phase_rates names a value twice"),
        ({"printed_tasks": 501}, "half of printed_dim"),
        ({"reptile": "0.3"}, "not an inner rate and an outer rate"),
        ({"fomaml": "0.5 0.5"}, "not among the fomaml_candidates"),
    ],
)
def test_impossible_parameters_are_refused(change, message):
    with pytest.raises(UserError, match=message):
        study.resolve("laptop", change)
