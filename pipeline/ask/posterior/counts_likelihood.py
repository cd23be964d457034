r"""The released likelihood of the probabilities of a table of counts, as an object.

Model. As in ``likelihood``, of the probabilities :math:`p_1, \dots, p_K` of categories, or of a table's
entries, with latent counts and a latent N integrated out:

.. math:: \ell(p) = \log p(y \mid p). \qquad (1)

Symbols:

- p: ``probabilities``, on the last axis in the order of ``names``
- l: ``log_prob``, in nats

Method. ``several_counts``: each count has a table of its own, and (1) is one sum over the mean of N, worked
out where it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.counted_likelihood import constant_of, several_counts
from suffice.pipeline.ask.posterior.likelihood_files import (
    COUNTS,
    as_list,
    from_lists,
    in_xarray,
    with_metadata,
    write_table,
)
from suffice.pipeline.ask.posterior.likelihood_tables import real_numbers
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.several_counts import (
    POINTS,
    SPACING,
    STEP,
    CountTables,
    SeveralCounts,
    root_of,
)
from suffice.pipeline.math.priors.record_count import parse_n_prior
from suffice.pipeline.terms.statistics.count_table import entry_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pyarrow as pa

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

_ROUNDING = 1e-9
_DEPTH = 60.0
"""Single counts are tabulated to 100 nats, and terms that are 37 nats lower count."""
_TOGETHER = 1 << 18
"""Points that are worked out together."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CountsLikelihood:
    """The log likelihood of the probabilities of a table's entries in every cell of a released statistic.

    Attributes
    ----------
    statistic, family : str
    names : tuple of str
        Of the entries, in the order of their probabilities.
    groups : dict of str to list
        The key of each cell, by group column.
    n_prior : NPrior
        The prior of N.
    counts : SeveralCounts
    constant : float
        Added to every value.
    """

    statistic: str
    family: str
    names: tuple[str, ...]
    groups: Mapping[str, list[str | int]] = field(repr=False)
    n_prior: NPrior
    counts: SeveralCounts = field(repr=False)
    constant: float = field(repr=False)

    def __len__(self) -> int:
        """Return how many cells there are."""
        return len(self.counts.row)

    def __repr__(self) -> str:
        return (
            f"<Likelihood of {len(self.names)} probabilities of {self.statistic} ({self.family}): "
            f"{len(self)} cells, error at most {float(np.max(self.error)):.1g} nats>"
        )

    @property
    def error(self) -> Floats:
        """Nats that single counts' tables miss by, (n_cells,); ``log_prob_and_error`` adds what sums miss."""
        return self.counts.error

    @property
    def depth(self) -> Floats:
        """Nats below its highest value within which ``error`` holds, (n_cells,)."""
        return np.full(len(self), _DEPTH)

    @property
    def error_text(self) -> str:
        """How far values are from exact, in words."""
        worst = float(np.max(self.error))
        return (
            f"error: at most {worst:.2g} nats of single counts, to {_DEPTH:.3g} nats below the highest; "
            "log_prob_and_error adds what sums miss"
        )

    def log_prob(self, probabilities: Any) -> Floats:
        """Return log likelihoods, (n_cells, n), but for a constant of the release.

        Parameters
        ----------
        probabilities : array of float64
            The same for all cells, (n, K), or each cell's own, (n_cells, n, K): at least 0, with the sum 1.

        Raises
        ------
        UsageError
            Where the array has another shape, or its rows are no probabilities.
        """
        return self.log_prob_and_error(probabilities)[0]

    def log_prob_and_error(self, probabilities: Any) -> tuple[Floats, Floats]:
        """Return log likelihoods and what they may miss by, (n_cells, n) each, in nats.

        Parameters and errors are those of ``log_prob``.
        """
        cells, entries = len(self), len(self.names)
        given = real_numbers(probabilities, "probabilities")
        if (
            given.ndim not in {2, 3}
            or given.shape[-1] != entries
            or (given.ndim == 3 and len(given) != cells)
        ):
            message = (
                f"probabilities have to be of shape (n, {entries}) or ({cells}, n, {entries}), "
                f"not {given.shape}"
            )
            raise UsageError(message)
        if not np.all(given >= 0.0) or np.any(np.abs(np.sum(given, axis=-1) - 1.0) > _ROUNDING):
            message = "probabilities have to be at least 0, with the sum 1 on the last axis"
            raise UsageError(message)
        with np.errstate(divide="ignore"):
            log_probability = np.log(given)
        shape = (cells, given.shape[-2])
        value, miss = np.empty(shape[0] * shape[1]), np.empty(shape[0] * shape[1])
        flat = log_probability.reshape(-1, entries)
        for first in range(0, len(value), _TOGETHER):
            part = np.arange(first, min(first + _TOGETHER, len(value)))
            cell, point = np.divmod(part, shape[1])
            value[part], miss[part] = self.counts.log_likelihood(
                cell, flat[part if given.ndim == 3 else point]
            )
        return (value + self.constant).reshape(shape), miss.reshape(shape) + self.error[:, None]

    def log_prob_jax(self, probabilities: Any) -> Any:
        """Return what :meth:`log_prob` returns, of an array of JAX that may be traced; differentiable.

        Every node of the sum over the mean of N is worked out: some hundred a cell, and with the root of its
        count more.

        Parameters
        ----------
        probabilities : array
            As for ``log_prob``; that they add up to 1 is the caller's business.

        Raises
        ------
        MissingExtraError
            Where JAX is not installed.
        UsageError
            Where the array has another shape, or JAX computes in 32 bits.
        """
        from suffice.pipeline.ask.posterior.likelihood_in_jax import of_counts  # JAX is slow to import

        return of_counts(self.counts, probabilities) + self.constant

    def to_xarray(self) -> Any:
        """Return the likelihood as an ``xarray.Dataset``: tables of counts, and nodes over the mean of N.

        ``count`` says which count a value is of, ``place`` where it stands, s of ``several_counts``, and
        ``powers`` are of the way to the next value; ``row`` is the count of each cell's entry; ``log_weight``
        that of each ``node``.

        Raises
        ------
        MissingExtraError
            Where xarray is not installed.
        """
        xarray = in_xarray("to_xarray()")
        counts, tables = self.counts, self.counts.tables
        count = np.repeat(np.arange(len(tables.length)), tables.length)
        step = np.arange(len(count)) - np.repeat(tables.start, tables.length)
        return xarray.Dataset(
            {
                "count": ("values", count),
                "place": ("values", tables.first[count] + SPACING * step),
                "powers": (("values", "power"), tables.powers.T),
                "row": (("cells", "entries"), counts.row),
                "error": ("cells", self.error),
                "node": ("nodes", STEP * np.arange(counts.lowest, counts.lowest + len(counts.root))),
                "log_weight": ("nodes", counts.log_weight),
            },
            coords={
                "entries": list(self.names),
                **{f"group_{column}": ("cells", keys) for column, keys in self.groups.items()},
            },
            attrs={
                "statistic": self.statistic,
                "family": self.family,
                "n_prior": str(self.n_prior),
                "constant": self.constant,
            },
        )

    def to_table(self) -> pa.Table:
        """Return the likelihood as a table of Arrow; see :meth:`to_parquet`."""
        counts, tables = self.counts, self.counts.tables
        ends = np.cumsum(tables.length)[:-1]
        columns: dict[str, Any] = {
            "first": tables.first,
            "values": as_list(np.split(tables.values, ends)),
            **{f"a{power}": as_list(np.split(column, ends)) for power, column in enumerate(tables.powers)},
            "top": tables.top,
            "error": tables.error,
        }
        stated = {
            "statistic": self.statistic,
            "family": self.family,
            "names": list(self.names),
            "groups": dict(self.groups),
            "n_prior": str(self.n_prior),
            "constant": self.constant,
            "row": counts.row.tolist(),
            "lowest": counts.lowest,
            "last": counts.last.tolist(),
            "log_weight": counts.log_weight.tolist(),
        }
        return with_metadata(columns, COUNTS, stated)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the likelihood to a new file, one row a distinct count; ``suffice.read_likelihood`` reads it.

        Columns: ``first``, the place of the first value; ``values`` and ``a0`` to ``a5``, lists of log
        likelihoods and of the polynomials between them; ``top``, ``error``. The metadata have the rest.

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
    def of_table(cls, read: pa.Table, stated: Mapping[str, Any]) -> CountsLikelihood:
        """Return the likelihood that :meth:`to_table` made a table of."""
        values = from_lists(read.column("values"))
        length = np.array([len(each) for each in values], dtype=np.int64)
        powers = [np.concatenate(from_lists(read.column(f"a{power}"))) for power in range(POINTS)]
        tables = CountTables(
            first=read.column("first").to_numpy(),
            start=np.concatenate([[0], np.cumsum(length)[:-1]]),
            length=length,
            values=np.concatenate(values),
            powers=np.stack(powers),
            top=read.column("top").to_numpy(),
            error=read.column("error").to_numpy(),
        )
        log_weight = np.array(stated["log_weight"], dtype=np.float64)
        root = root_of(
            STEP * np.arange(stated["lowest"], stated["lowest"] + len(log_weight), dtype=np.float64)
        )
        return cls(
            statistic=str(stated["statistic"]),
            family=str(stated["family"]),
            names=tuple(stated["names"]),
            groups={str(column): list(keys) for column, keys in stated["groups"].items()},
            n_prior=parse_n_prior(stated["n_prior"]),
            counts=SeveralCounts(
                tables=tables,
                row=np.array(stated["row"], dtype=np.int64),
                lowest=int(stated["lowest"]),
                last=np.array(stated["last"], dtype=np.int64),
                root=root,
                log_root=np.log(root),
                log_weight=log_weight,
            ),
            constant=float(stated["constant"]),
        )


def counts_likelihood(statistic: NoisyStatistic, n_prior: NPrior) -> CountsLikelihood:
    """Return the likelihood of a table's probabilities.

    Raises
    ------
    UsageError
        Where the prior of N is no mixture of Poisson laws, or ends near what was released.
    """
    plan = statistic.plan
    counts = several_counts(statistic, n_prior)
    if counts is None:
        message = (
            f"{plan.name}: a likelihood of {plan.family} needs a private N with the prior Reciprocal(max) or "
            "Uniform(0, max), whose max is far above all counts, and noise that is not far wider than they "
            f"are; not {n_prior}. suffice.numpyro.log_likelihood takes others"
        )
        raise UsageError(message)
    family = FAMILIES[plan.family]
    return CountsLikelihood(
        statistic=plan.name,
        family=plan.family,
        names=entry_names(family.labels(plan.parameters)),
        groups=statistic.groups,
        n_prior=n_prior,
        counts=counts,
        constant=constant_of(statistic, n_prior),
    )
