"""The law of noise on a cone of moments, for those who infer: its coordinates, and draws of it.

In: the noise as plans state it. Out: `latent_noise`: a log density with a gradient, for chains; `simulated`:
draws, for consumers.
May import: terms and below.
"""
