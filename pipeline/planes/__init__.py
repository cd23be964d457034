"""Any public prior of a mean and a variance: posteriors by quadrature on the plane, cell by cell.

``densities`` states priors, ``panels`` divides the plane where a density is, ``references`` has the
likelihood, ``law`` is what is made of both, and ``posterior`` puts them together.
"""
