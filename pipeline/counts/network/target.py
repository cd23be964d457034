r"""The law of latent tables given noisy ones, with all probabilities integrated out.

Latent are tables n of the cliques of a junction tree, which agree on its separators. So many orders of N
rows have them, and an order is as likely as the Dirichlet priors of every node v given its parents say:

.. math::
    P(n \mid z) \propto \pi(N) \frac{N! \prod_{\text{separators}} \prod m!}{\prod_{\text{cliques}} \prod n!}
        \prod_v \prod_{\mathrm{pa}} \frac{\Gamma(A)}{\Gamma(A + n_{\mathrm{pa}})}
        \prod_k \frac{\Gamma(\alpha_k + n_{\mathrm{pa}, k})}{\Gamma(\alpha_k)}
        e^{-|z - n_{\mathrm{pa}, k}| / b}

where m are the entries of a separator. It is a product over the entries of margins, which stand one margin
after the other. Under a uniform prior the factors of a clique's own entries cancel, but for the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from suffice.pipeline.counts.network.parts import JunctionTree, Scope, junction_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.n_prior import NPrior
    from suffice.pipeline.structure import CountTable

    Floats: TypeAlias = NDArray[np.float64]
    Rows: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    r"""Some entries of margins, and what each adds to the log density.

    Attributes
    ----------
    entries : ndarray of shape (n_entries,), int64
    released : ndarray of shape (n_entries, 1), float64
        1 of released entries, 0 of others.
    gammas : tuple of (ndarray of int64, ndarray of float64, ndarray of float64)
        Of some of the entries, shifts s and coefficients c: a count n adds :math:`c \log\Gamma(s + n)`.
    empty : ndarray of int64
        Which of them is N, if any.
    """

    entries: Rows
    released: Floats
    gammas: tuple[tuple[Rows, Floats, Floats], ...]
    empty: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A connected part of a network, its variables numbered.

    Attributes
    ----------
    sizes : tuple of int
        Categories of each variable.
    tree : JunctionTree
    scopes : tuple of Scope
        Of each released table.
    places : tuple of ndarray of int64
        Where each entry of a table of a scope stands in the released table.
    starts : dict of Scope to int
        The first entry of each margin; the empty one, N, is the first of all.
    shifts, coefficients : ndarray of shape (n_slots, n_entries), float64
        As in ``Sites``, with coefficients of 0.
    scale : float, > 0
        b of the noise.
    n_prior : NPrior
    """

    sizes: tuple[int, ...]
    tree: JunctionTree
    scopes: tuple[Scope, ...]
    places: tuple[Rows, ...]
    starts: dict[Scope, int]
    shifts: Floats
    coefficients: Floats
    scale: float
    n_prior: NPrior

    @classmethod
    def of(
        cls,
        released: Sequence[CountTable],
        concentrations: Sequence[Floats],
        *,
        scale: float,
        n_prior: NPrior,
    ) -> Self:
        """Number the variables of tables of (parents, node), with priors (n_rows, n_categories) of each.

        A variable without a table of its own has a uniform prior.
        """
        sizes: dict[str, int] = {}
        for table in released:
            sizes.update(zip([variable.name for variable in table.variables], table.shape, strict=True))
        number = {name: position for position, name in enumerate(sizes)}
        axes = [[number[variable.name] for variable in table.variables] for table in released]
        scopes = tuple(tuple(sorted(each)) for each in axes)
        tree = junction_tree(scopes)
        gammas = _Gammas(tuple(sizes.values()))
        for scope in tree.cliques:
            gammas.add(scope, np.ones(1), -1.0)
        for scope in ((), *tree.separators):
            gammas.add(scope, np.ones(1), 1.0)
        priors = list(zip(axes, concentrations, strict=True))
        without = [name for name in sizes if name not in {table.name for table in released}]
        priors += [([number[name]], np.ones((1, sizes[name]))) for name in without]
        for own, concentration in priors:
            shaped = concentration.reshape([gammas.sizes[variable] for variable in own])
            gammas.add(tuple(sorted(own)), _ascending(shaped, own), 1.0)
            gammas.add(tuple(sorted(own[:-1])), _ascending(shaped.sum(axis=-1), own[:-1]), -1.0)
        margins = sorted({*gammas.scopes, *scopes}, key=lambda scope: (len(scope), scope))
        ends = np.cumsum([math.prod(gammas.sizes[variable] for variable in scope) for scope in margins])
        starts = dict(zip(margins, [0, *ends.tolist()], strict=False))
        shifts, coefficients = gammas.slots(starts, int(ends[-1]))
        return cls(
            sizes=gammas.sizes,
            tree=tree,
            scopes=scopes,
            places=tuple(
                _ascending(np.arange(table.size).reshape(table.shape), own)
                for own, table in zip(axes, released, strict=True)
            ),
            starts=starts,
            shifts=shifts,
            coefficients=coefficients,
            scale=scale,
            n_prior=n_prior,
        )

    @property
    def n_entries(self) -> int:
        """Over all margins."""
        return int(self.shifts.shape[1])

    def within(self, scope: Scope) -> slice:
        """Where the entries of a margin stand."""
        return slice(self.starts[scope], self.starts[scope] + self.size(scope))

    def sites(self, entries: Rows) -> Sites:
        """What these entries add to the log density."""
        released = np.zeros(self.n_entries)
        for scope in self.scopes:
            released[self.within(scope)] = 1.0
        gammas = []
        for shift, coefficient in zip(self.shifts[:, entries], self.coefficients[:, entries], strict=True):
            where = np.flatnonzero(coefficient)
            if where.size:
                gammas.append((where, shift[where, None], coefficient[where, None]))
        return Sites(
            entries=entries,
            released=released[entries, None],
            gammas=tuple(gammas),
            empty=np.flatnonzero(entries == self.starts[()]),
        )

    def log_density(self, sites: Sites, counts: Floats, noisy: Sequence[tuple[Floats, float]]) -> Floats:
        """What counts of some entries add, (n_entries, b), beside noisy ones with scales; -inf below 0."""
        from scipy.special import gammaln  # noqa: PLC0415 - slow to import

        value = np.zeros_like(counts)
        for seen, scale in noisy:
            value -= np.abs(seen - counts) / scale
        value *= sites.released
        for where, shift, coefficient in sites.gammas:
            value[where] += coefficient * gammaln(shift + np.maximum(counts[where], 0.0))
        if sites.empty.size:
            value[sites.empty] += self.n_prior.log_prob(counts[sites.empty])
        value[counts < 0.0] = -np.inf
        return value

    def shape(self, scope: Scope) -> tuple[int, ...]:
        """The shape of a table of this scope."""
        return tuple(self.sizes[variable] for variable in scope)

    def size(self, scope: Scope) -> int:
        """The number of entries of a table of this scope."""
        return math.prod(self.shape(scope))

    def margin(self, table: Floats, of: Scope, scope: Scope) -> Floats:
        """Sum a table (size, b) of the scope `of` over all variables but those of `scope`."""
        axes = tuple(axis for axis, variable in enumerate(of) if variable not in scope)
        margin: Floats = table.reshape(*self.shape(of), -1).sum(axis=axes).reshape(self.size(scope), -1)
        return margin


