"""A posterior held against its priors and its release: conflicts, evidence, what a default decides."""
