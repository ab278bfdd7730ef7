"""The arms that check the mathematics: growth in stage one, moments, neuron sets, one masked step, the loss floor."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from . import mechanism, theory
from .learners import Cells, Contrastive, Encoders, infonce_step, random_start
from .problem import MODES, TokenPairs
from .pruning_arms import PRUNING, pruned_state, pruning_recipe
from .study import MODEL, nan_if_diverged, problem_of, pruning_problem, study

EXACT = dict(dtype="float64", tolerance=1e-9)
TAU = 4.0
MARGIN = 0.1  # γ of the neuron sets


@study.arm("gradient", over={"attention": ["uniform", "softmax"], "token_mode": list(MODES)}, uses=(), **EXACT)
def gradient(params, seeds, record, *, attention, token_mode):
    """The closed-form gradient against autograd and finite differences, plain and with a mask."""
    problem = TokenPairs(3, 2, 8, 3, 0.5, token_mode)
    run = Contrastive(1, 6, 0.1, TAU, 0, attention=attention)
    cells = Cells([0.5], [0.1], [0.0], [0.5])
    start = random_start(problem, 1, seeds, width=6, scale=0.5, attention=attention)
    start = replace(start, biases=0.2 * torch.linalg.vector_norm(start.weights, dim=-1))
    first, second = run.attended(run.pairs(problem, cells, seeds, "gradient").next(run.batch))
    mask = cells.masks(start.weights)
    plain, masked, ones = (infonce_step(start, first, second, TAU, m) for m in (None, mask, torch.ones_like(mask)))
    weights, direction = start.weights, seeds.normal("direction", 1, 6, 8)
    free = weights.clone().requires_grad_()
    (auto,) = torch.autograd.grad(mechanism.plain_loss(free, start, first, second, TAU).sum(), free)
    (auto_mask,) = torch.autograd.grad(mechanism.masked_surrogate(free, start, first, second, TAU, mask).sum(), free)
    pruned = torch.linalg.vector_norm(masked.gradient, dim=-1)[mask == 0].unflatten(0, (len(seeds), -1))
    record(
        autograd_deviation=(plain.gradient - auto).abs().amax((1, 2, 3)) / auto.abs().amax((1, 2, 3)),
        masked_autograd_deviation=(masked.gradient - auto_mask).abs().amax((1, 2, 3)) / auto_mask.abs().amax((1, 2, 3)),
        difference_deviation=mechanism.slope_deviation(
            lambda w: mechanism.plain_loss(w, start, first, second, TAU), plain.gradient, weights, direction),
        masked_difference_deviation=mechanism.slope_deviation(
            lambda w: mechanism.masked_surrogate(w, start, first, second, TAU, mask), masked.gradient, weights,
            direction),
        trivial_mask_difference=(ones.gradient - plain.gradient).abs().amax((1, 2, 3)),
        masked_change=(masked.gradient - plain.gradient).abs().amax((1, 2, 3)) / plain.gradient.abs().amax((1, 2, 3)),
        pruned_gradient=pruned.mean(1) / torch.linalg.vector_norm(plain.gradient, dim=-1).amax((1, 2)),
    )  # fmt: skip


GROWTH = dict(rate=0.05, temperature=TAU)
GROWTH_DECAYS = (0.01, 0.3)
GROWTH_RARE = (0.1, 0.3, 0.5, 0.75, 1.0)


@study.arm("stage-one", over={"views": ["paired", "unpaired"]}, tolerance=1e-3,
           uses=(*MODEL, "width", "growth_dim", "growth_steps", "growth_batch"),
           working_set=lambda p: 40.0 * p.growth_batch * (2 * p.growth_dim + 2 * p.growth_batch))  # fmt: skip
def stage_one(params, seeds, record, *, views):
    """Growth of features and noise from small weights without bias, for two weight decays."""
    problem = problem_of(params, params.growth_dim)
    d, steps = problem.features, params.growth_steps
    points = [(decay, epsilon) for decay in GROWTH_DECAYS for epsilon in GROWTH_RARE]
    cells = Cells([e for _, e in points], [0.05] * len(points), [decay for decay, _ in points])
    run = Contrastive(steps, params.growth_batch, bias_on=None, looks=tuple(range(steps)), **GROWTH)
    start = random_start(problem, len(points), seeds, width=params.width, scale=1e-3)
    reached = torch.full(start.biases.shape, torch.nan, device=seeds.device)
    for look in run.train(problem, cells, seeds, start, unpaired=views == "unpaired"):
        w = look.encoders.weights
        half = w[..., :d].square().sum(-1) >= 0.5 * w.square().sum(-1)
        reached = torch.where(reached.isnan() & half, float(look.step), reached)
    correlations = theory.pair_correlations(problem, [e for _, e in points])
    parts = {"frequent": slice(0, problem.majority), "rare": slice(problem.majority, d), "noise": slice(d, None)}
    for c, (decay, epsilon) in enumerate(points):
        descent = theory.Descent(decay=decay, candidates=params.growth_batch, **GROWTH)
        growth = theory.growth_factors(correlations[c], descent)
        shrink = 1 - descent.rate * decay
        predicted = {"frequent": float(growth[0]), "rare": float(growth[-1]), "noise": shrink}
        for part, columns in parts.items():
            ends = [torch.linalg.vector_norm(e.weights[:, c, :, columns], dim=(-1, -2)) for e in (start, look.encoders)]
            measured = (ends[1] / ends[0]) ** (1 / steps)
            record(at={"decay": decay, "epsilon": epsilon, "part": part}, growth=measured,
                   growth_over_predicted=measured / predicted[part], predicted_growth=predicted[part])  # fmt: skip
        w = start.weights[:, c]
        expected = theory.stage_one_steps(w[..., :d].square(), w[..., d:].square().sum(-1), growth.to(w.device), shrink)
        # A neuron that is never half features counts as infinitely late.
        end = reached[:, c].nan_to_num(nan=torch.inf).median(-1).values
        record(at={"decay": decay, "epsilon": epsilon}, stage_one_end=end,
               stage_one_predicted=expected.median(-1).values)  # fmt: skip


@study.arm("pair-moments", over={"token_mode": list(MODES)}, uses=("samples",), dtype="float64", tolerance=1e-9,
           working_set=lambda p: 2.0**22)  # fmt: skip
def pair_moments(params, seeds, record, *, token_mode):
    """Lemma F.3 at b = 0: what positive and negative pairs contribute along features and noise directions."""
    problem = TokenPairs(5, 4, 20, 4, 0.3, token_mode)
    cells, run = Cells([0.3], [0.05], [0.0]), Contrastive(1, 2, 0.1, TAU, None)
    encoders = random_start(problem, 1, seeds, width=24, scale=1.0)
    alpha, d = encoders.weights[:, 0], problem.features
    first, second = run.attended(run.pairs(problem, cells, seeds, "moments").next(params.samples))
    slope = problem.tokens * first[:, 0, :, 0]  # ∇h_i(X) at b = 0, the same for every neuron
    kappa = theory.pair_correlations(problem, 0.3)[0].to(alpha.device)

    def along(candidates):
        """Least-squares slope of the moment against α_ij, per direction: (seeds, dim)."""
        moment = encoders(candidates)[:, 0].mT @ slope / params.samples
        return (moment * alpha).sum(1) / alpha.square().sum(1)

    positive, negative = along(second), along(second.roll(1, 2))
    similarity = (encoders(first) * encoders(second)).sum(-1).mean(-1)[:, 0]
    expected = theory.positive_similarity(alpha[..., :d], kappa)
    # Errors of single directions have signs that cancel in a mean: the largest is kept as well.
    share = positive[:, :d] / kappa
    record(moment_over_kappa=share.mean(1), largest_moment_deviation=(share - 1).abs().amax(1),
           largest_noise_over_kappa=positive[:, d:].abs().amax(1) / kappa.max(),
           largest_negative_over_kappa=negative[:, :d].abs().amax(1) / kappa.max(),
           similarity_over_expected=similarity / expected)  # fmt: skip


SETS = ((30, 1.0), (30, 0.7), (100, 1.0), (100, 0.7))


@study.arm("neuron-sets", over=[{"features": d, "ratio": r} for d, r in SETS], uses=("samples",), tolerance=1e-6,
           working_set=lambda p: 2.0**22)  # fmt: skip
def neuron_sets(params, seeds, record, *, features, ratio):
    """The sets 𝓜_j and 𝓜*_j of Gaussian neurons, counted and by exact and asymptotic probabilities."""
    alpha = seeds.normal(f"neurons {features}", params.samples, features)
    ordinary, lucky = theory.ordinary_sets(alpha, ratio, MARGIN), theory.lucky_sets(alpha, ratio, MARGIN)
    exact = theory.neuron_sets(features, ratio, margin=MARGIN)
    record(ordinary=ordinary.double().mean((1, 2)), lucky=lucky.double().mean((1, 2)),
           features_per_neuron=ordinary.double().sum(2).mean(1), exact_ordinary=exact.ordinary, exact_lucky=exact.lucky,
           independent_lucky=exact.independent, dominant=exact.dominant, printed_lucky=exact.printed_lucky,
           printed_ordinary=exact.printed_ordinary)  # fmt: skip


@study.arm("logits", over={"init": [0.01, 0.005]}, uses=(*MODEL, "growth_dim", "width"), **EXACT)
def logits(params, seeds, record, *, init):
    """Near initialisation the softmax is uniform up to a term quadratic in the weights."""
    problem = problem_of(params, params.growth_dim)
    run, cells = Contrastive(1, 64, 0.1, TAU, None), Cells([0.3], [0.05], [0.0])
    start = random_start(problem, 1, seeds, width=params.width, scale=init)
    found = infonce_step(start, *run.attended(run.pairs(problem, cells, seeds, "logits").next(run.batch)), TAU)
    zero = infonce_step(replace(start, weights=0 * start.weights),
                        *run.attended(run.pairs(problem, cells, seeds, "logits").next(run.batch)), TAU)  # fmt: skip
    record(softmax_deviation=(found.softmax - 1 / run.batch).abs().amax((1, 2, 3)) * run.batch,
           zero_loss_deviation=(zero.loss[:, 0] - math.log(run.batch)).abs())  # fmt: skip


@study.arm("loss-floor", uses=(*MODEL, "samples"), tolerance=1e-3)
def floor(params, seeds, record):
    """Pure neurons of great size, constant magnitudes, no noise: the loss against its floor E log(1 + N)."""
    problem = replace(problem_of(params, params.majority + params.minority), low=1.0, high=1.0, mode="all")
    cells, run = Cells([0.3], [0.0], [0.0]), Contrastive(1, 128, 0.1, 1.0, None)
    pure = 8 * torch.eye(problem.features, device=seeds.device, dtype=seeds.dtype)
    encoders = Encoders(pure.expand(len(seeds), 1, -1, -1), torch.zeros_like(pure[0]).expand(len(seeds), 1, -1), 1)
    stream, batches = run.pairs(problem, cells, seeds, "floor"), max(2, params.samples // 500)
    losses = [infonce_step(encoders, *run.attended(stream.next(run.batch)), 1.0).loss[:, 0] for _ in range(batches)]
    expected = theory.loss_floor(problem.rates(0.3)[0].tolist(), run.batch - 1)
    record(floor_loss=torch.stack(losses).mean(0), floor_formula=expected)


@study.arm("pseudo-loss", uses=(*MODEL,), **EXACT)
def pseudo_loss(params, seeds, record):
    """The pseudo-loss at w⁽ᵗ⁾ equals τ times the loss, is convex, and obeys the regret bound of online descent."""
    problem = problem_of(params, max(20, params.majority + params.minority))
    run = Contrastive(30, 32, 0.1, TAU, None)
    found = []
    for seed in seeds:
        one = replace(seeds, values=(seed,))
        start = random_start(problem, 1, one, width=24, scale=0.1)
        start = replace(start, biases=0.2 * torch.linalg.vector_norm(start.weights, dim=-1))
        found.append(mechanism.regret_share(problem, one, start, run, 0.5))
    record(**{f"pseudo_{name}": [each[name] for each in found] for name in found[0]})


RULES = {"biased": {}, "unbiased": {"bias": 0.0}, "printed": {"bias": None}}


@study.arm("lucky", over={"rule": list(RULES)}, tolerance=2e-2,
           uses=(*MODEL, "dim", "batch", "rate", "temperature", "decay", "bias_on", "bias", "steps"))  # fmt: skip
def lucky(params, seeds, record, *, rule):
    """Do neurons with one dominant feature at the start keep it? 96 neurons, all features equally frequent. The bounds
    of stages 2 and 3 are measured for the sets 𝓜_j and 𝓜*_j of the initial weights."""
    problem = problem_of(params, params.dim)
    d = problem.features
    cells = Cells([1.0], [problem.deviation(0.45)], [params.decay])
    start = random_start(problem, 1, seeds, width=96, scale=0.005)
    sets, ordinary = (chosen(start.weights[:, 0, :, :d], 1.0, MARGIN)  # (seeds, neurons, features)
                      for chosen in (theory.lucky_sets, theory.ordinary_sets))  # fmt: skip
    member, feature = sets.any(-1), sets.double().argmax(-1)
    count = member.sum(-1).double()
    usual = dict(bias=params.bias, bias_growth=params.rate / d if rule == "printed" else 0.0)
    run = Contrastive(params.steps, params.batch, params.rate, params.temperature, params.bias_on,
                      looks=tuple(range(params.bias_on, params.steps, 10)), **{**usual, **RULES[rule]})  # fmt: skip
    begun, over, at_end = None, torch.zeros(len(seeds), dtype=torch.bool, device=seeds.device), {}
    for look in run.train(problem, cells, seeds, start):
        w, b = look.encoders.weights[:, 0], look.encoders.biases[:, 0]
        alpha, size, lost = w[..., :d].abs(), torch.linalg.vector_norm(w, dim=-1), nan_if_diverged(w)
        own = alpha.gather(-1, feature.unsqueeze(-1)).squeeze(-1)
        begun = size if begun is None else begun
        record(step=look.step, lucky_kept=((alpha.argmax(-1) == feature) & member).sum(-1) / count + lost,
               lucky_share=(own.square() / alpha.square().sum(-1) * member).sum(-1) / count + lost,
               lucky_norm_share=((own / size).square() * member).sum(-1) / count + lost)  # fmt: skip
        # T₂: some neuron's squared norm has grown d-fold since T₁.
        now = (size.square() >= d * begun.square()).any(-1) & ~over
        over = over | now
        found = {"stage_two_growth": torch.where(member, (own / begun).square(), torch.inf).amin(-1)}
        if rule != "unbiased":
            found |= _over_bias(own, member, alpha, ordinary, b)
        for name, value in found.items():
            at_end[name] = torch.where(now, value, at_end.get(name, torch.nan))
    largest, others = (torch.where(part, alpha, 0).amax(1) for part in (sets, ~sets))  # per feature
    owned = sets.any(1)  # the features that have a lucky neuron; without any there is nothing to compare
    ratio = torch.where(owned, others / largest, -torch.inf).amax(-1) + lost
    # Neurons with 𝓝_i empty have no strong coefficients, and their weak ones are all they have.
    some = ordinary.any(-1)
    weak = (torch.where(ordinary, 0, alpha).square().sum(-1) / (~ordinary).sum(-1)).sqrt() / size * math.sqrt(d)
    record(lucky_count=count, lucky_features=owned.sum(-1).double(), set_neurons=some.sum(-1).double(),
           ordinary_over_lucky=torch.where(owned.any(-1), ratio, torch.nan),
           weak_rms=torch.where(some, weak, torch.nan).nanmedian(-1).values + lost,
           stage_two_reached=over.double() + lost, **at_end)  # fmt: skip


def _over_bias(own, member, alpha, ordinary, b):
    """Projections over biases, which stage 2 bounds: of lucky neurons the smallest, of non-members the largest."""
    return {
        "lucky_over_bias": torch.where(member, own / b, torch.inf).amin(-1),
        "outsider_over_bias": torch.where(ordinary, 0, alpha / b.unsqueeze(-1)).amax((-1, -2)),
    }


@study.arm("one-step", over={"epsilon": lambda p: p.pruned_rare}, dtype="float64", tolerance=1e-6,
           uses=(*PRUNING, "one_step_batches"),
           working_set=lambda p: 64.0 * p.pruned_batch * (p.pruned_batch + p.pruned_dim))  # fmt: skip
def one_step(params, seeds, record, *, epsilon):
    """What a mask over the rare feature's neurons adds to the growth of every feature, at a constructed state."""
    problem = pruning_problem(params)
    width = problem.features * params.per_feature
    counts = list(range(params.per_feature + 1))
    cells = Cells([epsilon] * len(counts), [0.05] * len(counts), [0.0] * len(counts), [n / width for n in counts])
    run = pruning_recipe(params)
    for scale in (1.0, 0.2):
        start = pruned_state(params, len(counts), seeds)
        start = replace(start, weights=scale * start.weights, biases=scale * start.biases)
        growth, share = mechanism.pruned_growth(problem, cells, seeds, start, run, params.one_step_batches)
        boost = growth - growth[:, :1]
        for c, count in enumerate(counts[1:], 1):
            others = boost[:, c, :-1]
            record(at={"pruned": count, "scale": scale}, rare_boost=boost[:, c, -1], other_boost=others.mean(-1),
                   other_over_rare=others.abs().amax(-1) / boost[:, c, -1].abs(), plain_growth=growth[:, 0, -1],
                   pruned_rare_share=share[:, c])  # fmt: skip
    for scale in (1.0, 0.1, 0.03):
        found = mechanism.response_deviation(
            problem, replace(cells, alpha=[params.per_feature / width] * len(counts)), seeds,
            pruned_state(params, len(counts), seeds), run, scale)  # fmt: skip
        record(at={"scale": scale}, response_deviation=found)
