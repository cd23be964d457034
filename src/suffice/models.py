"""Models over a release, at no cost in privacy: rows, conditions, steps, outcomes and hidden states."""

from __future__ import annotations

from suffice.pipeline.models.chain import Chain, chain

__all__ = ["Chain", "chain"]