class _Gammas:
    """Coefficients of log gamma functions by scope and shift; those of equal shifts add up."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes
        self._found: dict[Scope, dict[tuple[float, ...], float]] = {}

    @property
    def scopes(self) -> set[Scope]:
        return {(), *(scope for scope, found in self._found.items() if any(found.values()))}

    def add(self, scope: Scope, shift: Floats, coefficient: float) -> None:
        key = tuple(shift.tolist())
        short = key[:1] if len(set(key)) == 1 else key
        found = self._found.setdefault(scope, {})
        found[short] = found.get(short, 0.0) + coefficient

    def slots(self, starts: dict[Scope, int], n_entries: int) -> tuple[Floats, Floats]:
        """Shifts and coefficients by slot and entry; coefficients of 0 where a margin has fewer."""
        found = {
            scope: [
                (shift, coefficient)
                for shift, coefficient in self._found.get(scope, {}).items()
                if coefficient
            ]
            for scope in starts
        }
        n_slots = max(map(len, found.values()))
        shifts, coefficients = np.ones((n_slots, n_entries)), np.zeros((n_slots, n_entries))
        for scope, start in starts.items():
            end = start + math.prod(self.sizes[variable] for variable in scope)
            for slot, (shift, coefficient) in enumerate(found[scope]):
                shifts[slot, start:end], coefficients[slot, start:end] = shift, coefficient
        return shifts, coefficients


def _ascending(values: NDArray[Any], variables: Sequence[int]) -> NDArray[Any]:
    """Flatten a table after ordering its axes by variable."""
    return np.transpose(values, np.argsort(np.array(variables, dtype=np.int64))).ravel()
