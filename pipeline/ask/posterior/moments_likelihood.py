r"""The released likelihood of a mean and a standard deviation, as an object.

Model. As in ``likelihood``, of a normal column, or of the logarithms of a lognormal one, with the latent
number, sum and sum of squares of the rows integrated out:

.. math:: \ell(\mu, \sigma) = \log p(y \mid \mu, \sigma) - \log p(y \mid \mu_0, \sigma_0), \qquad (1)

with the moments that were released, where these are possible, for :math:`\mu_0` and :math:`\sigma_0`.

Symbols:

- mu, sigma: ``mean`` and ``sd``, in the column's unit
- l: ``log_prob``, in nats

Method. The grids of ``mean_variance.likelihood``, cell by cell. The error of a value is what rougher grids
change (1) by, plus the part of the likelihood that rests on the outermost noise that the grids cover.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.any_prior import conjugate_default
from suffice.pipeline.ask.posterior.likelihood_files import (
    MOMENTS,
    as_list,
    from_lists,
    in_xarray,
    with_metadata,
    write_table,
)
from suffice.pipeline.ask.posterior.likelihood_tables import real_numbers
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.mean_variance.likelihood import (
    Fineness,
    LatentRows,
    TooManyError,
)
from suffice.pipeline.math.engines.mean_variance.slices import Slice
from suffice.pipeline.math.priors.record_count import parse_n_prior

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike

    import pyarrow as pa

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

_ROUGH = Fineness(finest=0.3, growth=0.12, coarsest=1.6, of_rows=24.0, of_few=5.0, wider=3.0, beside=0.8)
_DEPTH = 28.0
_OF_POINTS = ("n", "alpha", "mean", "blur", "log_e", "weight")
_ROOM = 5e7
"""Densities of one cell, beyond which its noise is too wide to be looked at point by point."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MomentsLikelihood:
    """The log likelihood of a mean and a standard deviation in every cell of a released statistic.

    Attributes
    ----------
    statistic, family : str
    parameters : tuple of str
        Names of the mean and the standard deviation.
    groups : dict of str to list
        The key of each cell, by group column.
    n_prior : NPrior
        The prior of N; a fixed number where N is public.
    centre, half_range : float
        Of the bounds, in the unit of the parameters.
    fine, rough : tuple of LatentRows
        One a cell.
    middle : ndarray, float64
        Of each cell, the mean and the log variance, in half ranges, at which ``log_prob`` is 0.
    """

    statistic: str
    family: str
    parameters: tuple[str, str]
    groups: Mapping[str, list[str | int]] = field(repr=False)
    n_prior: NPrior
    centre: float
    half_range: float
    fine: tuple[LatentRows, ...] = field(repr=False)
    rough: tuple[LatentRows, ...] = field(repr=False)
    middle: Floats = field(repr=False)

    def __len__(self) -> int:
        """Return how many cells there are."""
        return len(self.fine)

    def __repr__(self) -> str:
        return (
            f"<Likelihood of {' and '.join(self.parameters)} of {self.statistic} ({self.family}): "
            f"{len(self)} cells, errors by log_prob_and_error>"
        )

    @property
    def error_text(self) -> str:
        """How far values are from exact, in words."""
        return "error: of each value by log_prob_and_error, some .01 to .05 nats near the highest"

    def log_prob(self, mean: Any, sd: Any) -> Floats:
        """Return log likelihoods, (n_cells, n), relative to that of the released moments.

        Parameters
        ----------
        mean, sd : float, or array of float64
            Pairs of a mean and a standard deviation above 0, in the column's unit, or of its logarithms where
            it is lognormal: the same for all cells, (n,), or each cell's own, (n_cells, n).

        Raises
        ------
        UsageError
            Where an array has another shape, or is not of finite numbers, or a standard deviation is not
            above 0.
        """
        return self.log_prob_and_error(mean, sd)[0]

    def log_prob_and_error(self, mean: Any, sd: Any) -> tuple[Floats, Floats]:
        """Return log likelihoods and what they may miss by, (n_cells, n) each, in nats.

        Parameters and errors are those of ``log_prob``.
        """
        first, second = np.atleast_1d(real_numbers(mean, "mean")), np.atleast_1d(real_numbers(sd, "sd"))
        try:
            shape = np.broadcast_shapes(first.shape, second.shape)
            shape = np.broadcast_shapes(shape, (len(self), shape[-1]))
        except ValueError:
            shape = ()
        if len(shape) != 2 or shape[0] != len(self):
            message = (
                f"mean and sd have to be of shape (n,) or ({len(self)}, n), not {first.shape} and "
                f"{second.shape}"
            )
            raise UsageError(message)
        if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second)) and np.all(second > 0.0)):
            message = "mean and sd have to be finite numbers, and sd above 0"
            raise UsageError(message)
        mean = np.broadcast_to((first - self.centre) / self.half_range, shape)
        log_variance = np.broadcast_to(2.0 * np.log(second / self.half_range), shape)
        answers = [self._of_cell(cell, mean[cell], log_variance[cell]) for cell in range(len(self))]
        return np.stack([value for value, _ in answers]), np.stack([miss for _, miss in answers])

    def log_prob_jax(self, mean: Any, sd: Any) -> Any:
        """Return what :meth:`log_prob` returns, of arrays of JAX that may be traced; differentiable.

        Parameters
        ----------
        mean, sd : array
            As for ``log_prob``.

        Raises
        ------
        MissingExtraError
            Where JAX is not installed.
        UsageError
            Where an array has another shape, or JAX computes in 32 bits.
        """
        from suffice.pipeline.ask.posterior.likelihood_in_jax import of_moments  # JAX is slow to import

        return of_moments(self.fine, self.middle, (self.centre, self.half_range), mean, sd)

    def to_xarray(self) -> Any:
        """Return the likelihood as an ``xarray.Dataset``: what rows may have been, with its weights.

        One ``point`` is a mean and a log mean square deviation of a number of rows of a cell, in half ranges
        about ``centre``; ``is_fine`` is 0 of the rougher grids, which tell the error.

        Raises
        ------
        MissingExtraError
            Where xarray is not installed.
        """
        xarray = in_xarray("to_xarray()")
        points: dict[str, list[Any]] = {name: [] for name in ("cell", "is_fine", *_OF_POINTS)}
        for cell, is_fine, each in self._slices():
            shape = each.weight.shape
            flat = {
                "n": np.full(shape, each.n),
                "alpha": np.full(shape, each.alpha),
                "mean": np.broadcast_to(each.mean, shape),
                "blur": np.broadcast_to(each.blur, shape),
                "log_e": np.broadcast_to(each.log_e[:, None], shape),
                "weight": each.weight,
            }
            points["cell"].append(np.full(each.weight.size, cell))
            points["is_fine"].append(np.full(each.weight.size, is_fine))
            for name, values in flat.items():
                points[name].append(values.ravel())
        return xarray.Dataset(
            {
                **{name: ("points", np.concatenate(parts)) for name, parts in points.items()},
                "log_empty": ("cells", [rows.log_empty for rows in self.fine]),
                "middle": (("cells", "parameters"), self.middle),
            },
            coords={
                "parameters": list(self.parameters),
                **{f"group_{column}": ("cells", keys) for column, keys in self.groups.items()},
            },
            attrs=self._stated(),
        )

    def to_table(self) -> pa.Table:
        """Return the likelihood as a table of Arrow; see :meth:`to_parquet`."""
        rows = list(self._slices())
        columns: dict[str, Any] = {
            "cell": [cell for cell, _, _ in rows],
            "is_fine": [is_fine for _, is_fine, _ in rows],
            "n": [each.n for _, _, each in rows],
            "alpha": [each.alpha for _, _, each in rows],
            **{
                name: as_list(getattr(each, name) for _, _, each in rows)
                for name in ("mean", "blur", "log_e")
            },
            **{
                name: as_list(getattr(each, name).ravel() for _, _, each in rows)
                for name in ("weight", "is_outer")
            },
        }
        stated = {
            **self._stated(),
            "parameters": list(self.parameters),
            "groups": dict(self.groups),
            "middle": self.middle.tolist(),
            **{name: [_empty(each) for each in getattr(self, name)] for name in ("fine", "rough")},
        }
        return with_metadata(columns, MOMENTS, stated)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the likelihood to a new file, one row a number of rows; ``suffice.read_likelihood`` reads it.

        Columns: ``cell``; ``is_fine``, 0 of the rougher grids, which tell the error; ``n``, ``alpha``; and
        lists, ``mean``, ``blur``, ``log_e``, and of every pair of a deviation and a mean ``weight`` and
        ``is_outer``. Parameters are in half ranges about the centre; the metadata have the rest.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        UsageError
            Where there is such a file.
        """
        write_table(self.to_table(), path)

    @classmethod
    def of_table(cls, read: pa.Table, stated: Mapping[str, Any]) -> MomentsLikelihood:
        """Return the likelihood that :meth:`to_table` made a table of."""
        cell, is_fine, n, alpha = (
            read.column(name).to_pylist() for name in ("cell", "is_fine", "n", "alpha")
        )
        lists = {
            name: from_lists(read.column(name)) for name in ("mean", "blur", "log_e", "weight", "is_outer")
        }
        slices: dict[tuple[int, int], list[Slice]] = {}
        for row in range(read.num_rows):
            shape = (len(lists["log_e"][row]), len(lists["mean"][row]))
            slices.setdefault((cell[row], is_fine[row]), []).append(
                Slice(
                    n=n[row],
                    mean=lists["mean"][row],
                    blur=lists["blur"][row],
                    alpha=alpha[row],
                    log_e=lists["log_e"][row],
                    weight=lists["weight"][row].reshape(shape),
                    is_outer=lists["is_outer"][row].reshape(shape).astype(bool),
                )
            )

        def rows(name: str, is_fine: int) -> tuple[LatentRows, ...]:
            return tuple(
                LatentRows(slices=slices.get((number, is_fine), []), log_empty=float(empty), depth=depth)
                for number, (empty, depth) in enumerate(stated[name])
            )

        first, second = stated["parameters"]
        return cls(
            statistic=str(stated["statistic"]),
            family=str(stated["family"]),
            parameters=(str(first), str(second)),
            groups={str(column): list(keys) for column, keys in stated["groups"].items()},
            n_prior=parse_n_prior(stated["n_prior"]),
            centre=float(stated["centre"]),
            half_range=float(stated["half_range"]),
            fine=rows("fine", 1),
            rough=rows("rough", 0),
            middle=np.array(stated["middle"], dtype=np.float64),
        )

    def _slices(self) -> Iterator[tuple[int, int, Slice]]:
        for is_fine, cells in ((1, self.fine), (0, self.rough)):
            for cell, of_cell in enumerate(cells):
                for each in of_cell.slices:
                    yield cell, is_fine, each

    def _stated(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "family": self.family,
            "n_prior": str(self.n_prior),
            "centre": self.centre,
            "half_range": self.half_range,
        }

    def _of_cell(self, cell: int, mean: Floats, log_variance: Floats) -> tuple[Floats, Floats]:
        # The first point is that at which both grids are 0.
        places = np.column_stack([mean, log_variance])
        places = np.concatenate([self.middle[cell : cell + 1], places])[:, :, None]
        fine, rough = (
            rows[cell].log_likelihood(places[:, 0], places[:, 1])[:, 0, 0] for rows in (self.fine, self.rough)
        )
        outer = self.fine[cell].outer(places[:, 0], places[:, 1])[:, 0, 0]
        value = fine[1:] - fine[0]
        with np.errstate(invalid="ignore", over="ignore"):
            left_out = np.exp(outer - fine)
            miss = np.abs(rough[1:] - rough[0] - value) + left_out[1:] + left_out[0]
        return value, np.where(np.isnan(miss), np.inf, miss)


def _empty(rows: LatentRows) -> tuple[str, float]:
    """Return the log likelihood of no rows as text, which JSON has no number for, and the depth."""
    return repr(float(rows.log_empty)), rows.depth


def moments_likelihood(statistic: NoisyStatistic, n_prior: NPrior) -> MomentsLikelihood:
    """Return the likelihood of a mean and a standard deviation.

    Raises
    ------
    UsageError
        Where the noise of a cell is so wide that there would be too many sums.
    """
    plan = statistic.plan
    family = FAMILIES[plan.family]
    assert family.mean_and_variance is not None  # noqa: S101 - the caller chose it
    like = conjugate_default(family, plan.parameters)
    noisy = family.mean_and_variance.noisy(statistic, like, n_prior)
    fine, rough, middle = [], [], []
    for cell in range(len(statistic.values)):
        of_cell = noisy.take(np.array([cell]))
        try:
            fine.append(LatentRows.of(of_cell, _DEPTH, _ROOM))
            rough.append(LatentRows.of(of_cell, _DEPTH, _ROOM, fineness=_ROUGH))
        except TooManyError:
            message = (
                f"{plan.name}: the noise of a cell is so wide that its likelihood has too many sums. Leave "
                "it out with where, or ask for posteriors, or for suffice.numpyro.log_likelihood"
            )
            raise UsageError(message) from None
        n, total, squares = of_cell.estimates()[0]
        count = max(n, 1.0)
        average = float(np.clip(total / count, -1.0, 1.0))
        within = float(np.clip(squares / count - average**2, 1e-2, 1.0))
        middle.append([average, np.log(within)])
    centre, half_range = family.mean_and_variance.interval(plan.parameters)
    first, _ = (space.name for space in family.parameter_spaces(plan.parameters))
    return MomentsLikelihood(
        statistic=plan.name,
        family=plan.family,
        parameters=(first, first.replace("mean", "sd")),
        groups=statistic.groups,
        n_prior=n_prior,
        centre=centre,
        half_range=half_range,
        fine=tuple(fine),
        rough=tuple(rough),
        middle=np.array(middle),
    )
