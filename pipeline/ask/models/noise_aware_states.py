r"""Draws of a hidden Markov model given noisy counts, exact ones latent: its posterior with the noise in it.

Of chain r at time t in state :math:`z_{rt} = k`, category j of feature d:

.. math::
    z \sim \text{Markov chain}, \qquad n_{rtdj} \sim \mathrm{Pois}(\lambda_{rt} \theta_{kdj}), \qquad
    y_{rtdj} = n_{rtdj} + \mathrm{DLap}_b

.. math::
    A_k \sim \mathrm{Dir}(\alpha), \qquad \theta_{kd} \sim \mathrm{Dir}(\beta), \qquad
    \lambda_{rt} \sim \mathrm{Gamma}(1, \rho)

Features share lambda, the expected number of rows, and not the number itself. The question is the posterior
of states and parameters given y. One sweep of the Gibbs sampler, with Metropolis steps in its fourth part:

1. log emissions of all cells in all states, exact counts summed out, and the states given them;
2. the exact counts n given the states, independently (``noisy_counts``);
3. theta, lambda and the transitions given n, each from its conjugate distribution:
   :math:`\theta_{kd} \sim \mathrm{Dir}(\beta + \sum n)`,
   :math:`\lambda_{rt} \sim \mathrm{Gamma}(1 + \sum_{dj} n, \rho + D)`;
4. theta and lambda once more with n summed out. Wide noise leaves theta next to no room once n is given. A
   step moves chance between the two categories of random pairs: given states and lambda, categories are
   independent, so that all pairs of all states move at once, each accepted by itself.

States and parameters are kept after step 1, together with the log joint density that it has computed. Every
step leaves the posterior as it is; what is left is the error of a finite number of sweeps, which restarts
tell.

Categories of all features stand side by side, (n_columns,). Given the state and lambda they are independent,
so that the same terms are summed by cell and state, by cell, or by state and category. Of released counts of
0 and less a log emission is linear in mu, :math:`\log c + y / b - \mu (1 - q)`: these are summed by products
of matrices; the others come from tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.models.noisy_counts import EmissionTable, draw_latent_counts, log_noise_at_zero
from suffice.pipeline.ask.models.state_draws import (
    LEAST,
    cell_totals,
    collected,
    count_transitions,
    draw_dirichlet,
    draw_states,
    kept_sweeps,
    log_dirichlet,
    starting_theta,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.models.chain_tables import CountsOverTime
    from suffice.pipeline.ask.models.state_draws import StateDraws, StatePriors
    from suffice.typing import Counts, Floats, Mask, Rows

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
    firsts, nonempty_cells : ndarray of shape (n_cells_with_any,), int64
        The first count of each cell that has any, and that cell.
    """

    table: EmissionTable
    cells: Rows
    columns: Rows
    firsts: Rows
    nonempty_cells: Rows

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
            nonempty_cells=cells[firsts],
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

        Theta is (n_restarts, K, n_columns), and the expected rows lambda are (n_restarts, n_cells).
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
                log_emission[state, positive.nonempty_cells] += np.add.reduceat(value, positive.firsts)
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
            log_emission.reshape(-1)[positive.nonempty_cells] += np.add.reduceat(value, positive.firsts)
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


PAIR_STEPS = 4
"""Rounds of pairs in a sweep: together they cost about half of what step 1 does with ten states."""
_PAIR_WIDTHS = (0.03, 3.0)
"""Steps of log odds: the size of each is drawn between these, evenly on the scale of logs."""
_ROW_WIDTHS = (0.05, 2.0)
"""Steps of log lambda."""


@dataclass(slots=True)
class RestartPositions:
    """Where the restarts are: theta (n_restarts, K, n_columns), lambda and states (n_restarts, n_cells)."""

    theta: Floats
    expected_rows: Floats
    transitions: Floats
    states: NDArray[np.int64]


def noise_aware_draws(
    tables: Sequence[CountsOverTime],
    *,
    n_states: int,
    n_sweeps: int,
    n_draws: int,
    priors: StatePriors,
    rng: np.random.Generator,
    start: StateDraws | None = None,
    progress: Callable[[int], None] | None = None,
) -> StateDraws:
    """Draw states and parameters, a restart for each of the tables, side by side.

    Tables are of one shape and the same noise; they are all the same table where restarts are to be compared.
    Of the second half of the sweeps `n_draws` are kept, at even distances. Draws may go on from the last of
    earlier ones: all sweeps count then. `progress` is told after every sweep how many are done.
    """
    emissions = CellEmissions.of(tables, n_states)
    shape = tables[0].is_observed.shape
    position = _start(emissions, n_states, priors, rng) if start is None else _last(start)
    kept = set(kept_sweeps(n_sweeps, n_draws, goes_on=start is not None))
    draws, trace = [], []
    for sweep in range(n_sweeps):
        log_emissions = emissions.by_state(position.theta, position.expected_rows)
        drawn = draw_states(log_emissions.reshape(len(tables), *shape, n_states), position.transitions, rng)
        position.states = drawn.reshape(len(tables), -1).astype(np.int64)
        steps = count_transitions(drawn.astype(np.int64), n_states)
        trace.append(_log_joint(emissions, log_emissions, position, steps, priors))
        if sweep in kept:
            rows = position.expected_rows.reshape(drawn.shape)
            draws.append((drawn, position.transitions, position.theta, rows))
        _given_counts(emissions, position, priors, rng)
        position.transitions = draw_dirichlet(priors.transitions + steps, rng)
        _without_counts(emissions, position, priors, rng)
        if progress is not None:
            progress(sweep + 1)
    return collected(draws, trace, kept, emissions.starts)


