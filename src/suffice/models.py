"""Models over a release, at no cost in privacy: rows, conditions, steps, outcomes and hidden states."""
