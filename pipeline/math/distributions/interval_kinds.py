"""The kinds of intervals, by name: whoever only names one imports no distribution."""

CENTRAL, HIGHEST_DENSITY = "central", "highest-density"
"""Equal probabilities on both sides, or the shortest."""