def _start(
    emissions: CellEmissions, n_states: int, priors: StatePriors, rng: np.random.Generator
) -> RestartPositions:
    """Start from the table added up over all cells, and from each cell's total."""
    released, starts = emissions.released, emissions.starts
    theta = starting_theta(released.sum(axis=1).astype(np.float64), starts, n_states, priors.emissions, rng)
    total = cell_totals(released, starts, emissions.scales)
    uniform = np.full((len(released), n_states + 1, n_states), 1.0 / n_states)
    return RestartPositions(
        theta=theta,
        expected_rows=np.maximum(total, 1.0),
        transitions=uniform,
        states=np.zeros(total.shape, dtype=np.int64),
    )


def _last(draws: StateDraws) -> RestartPositions:
    """Return where draws ended: the last sweep is always kept."""
    assert draws.expected_rows is not None  # noqa: S101 - noise-aware draws have them
    n_restarts = len(draws.states)
    return RestartPositions(
        theta=np.concatenate([each[:, -1] for each in draws.emissions], axis=-1),
        expected_rows=draws.expected_rows[:, -1].reshape(n_restarts, -1),
        transitions=draws.transitions[:, -1],
        states=draws.states[:, -1].reshape(n_restarts, -1).astype(np.int64),
    )


def _given_counts(
    emissions: CellEmissions, position: RestartPositions, priors: StatePriors, rng: np.random.Generator
) -> None:
    """Draw exact counts, then theta and lambda given them."""
    counts = emissions.draw_latent_counts(position.theta, position.states, position.expected_rows, rng)
    counts = counts.astype(np.float64)
    n_states = position.theta.shape[1]
    member = (position.states[:, None] == np.arange(n_states)[:, None]).astype(np.float64)
    # theta: Dir(beta + sum of n over the cells in the state).
    position.theta = draw_dirichlet(priors.emissions + member @ counts, rng, emissions.starts)
    # lambda: Gamma(1 + sum of n over features and categories, rho + D).
    rate = priors.rate + len(emissions.starts) * emissions.is_observed
    position.expected_rows = rng.standard_gamma(1.0 + counts.sum(axis=-1)) / rate


def _without_counts(
    emissions: CellEmissions, position: RestartPositions, priors: StatePriors, rng: np.random.Generator
) -> None:
    """Move theta, then lambda, with exact counts summed out."""
    now = emissions.by_category(position.theta, position.states, position.expected_rows)
    now += priors.emissions * np.log(position.theta)
    for _ in range(PAIR_STEPS):
        first, second = _pairs(emissions, rng)
        theta_first, other = position.theta[..., first], position.theta[..., second]
        width = _widths(_PAIR_WIDTHS, theta_first.shape, rng)
        # A normal step of the log odds within the pair; their sum stays.
        log_odds = np.log(theta_first / other) + width * rng.standard_normal(theta_first.shape)
        proposed = position.theta.copy()
        proposed[..., first] = (theta_first + other) / (1.0 + np.exp(-np.clip(log_odds, -700.0, 700.0)))
        proposed[..., second] = (theta_first + other) / (1.0 + np.exp(np.clip(log_odds, -700.0, 700.0)))
        np.maximum(proposed, LEAST, out=proposed)
        then = emissions.by_category(proposed, position.states, position.expected_rows)
        # In log odds the density of Dirichlet(beta) is theta^beta.
        then += priors.emissions * np.log(proposed)
        # Accepted with chance exp(gain): Metropolis, as the step is symmetric in log odds.
        gain = (then - now)[..., first] + (then - now)[..., second]
        accepted = rng.standard_exponential(gain.shape) > -gain
        accepted &= np.minimum(proposed[..., first], proposed[..., second]) > LEAST
        for columns in (first, second):
            position.theta[..., columns] = np.where(
                accepted, proposed[..., columns], position.theta[..., columns]
            )
            now[..., columns] = np.where(accepted, then[..., columns], now[..., columns])
    rows = position.expected_rows
    width = _widths(_ROW_WIDTHS, rows.shape, rng)
    proposed = rows * np.exp(width * rng.standard_normal(rows.shape))
    gain = emissions.by_cell(position.theta, position.states, proposed)
    gain -= emissions.by_cell(position.theta, position.states, rows)
    # In log lambda the density of Gamma(1, rho) is lambda exp(-rho lambda).
    gain += np.log(proposed / rows) - priors.rate * (proposed - rows)
    position.expected_rows = np.where(rng.standard_exponential(gain.shape) > -gain, proposed, rows)


def _widths(between: tuple[float, float], shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    low, high = between
    widths: Floats = low * (high / low) ** rng.random(shape)
    return widths


def _pairs(emissions: CellEmissions, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return categories two by two, each of one feature; of an odd number one is left out."""
    blocks = np.split(np.arange(len(emissions.scales)), emissions.starts[1:])
    shuffled = [rng.permutation(block)[: len(block) // 2 * 2].reshape(2, -1) for block in blocks]
    first, second = np.concatenate(shuffled, axis=1)
    return first, second


def _log_joint(
    emissions: CellEmissions,
    log_emissions: Floats,
    position: RestartPositions,
    steps: NDArray[np.int64],
    priors: StatePriors,
) -> Floats:
    """Return the log density of parameters, states and released counts, (n_restarts,)."""
    log_emission = np.take_along_axis(log_emissions, position.states[..., None], axis=-1)[..., 0]
    rows = np.where(emissions.is_observed, np.log(priors.rate) - priors.rate * position.expected_rows, 0.0)
    joint: Floats = (log_emission + rows).sum(axis=-1)
    joint += (steps * np.log(position.transitions)).sum(axis=(1, 2))
    joint += log_dirichlet(position.transitions, priors.transitions)
    joint += log_dirichlet(position.theta, priors.emissions, emissions.starts)
    return joint
