"""What is summed of a record, and how far one privacy unit can move the sums.

In: columns, bounds and categories that a declaration states.
Out: lattices, measures, blocks of components and their sensitivities, proved in `sensitivity.md` and
`l2_sensitivity.md`.
May import: declaration.
"""
