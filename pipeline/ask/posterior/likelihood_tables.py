r"""Tabulated log likelihoods of one parameter, as they are taken away: to JAX, arrays, xarray and Parquet.

Model. At the position x of a parameter, its logit, logarithm or itself, the panel of a cell is the last one
with ``left <= x``, and

.. math:: \ell = \sum_{k = 0}^8 a_k v^k + \min\bigl((a_1 + a_3 + a_5 + a_7) (u - v), 0\bigr), \qquad
    u = \frac{2 x - \text{left} - \text{right}}{\text{right} - \text{left}}, \qquad
    v = \min(\max(u, -1), 1). \qquad (1)

The second term is 0 but beyond the outermost panels.

Symbols:

- x: ``position``; a: ``powers``
- l: ``log_prob``, in nats, but for a constant of the release

Method. A file in Parquet has one row a panel, all numbers as float64 or int64 and texts, plainly encoded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.any_prior import LINES
from suffice.pipeline.ask.inference.tabled_likelihood import LikelihoodTable
from suffice.pipeline.ask.posterior.likelihood_files import (
    TABLES,
    in_xarray,
    read_table,
    with_metadata,
    write_table,
)
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.tabulated import DEGREE, Table
from suffice.pipeline.math.priors.record_count import parse_n_prior

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pyarrow as pa

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats

_OF_CELLS = ("top", "error", "depth")
_POWERS = tuple(f"a{power}" for power in range(DEGREE + 1))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LikelihoodTables:
    """The log likelihood of one parameter in every cell of a released statistic, as tables alone.

    Attributes
    ----------
    statistic, family : str
    parameter : str
        Its name.
    groups : dict of str to list
        The key of each cell, by group column.
    n_prior : NPrior
        The prior of N; a fixed number where N is public.
    tables : LikelihoodTable
    """

    statistic: str
    family: str
    parameter: str
    groups: Mapping[str, list[str | int]] = field(repr=False)
    n_prior: NPrior
    tables: LikelihoodTable = field(repr=False)

    def __len__(self) -> int:
        """Return how many cells there are."""
        return self.tables.table.n_cells

    def __repr__(self) -> str:
        worst = float(np.max(self.error))
        return (
            f"<Likelihood of {self.parameter} of {self.statistic} ({self.family}): {len(self)} cells, "
            f"error at most {worst:.1g} nats>"
        )

    @property
    def depth(self) -> Floats:
        """Nats below its highest value within which ``error`` holds, (n_cells,); beyond, values are low."""
        return self.tables.depth

    @property
    def error(self) -> Floats:
        """Nats that ``log_prob`` misses by, as seen at points that were not fitted, (n_cells,)."""
        return self.tables.error

    @property
    def line(self) -> Line:
        """How the parameter is mapped to the line that tables are of."""
        return LINES[FAMILIES[self.family].prior]

    def log_prob(self, theta: Any) -> Floats:
        """Return log likelihoods, (n_cells, n), but for a constant of the release.

        Parameters
        ----------
        theta : float, or array of float64
            Values of the parameter: the same for all cells, (n,), or each cell's own, (n_cells, n). Outside
            of where the parameter can be, the log likelihood is minus infinity.

        Raises
        ------
        UsageError
            Where it is no array of real numbers, has another shape, or NaN.
        """
        value = real_numbers(theta, "theta")
        self._require_shape(value.shape)
        if np.any(np.isnan(value)):
            message = "theta has to be numbers, and holds NaN"
            raise UsageError(message)
        value = np.broadcast_to(np.atleast_1d(value), (len(self), *np.atleast_1d(value).shape[-1:]))
        low, high = self.line.domain
        inside = (value >= low) & (value <= high)
        position = np.clip(self.line.position(np.clip(value, low, high)), *self.line.ends)
        return np.where(inside, self.tables.table(np.arange(len(self))[:, None], position), -np.inf)

    def _require_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) > 2 or (len(shape) == 2 and shape[0] not in {1, len(self)}):
            message = f"theta has to be of shape (n,) or ({len(self)}, n), not {shape}"
            raise UsageError(message)

    def log_prob_jax(self, theta: Any) -> Any:
        """Return what :meth:`log_prob` returns, of an array of JAX that may be traced; differentiable.

        Parameters
        ----------
        theta : array
            As for ``log_prob``. In a model that has one parameter a cell, ``theta[:, None]``.

        Raises
        ------
        MissingExtraError
            Where JAX is not installed.
        UsageError
            Where the array has another shape, or JAX computes in 32 bits.
        """
        from suffice.pipeline.ask.posterior.likelihood_in_jax import jax_numpy  # JAX is slow to import

        _, jnp = jax_numpy()
        value = jnp.atleast_1d(jnp.asarray(theta, dtype=jnp.float64))
        self._require_shape(value.shape)
        value = jnp.broadcast_to(value, (len(self), value.shape[-1]))
        low, high = self.line.domain
        inside = (value >= low) & (value <= high)
        # Gradients at the ends would not be finite, and a choice between two has both.
        tiny = np.finfo(np.float64).tiny
        safe = jnp.clip(value, low + tiny, high - 2.0**-53)
        position = {
            Line.LOGIT: lambda: jnp.log(safe) - jnp.log1p(-safe),
            Line.LOGARITHM: lambda: jnp.log(safe),
            Line.IDENTITY: lambda: safe,
        }[self.line]()
        arrays = self.to_arrays()
        # (1).
        panel = jnp.sum(arrays["left"][:, None, :] <= position[:, :, None], axis=-1) - 1
        row = jnp.arange(len(self))[:, None]
        panel = jnp.maximum(panel, 0)
        left, right = jnp.asarray(arrays["left"])[row, panel], jnp.asarray(arrays["right"])[row, panel]
        powers = jnp.asarray(arrays["powers"])[row, panel]
        place = (2.0 * position - left - right) / (right - left)
        within = jnp.clip(place, -1.0, 1.0)
        total = powers[..., DEGREE]
        for power in range(DEGREE - 1, -1, -1):
            total = total * within + powers[..., power]
        rise = jnp.sum(powers[..., 1::2], axis=-1)
        return jnp.where(inside, total + jnp.minimum(rise * (place - within), 0.0), -jnp.inf)

    def to_arrays(self) -> dict[str, Any]:
        """Return the tables as arrays in which every cell has equally many panels, for other samplers.

        Returns
        -------
        dict of str to ndarray
            ``left`` and ``right``, one row a cell and one column a panel, and ``powers``, with the nine
            coefficients of (1) on the last axis. Panels that a cell does not have begin at infinity.
        """
        table = self.tables.table
        count = np.diff(table.start)
        place = np.arange(int(np.max(count))) < count[:, None]
        left, right = np.full(place.shape, np.inf), np.full(place.shape, np.inf)
        powers = np.zeros((*place.shape, DEGREE + 1))
        left[place], right[place], powers[place] = table.left, table.right, table.powers
        return {"left": left, "right": right, "powers": powers}

    def to_xarray(self) -> Any:
        """Return the tables as an ``xarray.Dataset``: (1) of the panels of each cell.

        ``cell`` says which cell a panel is of, and ``is_fine`` where ``error`` holds; the attribute ``line``
        how positions are got; ``group_`` and a group column's name has the key of every cell.

        Raises
        ------
        MissingExtraError
            Where xarray is not installed.
        """
        xarray = in_xarray("to_xarray()")
        table = self.tables.table
        of_panels = {"cell": table.cell, "left": table.left, "right": table.right, "is_fine": table.is_fine}
        return xarray.Dataset(
            {
                **{name: ("cells", column) for name, column in self._of_cells().items()},
                **{name: ("panels", column) for name, column in of_panels.items()},
                "powers": (("panels", "power"), table.powers),
            },
            coords={f"group_{column}": ("cells", keys) for column, keys in self.groups.items()},
            attrs=self._stated(),
        )

    def to_table(self) -> pa.Table:
        """Return the tables as one of Arrow, one row a panel; see :meth:`to_parquet`."""
        import pyarrow as pa

        table = self.tables.table
        cell = table.cell
        columns: dict[str, Any] = {
            "cell": pa.array(cell, pa.int64()),
            "left": table.left,
            "right": table.right,
            "is_fine": pa.array(table.is_fine.astype(np.int64)),
            **{name: table.powers[:, power] for power, name in enumerate(_POWERS)},
            **{name: column[cell] for name, column in self._of_cells().items()},
            "line": [str(self.line)] * len(cell),
        }
        for column, keys in self.groups.items():
            columns[f"group_{column}"] = [keys[number] for number in cell.tolist()]
        return with_metadata(columns, TABLES, self._stated())

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the tables to a new file, one row a panel, from which R, JavaScript and others read them.

        Columns: ``cell``, ``left``, ``right``, ``is_fine`` (1 where ``error`` holds), ``a0`` to ``a8`` as in
        (1), ``top``, ``error`` and ``depth`` of the cell, ``line``, and ``group_`` and a group column's name.

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
    def read_parquet(cls, path: str | PathLike[str]) -> LikelihoodTables:
        """Return the tables that :meth:`to_parquet` wrote.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        UsageError
            Where the file is none of these.
        """
        try:
            read, stated = read_table(path)
            if stated.get("kind", TABLES) != TABLES:
                message = f"{path} is a likelihood of several parameters: suffice.read_likelihood reads it"
                raise UsageError(message)
            return cls.of_table(read, stated)
        except (OSError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, UsageError):
                raise
            message = f"{path} is no likelihood that to_parquet wrote, or cannot be read"
            raise UsageError(message) from None

    @classmethod
    def of_table(cls, read: pa.Table, stated: Mapping[str, Any]) -> LikelihoodTables:
        """Return the likelihood that :meth:`to_table` made a table of."""
        return _of_columns(read, stated)

    @property
    def error_text(self) -> str:
        """How far values are from exact, in words."""
        worst, depth = float(np.max(self.error)), float(np.min(self.depth))
        return f"error: at most {worst:.2g} nats, as far as {depth:.3g} nats below the highest"

    def _of_cells(self) -> dict[str, Floats]:
        return {"top": self.tables.table.top, "error": self.error, "depth": self.depth}

    def _stated(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "family": self.family,
            "parameter": self.parameter,
            "line": str(self.line),
            "n_prior": str(self.n_prior),
        }


def real_numbers(given: Any, name: str) -> Floats:
    """Return an array of real numbers; of texts, complex numbers and the like there is none."""
    try:
        array = np.asarray(given)
    except ValueError:  # rows of several lengths
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        message = f"{name} has to be a real number or an array of real numbers"
        raise UsageError(message)
    return array.astype(np.float64)


def _of_columns(read: Any, stated: Mapping[str, Any]) -> LikelihoodTables:
    """Return tables of the columns of a file."""

    def column(name: str) -> Any:
        return read.column(name).to_numpy()

    cell = column("cell").astype(np.int64)
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    if not len(cell) or np.any(cell[first] != np.arange(len(first))):
        message = "cells are not numbered from 0 on"
        raise ValueError(message)
    of_cells = {name: column(name)[first].astype(np.float64) for name in _OF_CELLS}
    table = Table(
        start=np.append(first, len(cell)),
        left=column("left"),
        right=column("right"),
        powers=np.stack([column(name) for name in _POWERS], axis=1),
        is_fine=column("is_fine").astype(bool),
        top=of_cells["top"],
        error=of_cells["error"],
    )
    if FAMILIES[stated["family"]].latent is None:
        message = "the family has several parameters"
        raise ValueError(message)
    return LikelihoodTables(
        statistic=str(stated["statistic"]),
        family=stated["family"],
        parameter=str(stated["parameter"]),
        groups={
            name.removeprefix("group_"): read.column(name).take(first).to_pylist()
            for name in read.column_names
            if name.startswith("group_")
        },
        n_prior=parse_n_prior(stated["n_prior"]),
        tables=LikelihoodTable(table=table, depth=of_cells["depth"], error=of_cells["error"]),
    )
