"""Methods for models of your own. Names are imported when they are first asked for."""

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .contrastive_planning import (
        Descent,
        growth_factors,
        learnability_threshold,
        learnable,
        pruning_horizon,
        stage_one_steps,
    )
    from .contrastive_planning import plan as contrastive_plan
    from .contrastive_regularization import RegularizedLoss, adapter, contrastive_regularized_loss
    from .contrastive_update import ContrastiveUpdate
    from .domain_theory import domain_theory
    from .erase_and_step import EraseAndStep
    from .feature_learning_gain import feature_learning_gain
    from .fixed_features import frozen_backbone, linearized
    from .flipped_labels import FlippedLabels, FlipReport, label_scores
    from .fomaml import Fomaml, fomaml
    from .forward_pruning import ForwardMagnitudePruner
    from .gemfilter import (
        H2O,
        FilterIndex,
        FullAttention,
        GemFilter,
        OneRun,
        SnapKV,
        choose_filter_layer,
        load_filter,
        share_prefill,
    )
    from .gemfilter.cost import cost_model
    from .gemfilter.index import index_cost, profile_index
    from .gradient_bounds import FeatureConstants, data_assumptions, gradient_bound, gradient_requirements
    from .gradient_ticket import gradient_ticket
    from .granularity import (
        FineToCoarse,
        LabelHierarchy,
        LabelTree,
        Stage,
        binary_by_ancestor,
        clusters_of_all,
        clusters_per_superclass,
        fine_to_coarse,
        granularity_report,
        max_readout,
        one_per_sample,
        random_ids,
        rebalanced_clusters,
        sum_readout,
        tree_level,
    )
    from .group_norm import GroupPenalty, l2_group_penalty
    from .input_replacement import InputReplacement, ReplacementData
    from .looped_transformer import LoopedLinearTransformer, error_bound, make_prompt, prompt_condition, required_loops
    from .loss_floor import loss_floor
    from .low_rank_attention import LowRankAttention, attention_moments, truncated_queries
    from .meta_tasks import Task
    from .mixup import Mixup
    from .modular_margin import build_max_margin, expected_margin, margin_certificate, max_margin, required_width
    from .momentum_queue import MomentumQueue
    from .neuron_sets import neuron_sets
    from .neuron_sets import required_width as contrastive_width
    from .norm_tied_bias import norm_tied_bias
    from .nuclear_norm import NuclearNorm, nuclear_norm
    from .one_step import one_step
    from .one_step_estimators import OneStepClassifier, OneStepRegressor
    from .one_step_features import OneStepFeatures
    from .pruned_infonce import pruned_infonce
    from .rank_noise import rank_noise, token_covariance
    from .replacement_report import area_under_curve
    from .reptile import Reptile
    from .split_audit import SplitAudit
    from .split_rates import predict_split_effect
    from .swad import SWAD
    from .ticket_race import compare_tickets
    from .trainer_callbacks import huggingface_callback, huggingface_swad, lightning_callback

__all__ = [
    "H2O",
    "SWAD",
    "ContrastiveUpdate",
    "Descent",
    "EraseAndStep",
    "FeatureConstants",
    "FilterIndex",
    "FineToCoarse",
    "FlipReport",
    "FlippedLabels",
    "Fomaml",
    "ForwardMagnitudePruner",
    "FullAttention",
    "GemFilter",
    "GroupPenalty",
    "InputReplacement",
    "LabelHierarchy",
    "LabelTree",
    "LoopedLinearTransformer",
    "LowRankAttention",
    "Mixup",
    "MomentumQueue",
    "NuclearNorm",
    "OneRun",
    "OneStepClassifier",
    "OneStepFeatures",
    "OneStepRegressor",
    "RegularizedLoss",
    "ReplacementData",
    "Reptile",
    "SnapKV",
    "SplitAudit",
    "Stage",
    "Task",
    "adapter",
    "area_under_curve",
    "attention_moments",
    "binary_by_ancestor",
    "build_max_margin",
    "choose_filter_layer",
    "clusters_of_all",
    "clusters_per_superclass",
    "compare_tickets",
    "contrastive_plan",
    "contrastive_regularized_loss",
    "contrastive_width",
    "cost_model",
    "data_assumptions",
    "domain_theory",
    "error_bound",
    "expected_margin",
    "feature_learning_gain",
    "fine_to_coarse",
    "fomaml",
    "frozen_backbone",
    "gradient_bound",
    "gradient_requirements",
    "gradient_ticket",
    "granularity_report",
    "growth_factors",
    "huggingface_callback",
    "huggingface_swad",
    "index_cost",
    "l2_group_penalty",
    "label_scores",
    "learnability_threshold",
    "learnable",
    "lightning_callback",
    "linearized",
    "load_filter",
    "loss_floor",
    "make_prompt",
    "margin_certificate",
    "max_margin",
    "max_readout",
    "neuron_sets",
    "norm_tied_bias",
    "nuclear_norm",
    "one_per_sample",
    "one_step",
    "predict_split_effect",
    "profile_index",
    "prompt_condition",
    "pruned_infonce",
    "pruning_horizon",
    "random_ids",
    "rank_noise",
    "rebalanced_clusters",
    "required_loops",
    "required_width",
    "share_prefill",
    "stage_one_steps",
    "sum_readout",
    "token_covariance",
    "tree_level",
    "truncated_queries",
]

offer(__name__)
