"""The whole declaration and its price: the spec, and the plan that follows from it alone.

In: a document.
Out: `Spec`, `Plan`, the canonical plan and its hash. No data are read.
May import: families and below. The last room that both branches share.
"""
