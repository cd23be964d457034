"""Numbers in, numbers out: from declarations and partitions to exact sums, noise and posteriors.

From the ground up: declaration, statistics, released, distributions, priors, engines, families, spec. Above
them stand two branches that never import each other: the trusted rooms sources, chunk, contribution, reduce
and mechanism, and the consumer's rooms posterior, pooling, calibration, planning and numpyro_likelihoods. A
room imports only rooms below it, and only the names that they list as public; no module lies beside them.
"""
