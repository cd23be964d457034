"""Draw the figure of `divide-epsilon.md`: each statistic's error at equal shares beside the divided ones.

It needs the extra ``plot``::

    python docs/figures/divided.py
"""

from __future__ import annotations

from pathlib import Path

import suffice
from suffice.plots.divisions import plot_division

OUT = Path(__file__).with_name("divided.svg")
SPEC = {
    "name": "people",
    "dataset": "simulated",
    "source": {"parquet": "none"},
    "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
    "statistics": {
        "rich": {"family": "bernoulli", "column": "rich"},
        "moved": {"family": "bernoulli", "column": "moved"},
        "school": {"family": "categorical", "column": "school", "categories": list("abcdefghij")},
        "age": {"family": "normal", "column": "age", "lower": "15", "upper": "95"},
        "visits": {"family": "poisson", "column": "visits", "upper": "50"},
    },
    "assume": {
        "rows": "2000",
        "statistics": {
            "rich": {"typical": {"probability": "0.25"}},
            "moved": {"typical": {"probability": "0.02"}},
            "school": {"typical": {"probability": ["0.1"] * 10}, "counts": "probability[a]"},
            "age": {"typical": {"mean": "40", "variance": "180"}, "counts": "mean"},
            "visits": {"typical": {"rate": "1.5"}},
        },
    },
}


def main() -> None:
    """Divide, and draw."""
    division = suffice.divided_plan(SPEC)
    print(division)
    plot_division(division, OUT, title="2,000 people, epsilon 1, divided by need")


if __name__ == "__main__":
    main()
