"""What families of one shape have in common: the contract, one sum, several columns, tables of counts.

In: the lattice, bounds or variables that a family states.
Out: its measure, block, totals, projection and posteriors.
May import: engines and below.
"""
