r"""Differences and ratios of a parameter between cells, of a single posterior or of two.

Model. Cells hold disjoint data and have independent posteriors. For a pair of cells with parameters
:math:`\theta_1` and :math:`\theta_2`,

.. math:: \delta = \theta_1 - \theta_2, \qquad E \delta = E \theta_1 - E \theta_2, \qquad
    \mathrm{sd}(\delta) = \sqrt{\mathrm{sd}(\theta_1)^2 + \mathrm{sd}(\theta_2)^2}, \qquad (1)

.. math:: \rho = \theta_1 / \theta_2, \qquad (2)

whose moments need not exist, where the second may be near zero. With :math:`\theta_i` in :math:`l_i..u_i` a
difference lies in :math:`l_1 - u_2 .. u_1 - l_2`; a ratio of what is not below 0 is not below 0.

Symbols:

- delta, rho: ``draws``, (n_draws, n_pairs) or (n_draws, n_pairs, n_categories)
- E delta, sd: ``moments``
- l, u: ``ends``

Method. (1) is exact where the posteriors' moments are. Draws of independent posteriors are paired as they
come; quantiles, intervals and probabilities are those of such pairs, with the standard error sqrt(p (1 - p) /
n_draws) of a probability p.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL, HIGHEST_DENSITY
from suffice.pipeline.math.distributions.intervals import Ends, shortest_of_draws
from suffice.pipeline.terms.declaration.wording import not_a_name
from suffice.pipeline.terms.released.noisy_statistic import no_such_key
from suffice.pipeline.terms.released.table import Table
from suffice.pipeline.terms.statistics.count_table import label_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from suffice.pipeline.math.distributions.intervals import Range
    from suffice.pipeline.math.parameters.parameter_posterior import ParameterPosterior
    from suffice.pipeline.terms.statistics.count_table import Labels
    from suffice.typing import Cells, Floats

    Groups: TypeAlias = Mapping[str, list[str | int]]

DIFFERENCE = "difference"
RATIO = "ratio"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_STATEMENT = re.compile(
    rf"(?:(?P<low>{_NUMBER})\s*<\s*)?(?P<parameter>[A-Za-z_]+)(?:\s*(?P<sign>[<>])\s*(?P<bound>{_NUMBER}))?",
    re.ASCII,
)
_CALLED_HERE = {
    "std": "sd()",
    "median": "quantile(0.5)",
    **dict.fromkeys(("hdi", "ci", "conf_int"), "interval(mass)"),
    **dict.fromkeys(("summary", "describe", "head"), "rows()"),
    **dict.fromkeys(("sample", "rvs"), "draws"),
    **dict.fromkeys(("p_value", "pvalue"), "probability()"),
    **dict.fromkeys(("plot", "hist"), "draws, for a histogram of your own"),
}
NEUTRAL = {DIFFERENCE: 0.0, RATIO: 1.0}
"""The value at which two cells are alike."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Contrast:
    """How one parameter differs between pairs of cells; made by ``Posterior.difference`` and its like.

    It shows itself as the table of ``rows``. Cells hold disjoint data and have independent posteriors, so
    their draws are paired as they come.

    Attributes
    ----------
    parameter : str
        What is compared.
    kind : {"difference", "ratio"}
        First minus second, or first over second.
    first, second : str
        What is compared with what, in words, as ``origin=JFK``.
    groups : dict of str to list
        The keys that both cells of a pair share, by group column.
    labels : dict of str to tuple
        How the entries along the parameter's last axis are called, where it has one, as ``Posterior.labels``.
    draws : ndarray of shape (n_draws, n_pairs) or (n_draws, n_pairs, n_categories), float64
        Of the difference or the ratio, in the parameter's unit or none.
    moments : tuple of two ndarrays, or None
        Mean and standard deviation of a difference, which rest on no draws.
    components : dict of str to tuple of str
        As in ``Posterior``.
    default_interval : {"central", "highest-density"}
        The kind of its intervals where none is asked for: that of the posteriors.
    ends : (float, float)
        The range of the difference or the ratio.
    as_table : callable
        Returns rows as a table, with the words of a release.
    """

    parameter: str
    kind: str
    first: str
    second: str
    groups: Groups
    labels: Labels
    draws: Floats = field(repr=False)
    moments: tuple[Floats, Floats] | None = field(repr=False)
    components: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default_interval: str = CENTRAL
    ends: Range = (-math.inf, math.inf)
    as_table: Callable[[Iterable[dict[str, Any]]], Table] = field(default=Table, repr=False)

    def __repr__(self) -> str:
        sign = "minus" if self.kind == DIFFERENCE else "over"
        return f"<Contrast of {self.parameter}: {self.first} {sign} {self.second}>"

    def __str__(self) -> str:
        return str(self.rows())

    def _repr_html_(self) -> str:
        return self.rows()._repr_html_()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a stream of Arrow, for whatever takes one."""
        return self.rows().__arrow_c_stream__(requested_schema)

    if not TYPE_CHECKING:  # a type checker knows what there is

        def __getattr__(self, name: str) -> Any:
            raise not_a_name(type(self), name, _CALLED_HERE)

    def mean(self) -> Floats:
        """Means, (n_pairs,) or (n_pairs, n_categories).

        That of a ratio is the mean of the draws. It need not exist, where the second cell may be near zero;
        the median and the intervals always do.
        """
        return np.mean(self.draws, axis=0) if self.moments is None else self.moments[0]

    def sd(self) -> Floats:
        """Standard deviations, shaped and with the same reservation as the means."""
        return np.std(self.draws, axis=0) if self.moments is None else self.moments[1]

    def quantile(self, q: float) -> Floats:
        """Quantiles of the draws, shaped as the means."""
        return np.asarray(np.quantile(self.draws, require_share("q", q), axis=0), dtype=np.float64)

    def credible_interval(self, mass: float = 0.95, *, interval: str | None = None) -> Floats:
        """Credible intervals of draws, shaped as the means with 2 as a last axis.

        Central or highest-density, as in ``Posterior``.
        """
        kind = self.default_interval if interval is None else require_interval(interval)
        if kind == HIGHEST_DENSITY:
            return shortest_of_draws(self.draws, require_share("mass", mass), self.ends)
        # Equal probabilities on both sides.
        ends = [(1.0 - require_share("mass", mass)) / 2.0, (1.0 + mass) / 2.0]
        return np.moveaxis(np.quantile(self.draws, ends, axis=0), 0, -1)

    def interval(self, mass: float = 0.95, *, interval: str | None = None) -> Ends:
        """Return the ends of ``credible_interval`` apart, each shaped as the means."""
        ends = self.credible_interval(mass, interval=interval)
        return Ends(ends[..., 0], ends[..., 1])

    def probability(self, *, above: float | None = None, below: float | None = None) -> Floats:
        """Probabilities that it lies in a range, shaped as the means; see ``Posterior.probability``.

        Without a bound: that the first exceeds the second.
        """
        if above is None and below is None:
            above = NEUTRAL[self.kind]
        return share_between(self.draws, above, below)

    def to_frame(self, library: str | None = None, *, mass: float = 0.95, interval: str | None = None) -> Any:
        """Return ``rows`` as a frame of pandas, or of Polars; see ``Table.to_frame``."""
        return self.rows(mass, interval=interval).to_frame(library)

    def rows(self, mass: float = 0.95, *, interval: str | None = None) -> Table:
        """One row a pair and category: keys, parameter, mean, sd, lower, upper, probability_above.

        ``probability_above`` is that of a difference above 0 or a ratio above 1. The list shows itself as a
        table.
        """
        ends = self.credible_interval(mass, interval=interval)
        columns = {
            "mean": self.mean(),
            "sd": self.sd(),
            "lower": ends[..., 0],
            "upper": ends[..., 1],
            "probability_above": self.probability(),
        }
        return self.as_table(tidy_rows(self.groups, self.labels, {self.parameter: columns}, self.components))


def contrast(
    kind: str,
    parameter: str,
    first: tuple[ParameterPosterior, Cells],
    second: tuple[ParameterPosterior, Cells],
    *,
    names: tuple[str, str],
    groups: Groups,
    draws: int,
    rng: np.random.Generator,
) -> Contrast:
    """Compare a parameter between cells of one or two posteriors, pair by pair.

    The two posteriors must be independent but for draws of the same posterior, whose cells are.
    """
    (left, left_cells), (right, right_cells) = first, second
    left_draws = left.sample(draws, rng)[parameter]
    right_draws = left_draws if right is left else right.sample(draws, rng)[parameter]
    left_draws, right_draws = left_draws[:, left_cells], right_draws[:, right_cells]
    moments = None
    if kind == DIFFERENCE:
        values = left_draws - right_draws
        # (1): variances of independent numbers add up.
        mean = left.mean(parameter)[left_cells] - right.mean(parameter)[right_cells]
        moments = (mean, np.hypot(left.sd(parameter)[left_cells], right.sd(parameter)[right_cells]))
        (low, high), (other_low, other_high) = left.ends_of(parameter), right.ends_of(parameter)
        # The range of a difference.
        ends = low - other_high, high - other_low
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = left_draws / right_draws
        # The range of a ratio.
        is_positive = min(left.ends_of(parameter)[0], right.ends_of(parameter)[0]) >= 0.0
        ends = 0.0 if is_positive else -math.inf, math.inf
    return Contrast(
        parameter=parameter,
        kind=kind,
        first=names[0],
        second=names[1],
        groups=groups,
        labels=left.label_columns,
        components=left.components,
        draws=values,
        moments=moments,
        default_interval=left.default_interval,
        ends=ends,
    )


def contrast_between(
    kind: str,
    parameter: str,
    first: ParameterPosterior,
    second: ParameterPosterior,
    *,
    names: tuple[str, str] = ("first", "second"),
    apart_from: Collection[str] = (),
    draws: int,
    rng: np.random.Generator,
) -> Contrast:
    """Compare a parameter of two independent posteriors, cell by cell; cells match but for some columns."""
    left, right, shared = matched_cells(
        (first.groups, range(first.n_groups)), (second.groups, range(second.n_groups)), apart_from=apart_from
    )
    return contrast(
        kind, parameter, (first, left), (second, right), names=names, groups=shared, draws=draws, rng=rng
    )


def paired_cells(
    groups: Groups,
    first: Mapping[str, object],
    second: Mapping[str, object],
) -> tuple[Cells, Cells, dict[str, list[str | int]]]:
    """Find the cells with the first keys, those with the second, and the keys that they share, in one order.

    Cells are paired where all other group columns agree.

    Raises
    ------
    UsageError
        Where the keys are of different columns, name no cell, or name the same cells.
    """
    if not first or set(first) != set(second):
        message = "both sides of a comparison need keys of the same group columns, as {'origin': 'JFK'}"
        raise UsageError(message)
    sides = []
    for side in (first, second):
        cells = [index for index in range(n_cells(groups)) if _matches(groups, side, index)]
        if not cells:
            for column, key in side.items():
                if str(key) not in map(str, groups[column]):
                    raise no_such_key(column, str(key), groups[column])
            message = f"no selected cell has {in_words(side)}"
            raise UsageError(message)
        sides.append((groups, cells))
    left, right, shared = matched_cells(sides[0], sides[1], apart_from=set(first))
    if np.array_equal(left, right):
        message = f"{in_words(first)} is compared with itself"
        raise UsageError(message)
    return left, right, shared


def matched_cells(
    first: tuple[Groups, Sequence[int]], second: tuple[Groups, Sequence[int]], *, apart_from: Collection[str]
) -> tuple[Cells, Cells, dict[str, list[str | int]]]:
    """Match cells whose keys agree in all group columns but some; each side: its groups and cells.

    Raises
    ------
    UsageError
        Where the two sides have other columns or other keys.
    """
    shared = [column for column in first[0] if column not in apart_from]
    if set(first[0]) != set(second[0]):
        message = "the two sides have different group columns"
        raise UsageError(message)
    left, right = (
        {tuple(groups[column][cell] for column in shared): cell for cell in cells}
        for groups, cells in (first, second)
    )
    if left.keys() != right.keys():
        message = "the two sides do not have the same cells: keep those of both with where"
        raise UsageError(message)
    if len(left) < len(first[1]) or len(right) < len(second[1]):
        message = "several cells of one side have the same keys"
        raise UsageError(message)
    keys = {column: [key[position] for key in left] for position, column in enumerate(shared)}
    return (
        np.array(list(left.values()), dtype=np.int64),
        np.array([right[key] for key in left], dtype=np.int64),
        keys,
    )


def share_between(draws: Floats, above: float | None, below: float | None) -> Floats:
    """Shares of the draws (n_draws, ...) above one number, below another, or between the two.

    Raises
    ------
    UsageError
        Where neither is given, or nothing lies between.
    """
    for name, bound in (("above", above), ("below", below)):
        if bound is not None and (
            isinstance(bound, bool) or not isinstance(bound, Real) or math.isnan(float(bound))
        ):
            message = f"{name} must be one number, not {bound!r}"
            raise UsageError(message)
    if above is None and below is None:
        message = "state above, below, or both for a range"
        raise UsageError(message)
    if above is not None and below is not None and not above < below:
        message = f"nothing lies above {above!r} and below {below!r}"
        raise UsageError(message)
    inside = np.ones(draws.shape, dtype=bool)
    if above is not None:
        inside &= draws > above
    if below is not None:
        inside &= draws < below
    return np.asarray(np.mean(inside, axis=0), dtype=np.float64)


def parse_statement(text: str) -> tuple[str, float | None, float | None]:
    """Read ``mean > 10``, ``mean < 20`` or ``10 < mean < 20``: parameter, above, below.

    Raises
    ------
    UsageError
        Where the text is none of these.
    """
    match = _STATEMENT.fullmatch(text.strip())
    if match is None or not (match["low"] or match["sign"]):
        message = f"--probability {text!r}: write it as 'mean > 10', 'mean < 20' or '10 < mean < 20'"
        raise UsageError(message)
    above, below = match["low"], None
    if match["sign"] == "<":
        below = match["bound"]
    elif match["sign"] == ">":
        if above is not None:
            message = f"--probability {text!r}: a range is written upwards, as '10 < mean < 20'"
            raise UsageError(message)
        above = match["bound"]
    return (
        match["parameter"],
        None if above is None else float(above),
        None if below is None else float(below),
    )


def tidy_rows(
    groups: Groups,
    labels: Labels,
    parameters: Mapping[str, Mapping[str, Floats]],
    components: Mapping[str, Sequence[str]] | None = None,
) -> list[dict[str, Any]]:
    """One row a cell, parameter and entry of it: keys, parameter, labels, numbers; None where none exists.

    Where parameters have components, the rows have a ``component`` in place of labels, empty for those that
    have none.
    """
    of_parameters = []
    for parameter, columns in parameters.items():
        entries: list[dict[str, str | None]] = [{}]
        if components:
            entries = [{"component": name} for name in components.get(parameter, ("",))]
        elif labels:
            entries = label_rows(labels)
        labelled = [{"parameter": parameter, **entry} for entry in entries]
        numbers = zip(*map(_finite_or_none, columns.values()), strict=True)
        of_parameters.append((labelled, tuple(columns), numbers))
    rows = []
    size = len(next(iter(next(iter(parameters.values())).values())))
    for cell in range(size):
        keys = {column: values[cell] for column, values in groups.items()}
        for labelled, names, numbers in of_parameters:
            rows += [{**keys, **label, **dict(zip(names, next(numbers), strict=True))} for label in labelled]
    return rows


def _finite_or_none(column: Floats) -> list[float | None]:
    """Return the numbers of all cells' entries, cell by cell, as ``finite`` has them."""
    numbers: list[float | None] = [*column.ravel().tolist()]
    for position in np.flatnonzero(~np.isfinite(column)).tolist():
        numbers[position] = None
    return numbers


