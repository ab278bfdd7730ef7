"""Does a network need the structure of its inputs? Replace half of them, keep the labelling function, and look.

Run: python examples/input_replacement.py
"""

import torch

from assay.data.images import load_images
from assay.methods import InputReplacement, ReplacementData, area_under_curve
from assay.networks.quadratic import Quadratic

torch.set_num_threads(1)  # networks this small are fastest on one core

train, test = load_images("digits"), load_images("digits", "test")
mean, scale = train.images.mean(dim=0), train.images.std(dim=0).square().mean().sqrt()
noise = torch.Generator().manual_seed(0)
data = ReplacementData(
    inputs=(train.images - mean) / scale,
    labels=train.labels,
    test_inputs=(test.images - mean) / scale,
    test_labels=test.labels,
    injected=torch.randn(train.images.shape, generator=noise),
    injected_test=torch.randn(test.images.shape, generator=noise),
)


def make(size):
    return Quadratic(size, inputs=64, classes=10)


method = InputReplacement(teacher_steps=150, student_steps=200, learning_rate=1e-2)

curve = method.size_curve(make, [3, 6, 9, 15], data, seeds=[0, 1, 2])
print("test loss by size:", dict(zip(curve.sizes, curve.losses.mean(dim=1).tolist(), strict=True)))
print(curve.minimum.reason)
size = curve.minimum.size or 9  # our choice where the curve has no minimum: the method itself does not guess

report = method.run(make, data, teacher_size=size, student_size=50, seeds=[0, 1, 2])
print(f"teacher of size {size}: {report.teacher_accuracy.mean():.3f} on the true labels")
for student in report.curves:
    original, injected = (area_under_curve(student.steps, part).mean() for part in (student.original, student.injected))
    print(f"{student.fraction:.0%} injected: area under accuracy, original {original:.3f}, injected {injected:.3f}")
