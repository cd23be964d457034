"""Models over a release, at no cost in privacy: rows, conditions, steps, outcomes and hidden states."""

from __future__ import annotations

from suffice.pipeline.models.chain import Chain, chain
from suffice.pipeline.models.classification import Classification, Score
from suffice.pipeline.models.classifier import Classifier, classifier
from suffice.pipeline.models.drawn_quantity import DrawnQuantity
from suffice.pipeline.models.hidden_markov import hidden_markov
from suffice.pipeline.models.hidden_markov_fit import HiddenMarkovFit
from suffice.pipeline.models.network import Conditional, Network, network
from suffice.pipeline.models.regression import Prediction, Regression, regression
from suffice.pipeline.models.state_comparison import StateComparison

__all__ = [
    "Chain",
    "Classification",
    "Classifier",
    "Conditional",
    "DrawnQuantity",
    "HiddenMarkovFit",
    "Network",
    "Prediction",
    "Regression",
    "Score",
    "StateComparison",
    "chain",
    "classifier",
    "hidden_markov",
    "network",
    "regression",
]
