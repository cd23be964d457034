"""Any public prior of a mean and a variance: posteriors by quadrature on the plane, cell by cell.

``densities`` states priors, ``on_plane`` finds where they are, ``panels`` divides the plane there. ``rows``
has the likelihood of one data set, a sum of ``slices`` laid out by ``grids``; ``exact`` has that of sums that
are known, ``surface`` a likelihood from few places, ``product`` what is made of the prior and of several.
``law`` is the result, and ``posterior`` puts them together.
"""
