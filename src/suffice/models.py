"""Models over a release, at no cost in privacy: rows, conditions, steps, outcomes and hidden states."""

from __future__ import annotations

from suffice.pipeline.ask.models.chain import MarkovChains as Chain
from suffice.pipeline.ask.models.chain import chain
from suffice.pipeline.ask.models.classifier import Classification, Classifier, Score, classifier
from suffice.pipeline.ask.models.field import Field
from suffice.pipeline.ask.models.field import field_model as field
from suffice.pipeline.ask.models.hidden_markov import StateComparison, hidden_markov
from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit
from suffice.pipeline.ask.models.network import Conditional, Network, network
from suffice.pipeline.ask.models.regression import Prediction, Regression, regression
from suffice.pipeline.ask.models.rows_and_draws import DrawnQuantity
from suffice.pipeline.ask.models.small_areas import SmallAreas, small_areas
from suffice.pipeline.ask.models.synthetic_rows import SyntheticRows

__all__ = [
    "Chain",
    "Classification",
    "Classifier",
    "Conditional",
    "DrawnQuantity",
    "Field",
    "HiddenMarkovFit",
    "Network",
    "Prediction",
    "Regression",
    "Score",
    "SmallAreas",
    "StateComparison",
    "SyntheticRows",
    "chain",
    "classifier",
    "field",
    "hidden_markov",
    "network",
    "regression",
    "small_areas",
]
