"""Does a language model follow the labels in its prompt or what it learned before? Demonstrations with flipped labels.

``FlippedLabels`` is the test, ``label_scores`` the part that asks a model for the log-probabilities of labels.
"""

from assay.methods.flipped_labels.evaluation import FlippedLabels
from assay.methods.flipped_labels.report import FlipReport
from assay.methods.flipped_labels.scoring import label_scores

__all__ = ["FlipReport", "FlippedLabels", "label_scores"]
