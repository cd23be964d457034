"""Models over a release, at no cost in privacy: rows, conditions, steps, outcomes and hidden states."""

from __future__ import annotations

from suffice.pipeline.models.chain import Chain, chain
from suffice.pipeline.models.drawn_quantity import DrawnQuantity
from suffice.pipeline.models.regression import Prediction, Regression, regression

__all__ = ["Chain", "DrawnQuantity", "Prediction", "Regression", "chain", "regression"]
