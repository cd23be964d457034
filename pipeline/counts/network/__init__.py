"""Joint posteriors of count tables that share margins, behind discrete Laplace noise; by MCMC.

``parts`` tells which tables can be taken together, ``target`` states the law of their latent counts,
``start`` makes first ones, ``moves`` proposes changes that keep margins consistent, ``chains`` runs them,
and ``posterior`` puts them together.
"""
