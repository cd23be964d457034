r"""Log emissions of all cells as functions of a hidden Markov model's parameters.

Categories of all features stand side by side, (n_columns,). Given the state and the expected number of rows
of a cell they are independent, so that the same terms are summed by cell and state, by cell, or by state and
category. Of released counts of 0 and less a log emission is a linear function of the expected count: these
are summed by products of matrices; the others come from tables.

Exact counts behind released ones are drawn independently, given y, mu and the noise:

.. math:: P(n \mid y) \propto \mathrm{Pois}(n; \mu)\, q^{|y - n|}

Of y <= 0 that is Poisson(mu q). Of other y and a small mu a draw of Poisson(mu/q) is kept with chance
:math:`q^{2 \max(n - y, 0)}`. Elsewhere the law is drawn by rejection: its log is concave, so that it is
nowhere above its mode, and beyond any point falls at least as fast as there. All three are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.models.emission_table import EmissionTable, log_noise_at_zero

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.chain_tables import CountsOverTime
    from suffice.typing import Counts, Floats, Mask, Rows

_SMALL = 1.0
_LOG_FACTORIALS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, 1 << 13)))])


def draw_latent_counts(released: Counts, expected: Floats, scale: float, rng: np.random.Generator) -> Counts:
    """Draw an exact count for each released one.

    Parameters
    ----------
    released : ndarray of shape (n,), int64
        y; at scale 0 the exact counts themselves.
    expected : ndarray of shape (n,), float64
        mu > 0, up to 1e15.
    scale : float, >= 0
        b of the noise.
    rng : numpy.random.Generator
    """
    if scale == 0.0:
        return released.copy()
    stretched = expected * np.exp(min(1.0 / scale, 600.0))
    is_above = released > 0
    is_many = is_above & (stretched > _SMALL)
    rate = np.where(is_above, stretched, expected * np.exp(-1.0 / scale))
    # Nothing is drawn of a rate of 0: the third kind follows below.
    drawn: Counts = np.asarray(rng.poisson(np.where(is_many, 0.0, rate)), dtype=np.int64)
    _redraw_above(drawn, np.flatnonzero(is_above & ~is_many), released, rate, scale, rng)
    many = np.flatnonzero(is_many)
    drawn[many] = _draw_log_concave(released[many], expected[many], stretched[many], scale, rng)
    return drawn


def _redraw_above(
    drawn: Counts, few: Rows, released: Counts, rate: Floats, scale: float, rng: np.random.Generator
) -> None:
    """Keep counts above the released one by chance, and draw the others anew until they are kept."""
    left = few[drawn[few] > released[few]]
    while len(left):
        excess = drawn[left] - released[left]
        left = left[rng.standard_exponential(len(left)) * scale < 2.0 * excess]
        drawn[left] = rng.poisson(rate[left])
        left = left[drawn[left] > released[left]]


def _draw_log_concave(
    released: Counts, expected: Floats, stretched: Floats, scale: float, rng: np.random.Generator
) -> Counts:
    """Draw by rejection from a flat middle with a geometric tail on either side."""
    y, log_rate, tilt = released, np.log(expected), 1.0 / scale
    shrunken = expected * np.exp(-tilt)
    # Of y the nearest between the modes that it would have with all of the noise on either side.
    lower, upper = np.floor(shrunken), np.floor(np.minimum(stretched, 2.0**62))
    mode = np.clip(y, lower.astype(np.int64), upper.astype(np.int64))

    def fall_up(n: Counts) -> Floats:
        """Return how much the log falls from n to n + 1."""
        fall: Floats = np.log(n + 1.0) - log_rate + np.where(n < y, -tilt, tilt)
        return fall

    def fall_down(n: Counts) -> Floats:
        """Return how much the log falls from n to n - 1; infinitely from 0."""
        with np.errstate(divide="ignore"):
            fall: Floats = log_rate - np.log(np.maximum(n, 0)) + np.where(n > y, -tilt, tilt)
        return fall

    # About where the log has fallen by 1; any distance above 0 is right.
    slope_up, slope_down = np.maximum(fall_up(mode), 0.0), np.maximum(fall_down(mode), 0.0)
    wide_up = 2.0 / (slope_up + np.sqrt(slope_up**2 + 2.0 / (mode + 1.0)))
    wide_down = 2.0 / (slope_down + np.sqrt(slope_down**2 + 2.0 / np.maximum(mode, 1.0)))
    right = mode + np.ceil(wide_up).astype(np.int64)
    left = np.maximum(mode - np.maximum(np.ceil(wide_down), 1.0).astype(np.int64), -1)
    height = _log_weight(mode, y, log_rate, tilt)
    # Nothing is below 0: there the fall is infinite.
    rate_up, rate_down = fall_up(right), np.minimum(fall_down(left), 700.0)
    height_up = _log_weight(right, y, log_rate, tilt) - height
    height_down = np.where(left < 0, -np.inf, _log_weight(np.maximum(left, 0), y, log_rate, tilt) - height)
    middle = (right - left - 1).astype(np.float64)
    up = middle + np.exp(height_up) / -np.expm1(-rate_up)
    total = up + np.exp(height_down) / -np.expm1(-rate_down)

    drawn, open_rows = np.empty_like(y), np.arange(len(y))
    while len(open_rows):
        rows = open_rows
        place, step = rng.random(len(rows)) * total[rows], rng.standard_exponential(len(rows))
        in_middle, is_up = place < middle[rows], place < up[rows]
        rate = np.where(is_up, rate_up[rows], rate_down[rows])
        away = np.floor(step / rate)
        proposed = np.where(is_up, right[rows] + away, left[rows] - away)
        proposed = np.where(in_middle, left[rows] + 1 + np.floor(place), proposed).astype(np.int64)
        hat = np.where(is_up, height_up[rows], height_down[rows]) - away * rate
        hat = np.where(in_middle, 0.0, hat)
        weight = _log_weight(np.maximum(proposed, 0), y[rows], log_rate[rows], tilt) - height[rows]
        kept = (rng.standard_exponential(len(rows)) > hat - weight) & (proposed >= 0)
        drawn[rows[kept]] = proposed[kept]
        open_rows = rows[~kept]
    return drawn


def _log_weight(count: Counts, released: Counts, log_rate: Floats, tilt: float) -> Floats:
    weight: Floats = count * log_rate - _log_factorial(count) - np.abs(count - released) * tilt
    return weight


def _log_factorial(count: Counts) -> Floats:
    if not len(count) or count.max() < len(_LOG_FACTORIALS):
        return _LOG_FACTORIALS.take(count)
    from scipy.special import gammaln

    factorial: Floats = gammaln(count + 1.0)
    return factorial


_ELEMENTS = 1 << 15
"""At once, so that what is between stays near the processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositiveCounts:
    """Released counts above 0 behind one noise, of observed cells, in the order of the cells.

    Attributes
    ----------
    table : EmissionTable
        One row a count.
    cells, columns : ndarray of shape (n_counts,), int64
        The cell, restart by restart, and where theta of state 0 stands among all of the restarts.
    firsts, own_cells : ndarray of shape (n_cells_with_any,), int64
        The first count of each cell that has any, and that cell.
    """

    table: EmissionTable
    cells: Rows
    columns: Rows
    firsts: Rows
    own_cells: Rows

    @classmethod
    def of(cls, released: Counts, chosen: Mask, scale: float, n_states: int) -> PositiveCounts:
        """Tabulate the chosen ones of released counts, (n_restarts, n_cells, n_columns)."""
        restart, cell, column = np.nonzero(chosen)
        _, n_cells, n_columns = released.shape
        values, rows = np.unique(released[chosen], return_inverse=True)
        cells = restart * n_cells + cell
        firsts = np.flatnonzero(np.diff(cells, prepend=-1))
        return cls(
            table=EmissionTable.of(values, scale).take(rows),
            cells=cells,
            columns=restart * (n_states * n_columns) + column,
            firsts=firsts,
            own_cells=cells[firsts],
        )

    def parts(self) -> Iterator[slice]:
        """Go through all counts, some at a time."""
        return (slice(start, start + _ELEMENTS) for start in range(0, len(self.cells), _ELEMENTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEmissions:
    """Log emissions of every cell, with n_columns categories in all.

    Attributes
    ----------
    released : ndarray of shape (n_restarts, n_cells, n_columns), int64
        0 in cells that are not observed.
    is_observed : ndarray of shape (n_restarts, n_cells), bool
    scales : ndarray of shape (n_columns,), float64
    starts : ndarray of shape (n_features,), int64
        The first category of each feature.
    positive : tuple of PositiveCounts
        One a scale above 0.
    decline : ndarray of shape (n_restarts, n_cells, n_columns), float64
        How fast a log emission falls with mu where it is linear but for ``exact``.
    exact : ndarray of shape (n_restarts, n_cells, n_columns), float64, or None
        Counts without noise: how often log mu is added.
    constant : ndarray of shape (n_restarts, n_cells), float64
        What depends on no parameter.
    noisy_places : tuple of (float, ndarray of int64)
        Scales above 0, and where the observed counts behind each stand in `released`: those above 0, and
        the others.
    """

    released: Counts
    is_observed: Mask
    scales: Floats
    starts: Rows
    positive: tuple[PositiveCounts, ...]
    decline: Floats
    exact: Floats | None
    constant: Floats
    noisy_places: tuple[tuple[float, Rows], ...]

    @classmethod
    def of(cls, tables: Sequence[CountsOverTime], n_states: int) -> CellEmissions:
        """Take one table for each restart, of one shape and of the same scales."""
        from scipy.special import gammaln

        sizes = [counts.shape[-1] for counts in tables[0].counts]
        observed = np.stack([table.is_observed.ravel() for table in tables])
        released = np.stack(
            [np.concatenate([c.reshape(-1, c.shape[-1]) for c in table.counts], axis=1) for table in tables]
        ).astype(np.int64)
        released *= observed[..., None]
        scales = np.repeat(np.array(tables[0].scales, dtype=np.float64), sizes)
        noisy = scales > 0.0
        zero = np.array([log_noise_at_zero(scale) for scale in scales.tolist()])
        rate = np.divide(1.0, scales, out=np.zeros_like(scales), where=noisy)
        is_linear = observed[..., None] & ((released <= 0) | ~noisy)
        constant = np.where(is_linear & noisy, zero + released * rate, 0.0)
        constant -= np.where(is_linear & ~noisy, gammaln(np.maximum(released, 0) + 1.0), 0.0)
        return cls(
            released=released,
            is_observed=observed,
            scales=scales,
            starts=np.cumsum([0, *sizes[:-1]]),
            positive=tuple(
                PositiveCounts.of(released, (released > 0) & (scales == scale), scale, n_states)
                for scale in np.unique(scales[noisy]).tolist()
            ),
            decline=np.where(is_linear, np.where(noisy, -np.expm1(-rate), 1.0), 0.0),
            exact=None if noisy.all() else np.where(noisy, 0.0, released),
            constant=constant.sum(axis=-1),
            noisy_places=tuple(
                (scale, np.flatnonzero(observed[..., None] & (scales == scale) & chosen))
                for scale in np.unique(scales[noisy]).tolist()
                for chosen in (released > 0, released <= 0)
            ),
        )

    def by_state(self, theta: Floats, expected_rows: Floats) -> Floats:
        """Return the log emission of every cell in every state, (n_restarts, n_cells, K).

        Parameters
        ----------
        theta : ndarray of shape (n_restarts, K, n_columns), float64
        expected_rows : ndarray of shape (n_restarts, n_cells), float64
            Lambda.
        """
        n_restarts, n_states, n_columns = theta.shape
        log_emission = np.zeros((n_states, expected_rows.size))
        root_rows, root_theta = np.sqrt(expected_rows).ravel(), np.sqrt(theta).ravel()
        for positive in self.positive:
            value = np.empty(len(positive.cells))
            root = root_rows.take(positive.cells)
            for state in range(n_states):
                of_state = root_theta[state * n_columns :]
                for part in positive.parts():
                    at = of_state.take(positive.columns[part])
                    at *= root[part]
                    value[part] = positive.table.log_emission(at, part)
                log_emission[state, positive.own_cells] += np.add.reduceat(value, positive.firsts)
        by_state: Floats = np.ascontiguousarray(log_emission.T).reshape(n_restarts, -1, n_states)
        by_state -= (self.decline @ theta.swapaxes(1, 2)) * expected_rows[..., None]
        by_state += self.constant[..., None]
        if self.exact is not None:
            by_state += self.exact @ np.log(theta).swapaxes(1, 2)
            by_state += (self.exact.sum(axis=-1) * np.log(expected_rows))[..., None]
        return by_state

    def by_cell(self, theta: Floats, states: NDArray[np.int64], expected_rows: Floats) -> Floats:
        """Return the log emission of every cell in its own state, (n_restarts, n_cells)."""
        theta_of_cells = _of_cells(theta, states)
        log_emission: Floats = self.constant - expected_rows * np.einsum(
            "rcj,rcj->rc", self.decline, theta_of_cells
        )
        for positive, value in self._terms(theta, states, expected_rows):
            log_emission.reshape(-1)[positive.own_cells] += np.add.reduceat(value, positive.firsts)
        if self.exact is not None:
            log_emission += np.einsum("rcj,rcj->rc", self.exact, np.log(theta_of_cells))
            log_emission += self.exact.sum(axis=-1) * np.log(expected_rows)
        return log_emission

    def by_category(self, theta: Floats, states: NDArray[np.int64], expected_rows: Floats) -> Floats:
        """Return sums over the cells in a state, by state and category, (n_restarts, K, n_columns).

        What does not depend on theta is left out.
        """
        n_states, n_columns = theta.shape[1:]
        member = (states[:, None] == np.arange(n_states)[:, None]).astype(np.float64)
        gradient: Floats = -theta * ((member * expected_rows[:, None]) @ self.decline)
        if self.exact is not None:
            gradient += (member @ self.exact) * np.log(theta)
        for positive, value in self._terms(theta, states, expected_rows):
            place = positive.columns + (states * n_columns).ravel().take(positive.cells)
            gradient += np.bincount(place, value, theta.size).reshape(theta.shape)
        return gradient

    def draw_latent_counts(
        self, theta: Floats, states: NDArray[np.int64], expected_rows: Floats, rng: np.random.Generator
    ) -> Counts:
        """Draw the exact counts, (n_restarts, n_cells, n_columns); 0 in cells that are not observed."""
        expected = _of_cells(theta, states) * expected_rows[..., None]
        drawn = self.released.copy()
        for scale, places in self.noisy_places:
            drawn.reshape(-1)[places] = draw_latent_counts(
                self.released.reshape(-1)[places], expected.reshape(-1)[places], scale, rng
            )
        return drawn

    def _terms(
        self, theta: Floats, states: NDArray[np.int64], expected_rows: Floats
    ) -> Iterator[tuple[PositiveCounts, Floats]]:
        """Return the log chances of released counts above 0, each in the state of its cell."""
        root_rows, root_theta = np.sqrt(expected_rows).ravel(), np.sqrt(theta).ravel()
        shift = (states * theta.shape[-1]).ravel()
        for positive in self.positive:
            value = np.empty(len(positive.cells))
            for part in positive.parts():
                cells = positive.cells[part]
                at = root_theta.take(positive.columns[part] + shift.take(cells))
                at *= root_rows.take(cells)
                value[part] = positive.table.log_emission(at, part)
            yield positive, value


def _of_cells(theta: Floats, states: NDArray[np.int64]) -> Floats:
    """Return theta of every cell's state, (n_restarts, n_cells, n_columns)."""
    n_restarts, n_states, n_columns = theta.shape
    rows = states + n_states * np.arange(n_restarts)[:, None]
    theta_of_cells: Floats = theta.reshape(-1, n_columns).take(rows, axis=0)
    return theta_of_cells
