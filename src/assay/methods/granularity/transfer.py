"""Pretrain on fine labels, then solve the coarse task: beside it, always, the baselines that saw coarse labels only.

One pass trains once on the coarse labels. Retraining is the transfer with the coarse labels in place of the fine ones,
stage by stage, so that both have the same budget: two stages when finetuning, frozen features in the second when
probing, and a single stage with the maximum, which trains nothing afterwards. Models are copied: the one that is handed
in is never changed.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypedDict, Unpack

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

from assay.methods._checks import number, one_of, seed_list
from assay.methods._data import as_targets
from assay.methods._models import answer, evaluating
from assay.methods._precision import uncached_casts
from assay.methods._progress import progress
from assay.methods._training import own_training
from assay.probes.heads import fit_head
from assay.training.seeds import stream

from .heads import head_name, swap_head
from .hierarchies import LabelHierarchy
from .readout import max_readout, strictly_right
from .sources import Source, source_of
from .stage import Diverged, Stage
from .transfer_report import TransferReport, TransferScore

READOUTS = ("finetune", "probe", "max")
PROBE_PENALTY = 1e-4  # on the squared weights of a linear head on frozen features
Data = Tensor | Dataset[Any] | DataLoader[Any]


class Held(TypedDict):
    """What a protocol needs beside the training data: validation and test data with their coarse labels, and a seed."""

    validation: tuple[Data, Tensor]
    test: tuple[Data, Tensor]
    seed: int


@dataclass(frozen=True)
class FineToCoarse:
    """The transfer's hyper-parameters. ``finetune`` None means the pretraining stage with a quarter of its batch and
    rate. ``rates`` are searched on validation data, where the best epoch is kept as well: they multiply the rate of the
    stage that is scored (of finetuning, or of the one pass) or, when probing, the penalty of the linear head, 1e-4.
    With the maximum nothing is searched but the rate of the one pass. ``augment`` changes training inputs.
    ``precision`` is ``float32`` or ``bfloat16`` (autocast)."""

    pretrain: Stage = field(default_factory=Stage)
    finetune: Stage | None = None
    readout: str = "finetune"
    rates: tuple[float, ...] = (0.25, 1.0, 4.0)
    head: str | None = None
    augment: Callable[[Tensor], Tensor] | None = None
    precision: str = "float32"

    def __post_init__(self) -> None:
        one_of("readout", self.readout, READOUTS)
        one_of("precision", self.precision, ("float32", "bfloat16"))
        number("the smallest of rates", min(self.rates, default=0), above=0)

    @property
    def last(self) -> Stage:
        """The stage after pretraining."""
        first = self.pretrain
        return self.finetune or replace(first, batch=max(1, first.batch // 4), rate=first.rate / 4)

    def run(
        self,
        model: nn.Module,
        data: Data,
        hierarchy: LabelHierarchy,
        *,
        validation: tuple[Data, Tensor],
        test: tuple[Data, Tensor],
        seed: int | None = None,
        seeds: int | Sequence[int] | None = None,
        show: bool | None = None,
    ) -> TransferReport:
        """All three protocols from the same initial weights. ``hierarchy`` labels ``data``; validation and test data
        come with coarse labels. ``seeds``, a number of them or integers, are other heads and orders of batches: three
        or more give the gain an interval."""
        coarse = replace(hierarchy, fine=hierarchy.coarse, name="coarse")
        found = []
        for each in progress(seed_list(seeds, seed), "seed", show):
            held = Held(validation=validation, test=test, seed=each)
            fine, retrain = (self.transfer(model, data, labels, **held) for labels in (hierarchy, coarse))
            found.append((fine, retrain, self.onepass(model, data, coarse, **held)))
        return TransferReport(self.readout, *(TransferScore.over(scores) for scores in zip(*found, strict=True)))

    def transfer(self, model: nn.Module, data: Data, hierarchy: LabelHierarchy, **held: Unpack[Held]) -> TransferScore:
        """Pretrain on ``hierarchy.fine``, then read out ``hierarchy.coarse``. Retraining is this with equal labels."""
        source = source_of(data, len(hierarchy.fine))
        pretrained = self.pretrained(model, source, hierarchy.fine, seed=held["seed"])
        if self.readout == "max":
            mapped = hierarchy.fine_to_coarse.to(next(pretrained.parameters()).device)
            read = partial(max_readout, fine_to_coarse=mapped)
            return TransferScore(self._accuracy(pretrained, held["test"], "test", read))
        if self.readout == "probe":
            return self._probe(pretrained, source, hierarchy.coarse, held)
        return self._tuned(pretrained, source, hierarchy.coarse, self.last, held, "finetuning")

    def onepass(self, model: nn.Module, data: Data, hierarchy: LabelHierarchy, **held: Unpack[Held]) -> TransferScore:
        """The coarse labels, once, with the pretraining stage; its rate is searched on the same grid."""
        source = source_of(data, len(hierarchy.coarse))
        return self._tuned(model, source, hierarchy.coarse, self.pretrain, held, "the one pass")

    def pretrained(self, model: nn.Module, data: Data | Source, labels: Tensor, *, seed: int) -> nn.Module:
        """A copy of the model with a head for ``labels``, trained on them by the first stage."""
        source = data if isinstance(data, Source) else source_of(data, len(labels))
        with own_training(seed, "pretraining", model):
            model = self._with_head(model, source, labels, seed, "pretraining head")
            try:
                for _ in self._train(model, source, labels, self.pretrain, seed, "pretraining"):
                    pass
            except Diverged as reason:
                raise Diverged(f"pretraining diverged: {reason}") from reason
        return model

    def features(self, model: nn.Module, data: Data) -> Tensor:
        """What the model's head reads, for every input: (n, dim), on the CPU. Embeddings for clusters and reports."""
        return self._features(model, source_of(data))

    def _tuned(
        self, model: nn.Module, source: Source, labels: Tensor, stage: Stage, held: Held, name: str
    ) -> TransferScore:
        """Train with every rate of the grid; the best rate and epoch on validation data decide."""
        best: tuple[float, float, int, dict[str, Tensor]] = (-1.0, 0.0, 0, {})
        found: dict[float, float] = {}
        for multiple in self.rates:
            tried = replace(stage, rate=stage.rate * multiple)
            with own_training(held["seed"], "finetuning", model):
                trained = self._with_head(model, source, labels, held["seed"], "new head")
                try:
                    own = self._best_epoch(trained, source, labels, tried, held)
                except Diverged as reason:
                    found[tried.rate], last = math.nan, reason
                    continue
            found[tried.rate] = own[0]
            best = max(best, (own[0], tried.rate, *own[1:]), key=lambda each: each[0])
        if best[0] < 0:
            raise Diverged(f"{name} diverged at every rate of {sorted(found)}: {last}") from last
        trained.load_state_dict(best[3])
        return TransferScore(self._accuracy(trained, held["test"], "test"), best[1], best[2], found)

    def _best_epoch(
        self, model: nn.Module, source: Source, labels: Tensor, stage: Stage, held: Held
    ) -> tuple[float, int, dict[str, Tensor]]:
        """The best validation accuracy, its epoch, and the weights it was reached with."""
        best: tuple[float, int, dict[str, Tensor]] = (-1.0, 0, {})
        for epoch in self._train(model, source, labels, stage, held["seed"], "finetuning"):
            accuracy = self._accuracy(model, held["validation"], "validation")
            if accuracy > best[0]:
                best = (accuracy, epoch, {name: value.clone() for name, value in model.state_dict().items()})
        return best

    def _probe(self, model: nn.Module, source: Source, labels: Tensor, held: Held) -> TransferScore:
        """A linear head on frozen features; the grid multiplies its penalty."""
        others = ((data, as_targets(y)) for data, y in (held["validation"], held["test"]))
        parts = [(source, labels), *((source_of(data, len(y)), y) for data, y in others)]
        features = [(self._features(model, part), y.cpu()) for part, y in parts]
        if not all(bool(x.isfinite().all()) for x, _ in features):
            raise Diverged("the features after pretraining are not finite: it diverged, or some inputs are not finite")
        found, best = {}, (-1.0, 0.0, 0.0)
        for multiple in self.rates:
            rate = PROBE_PENALTY * multiple
            head = fit_head(*features[0], penalty=rate)
            validated, tested = (float((head.predict(x) == y).float().mean()) for x, y in features[1:])
            found[rate] = validated
            best = max(best, (validated, rate, tested), key=lambda each: each[0])
        return TransferScore(best[2], best[1], None, found)

    def _train(
        self, model: nn.Module, source: Source, labels: Tensor, stage: Stage, seed: int, name: str
    ) -> Iterator[int]:
        """Yields the epoch after each; batches are drawn from the seed and the stage's name alone. A loss or a weight
        that is not finite at an epoch's end stays so: the stage is given up."""
        generator = stream(seed, name)
        device = next(model.parameters()).device
        optimizer = torch.optim.SGD(model.parameters(), stage.rate, stage.momentum, weight_decay=stage.decay)
        labels, weights = labels.to(device).long(), [each for each in model.parameters() if each.requires_grad]
        steps, step = stage.epochs * source.batch_count(stage.batch), 0
        for epoch in range(1, stage.epochs + 1):
            model.train()
            for inputs, index in source.batches(stage.batch, device, generator=generator):
                optimizer.param_groups[0]["lr"] = stage.rate * stage.share(step, steps)
                inputs = self.augment(inputs) if self.augment and isinstance(inputs, Tensor) else inputs
                with self._autocast(device):
                    loss = cross_entropy(answer(model, inputs).float(), labels[index.to(device)])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                step += 1
            if not (bool(loss.isfinite()) and all(bool(each.isfinite().all()) for each in weights)):
                raise Diverged(
                    f"the loss or a weight is not finite after epoch {epoch} at rate {stage.rate:g}; lower the rate, "
                    "or look for inputs that are not finite"
                )
            yield epoch

    def _autocast(self, device: torch.device) -> torch.autocast:
        return torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.precision == "bfloat16")

    def _with_head(self, model: nn.Module, source: Source, labels: Tensor, seed: int, name: str) -> nn.Module:
        model = copy.deepcopy(model)
        head = head_name(model, self.head, source)
        return swap_head(model, int(labels.max()) + 1, head=head, generator=stream(seed, name))

    @torch.no_grad()
    def _accuracy(
        self,
        model: nn.Module,
        data: tuple[Data, Tensor],
        what: str,
        read: Callable[[Tensor], Tensor] = lambda out: out,
    ) -> float:
        """The share of samples whose class is strictly above all others: a tie is an error."""
        inputs, labels = data[0], as_targets(data[1])
        device, right = next(model.parameters()).device, 0
        with evaluating(model), uncached_casts():
            for batch, index in source_of(inputs, len(labels)).batches(1000, device):
                with self._autocast(device):
                    logits = answer(model, batch).float()
                if bool(logits.isnan().any()):
                    raise Diverged(f"some logits on {what} data are NaN: training diverged, or these inputs are NaN")
                right += int(strictly_right(read(logits), labels[index].to(device).long()).sum())
        return right / len(labels)

    @torch.no_grad()
    def _features(self, model: nn.Module, source: Source) -> Tensor:
        """What the head reads, for every input: (n, dim), on the CPU."""
        seen: list[Tensor] = []
        head = model.get_submodule(head_name(model, self.head, source))
        hook = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].float().cpu()))
        try:
            with evaluating(model), uncached_casts():
                for batch, _ in source.batches(1000, next(model.parameters()).device):
                    answer(model, batch)
        finally:
            hook.remove()
        return torch.cat(seen).flatten(1)


def fine_to_coarse(
    model: nn.Module,
    data: Data,
    fine_labels: Tensor,
    coarse_labels: Tensor,
    *,
    validation: tuple[Data, Tensor],
    test: tuple[Data, Tensor],
    seed: int | None = None,
    seeds: int | Sequence[int] | None = None,
    readout: str = "finetune",
    **options: Any,
) -> TransferReport:
    """``FineToCoarse(readout=..., **options).run`` on labels that need not refine each other."""
    hierarchy = LabelHierarchy("fine labels", as_targets(fine_labels).cpu(), as_targets(coarse_labels).cpu())
    return FineToCoarse(readout=readout, **options).run(
        model, data, hierarchy, validation=validation, test=test, seed=seed, seeds=seeds
    )
