"""The mathematics of posteriors. It knows distributions, priors and noisy sums, and no data."""
