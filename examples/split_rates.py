"""Will a train-validation split matter? Ask the rate formulas before training anything.

Run: python examples/split_rates.py
"""

from assay.methods.split_rates import predict_split_effect

print(f"{'s':>4}{'K':>5}{'J':>4}   rate of feature, noise without, noise with a split")
for noise, tasks, steps in ((8.0, 10, 5), (8.0, 10, 1), (8.0, 40, 5), (2.0, 10, 5), (16.0, 10, 5)):
    effect = predict_split_effect(noise, samples=4, support=2, tasks=tasks, inner_steps=steps, inner_rate=0.5)
    rates = (effect.train_train.feature, effect.train_train.noise, effect.train_val.noise)
    verdict = "the split decides" if effect.split_matters else f"{effect.train_train.winner} wins without a split"
    verdict = verdict if effect.train_train.apart > 1.5 else "too close to call without a split"
    print(f"{noise:4g}{tasks:5d}{steps:4d}   " + "".join(f"{rate:8.2f}" for rate in rates) + f"   {verdict}")

effect = predict_split_effect(8.0, samples=4, support=2, tasks=10, inner_steps=5, inner_rate=0.5)
print(
    f"from s = 8, K = 10, J = 5: even at J = {effect.critical_inner_steps:.1f}, K = {effect.critical_tasks:.0f} or "
    f"s = {effect.critical_noise_energy:.1f}"
)
