"""Test loss over width on the digits."""

from assay.studies.feature_emergence.double_descent.learners import double_descent
from assay.studies.feature_emergence.injected_inputs.learners import QuadraticTraining
from assay.studies.feature_emergence.injected_inputs.problem import labelled
from assay.training.seeds import Seeds

QUICK = QuadraticTraining(steps=80, batch=200, learning_rate=1e-2)


def test_double_descent_reports_every_width_and_teacher(digits):
    seeds = Seeds((0, 1))
    points = list(
        double_descent(labelled(*digits, seeds), seeds, widths=(1, 4), teachers=(9,), training=QUICK, teaching=QUICK)
    )
    assert [(point.teacher, point.width) for point in points] == [(None, 1), (None, 4), (9, 1), (9, 4)]
    assert points[1].parameters == 4 * 64 + 4 + 10 * 4 + 10
    assert all(point.test_loss.shape == (2,) and point.test_loss.isfinite().all() for point in points)
    assert (points[1].train_loss < points[0].train_loss).all()