def entry_labels(
    parameter: str, categories: Sequence[str], components: Mapping[str, Sequence[str]]
) -> tuple[str, Sequence[str]]:
    """Return the key that tells the entries of a parameter's last axis apart, and their names.

    The key is empty where no parameter has such an axis, the names where this one has none.
    """
    if components:
        return "component", components.get(parameter, ())
    return ("category" if categories else ""), categories


def finite(value: float) -> float | None:
    """Return a number that JSON can hold, or None."""
    return float(value) if math.isfinite(value) else None


def in_words(keys: Mapping[str, object]) -> str:
    """Return keys as a person writes them: ``origin=JFK, month=1``."""
    return ", ".join(f"{column}={key}" for column, key in keys.items())


def n_cells(groups: Groups) -> int:
    """The number of cells with these keys; one where there are no groups."""
    return len(next(iter(groups.values()))) if groups else 1


def _matches(groups: Groups, keys: Mapping[str, object], cell: int) -> bool:
    for column, key in keys.items():
        if column not in groups:
            message = f"there is no group {column!r}: the groups are {', '.join(groups) or 'none'}"
            raise UsageError(message)
        if str(groups[column][cell]) != str(key):
            return False
    return True


def require_interval(interval: str) -> str:
    """Return a kind of interval that there is.

    Raises
    ------
    UsageError
        Where there is none of that name.
    """
    if interval not in {CENTRAL, HIGHEST_DENSITY}:
        message = f"interval is {CENTRAL} or {HIGHEST_DENSITY}, not {interval!r}"
        raise UsageError(message)
    return interval


def require_share(name: str, value: float) -> float:
    """Return a number between 0 and 1.

    Raises
    ------
    UsageError
        Where it is none.
    """
    if not isinstance(value, Real) or not 0.0 < value < 1.0:
        message = f"{name} must lie between 0 and 1, and be one number, not {value!r}"
        raise UsageError(message)
    return value
