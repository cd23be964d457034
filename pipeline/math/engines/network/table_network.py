r"""Latent tables of a Bayesian network that agree on their margins, and their density.

Model: N rows follow a network; tables z of (parents, node) are released behind Laplace noise. Latent are
tables n of the cliques of a junction tree, which agree on its separators with entries m. With all
probabilities integrated out under Dirichlet priors, and as many orders of N rows as the tables allow
(Lauritzen, Graphical models, Oxford 1996),

.. math::
    P(n \mid z) \propto \pi(N) \frac{N! \prod_{\text{separators}} \prod m!}{\prod_{\text{cliques}} \prod n!}
        \prod_v \prod_{\mathrm{pa}} \frac{\Gamma(A)}{\Gamma(A + n_{\mathrm{pa}})}
        \prod_k \frac{\Gamma(\alpha_k + n_{\mathrm{pa}, k})}{\Gamma(\alpha_k)}
        e^{-|z - n_{\mathrm{pa}, k}| / b} \qquad (1)

    \log P = \sum_{\text{entries}} \Bigl(\sum_i c_i \log \Gamma(s_i + n) - \sum_l |z_l - n| / b_l\Bigr)
    + \log \pi(N) \qquad (2)

(2) is a sum over the entries of margins, which stand one margin after the other: a move is judged by the
entries that it touches. Under a uniform prior the factors of a clique's own entries cancel, but for the
noise. Of several data sets that share the probabilities, the product over nodes is of the tables' sums, all
else is of each.

Tables are taken together only where that needs no trust in the network's independences: where every two
parents of a node are joined by an edge. Else their common table shows how independent they are, and rows
that do not follow the network would be moved far beyond the noise until they do.

In the code, n is ``counts`` (n_entries, b), z ``observed``, 1 / b ``rate``, s ``shifts`` and c
``coefficients`` (n_slots, n_entries); N is the first entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.typing import Floats, Rows

Scope: TypeAlias = tuple[int, ...]
"""Variables by number, ascending: the axes of a table in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JunctionTree:
    """Cliques in an order in which each shares with all those before it what it shares with one of them.

    Attributes
    ----------
    cliques : tuple of Scope
    separators : tuple of Scope
        What each clique but the first shares with those before it.
    """

    cliques: tuple[Scope, ...]
    separators: tuple[Scope, ...]


def parts(released: Sequence[CountTable]) -> list[list[int]]:
    """Split tables of (parents, node) by position: connected parts, and nodes whose parents are not joined.

    The latter stand alone, but for nodes with the same parents.
    """
    names = [frozenset(variable.name for variable in table.variables) for table in released]
    parents = [names[position] - {table.name} for position, table in enumerate(released)]
    together = set(range(len(released)))
    while True:
        edges = {
            frozenset((parent, released[position].name))
            for position in together
            for parent in parents[position]
        }
        cut = {
            position
            for position in together
            if any(frozenset(pair) not in edges for pair in combinations(parents[position], 2))
        }
        if not cut:
            break
        # A node whose parents are not joined leaves; its edges then join no others' parents, so again.
        together -= cut
    alone: dict[frozenset[str], list[int]] = {}
    for position in sorted(set(range(len(released))) - together):
        alone.setdefault(parents[position], []).append(position)
    return [*_connected(sorted(together), names), *alone.values()]


def junction_tree(scopes: Iterable[Scope]) -> JunctionTree:
    """Order the largest of the given scopes; they are the cliques of a connected part."""
    distinct = [set(scope) for scope in dict.fromkeys(scopes)]
    left = sorted(scope for scope in distinct if not any(scope < other for other in distinct))
    order, separators = [left.pop(0)], []
    while left:
        clique, before = max(
            ((clique, before) for clique in left for before in order),
            # Prim: a maximal spanning tree of clique intersections is a junction tree (Jensen and Jensen
            # 1994).
            key=lambda pair: len(pair[0] & pair[1]),
        )
        left.remove(clique)
        order.append(clique)
        separators.append(clique & before)
    return JunctionTree(
        cliques=tuple(tuple(sorted(clique)) for clique in order),
        separators=tuple(tuple(sorted(separator)) for separator in separators),
    )


def _connected(positions: Sequence[int], names: Sequence[frozenset[str]]) -> list[list[int]]:
    """Join tables that share variables, directly or by others."""
    parts: list[tuple[set[str], list[int]]] = []
    for position in positions:
        touching = [part for part in parts if part[0] & names[position]]
        parts = [part for part in parts if part not in touching]
        variables = set(names[position]).union(*(part[0] for part in touching))
        parts.append((variables, sorted([position, *(each for part in touching for each in part[1])])))
    return [part for _, part in parts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    r"""Some entries of margins, and what each adds to the log density.

    Attributes
    ----------
    entries : ndarray of shape (n_entries,), int64
    gammas : tuple of (ndarray of int64, ndarray of float64, ndarray of float64)
        Of some of the entries, shifts s and coefficients c: a count n adds :math:`c \log\Gamma(s + n)`.
    empty : tuple of (int, ndarray of int64)
        Data sets, and which of the entries is their N.
    """

    entries: Rows
    gammas: tuple[tuple[Rows, Floats, Floats], ...]
    empty: tuple[tuple[int, Rows], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNetwork:
    """A connected part of a network behind some data sets, its variables numbered.

    Attributes
    ----------
    sizes : tuple of int
        Categories of each variable.
    tree : JunctionTree
    scopes : tuple of Scope
        Of each released table.
    positions : tuple of ndarray of int64
        Where each entry of a table of a scope stands in the released table.
    starts : dict of Scope to int
        The first entry of each margin of one data set; the empty one, N, is the first of all.
    shifts, coefficients : ndarray of shape (n_slots, n_entries), float64
        As in ``Sites``, with coefficients of 0; of all data sets and their sums.
    n_priors : tuple of NPrior
        Of every data set.
    """

    sizes: tuple[int, ...]
    tree: JunctionTree
    scopes: tuple[Scope, ...]
    positions: tuple[Rows, ...]
    starts: dict[Scope, int]
    shifts: Floats
    coefficients: Floats
    n_priors: tuple[NPrior, ...]

    @classmethod
    def of(
        cls, released: Sequence[CountTable], concentrations: Sequence[Floats], n_priors: Sequence[NPrior]
    ) -> Self:
        """Number the variables of tables of (parents, node), with priors (n_rows, n_categories) of each.

        A variable without a table of its own has a uniform prior, and its frequencies are every data set's
        own.
        """
        sizes: dict[str, int] = {}
        for table in released:
            sizes.update(zip([variable.name for variable in table.variables], table.shape, strict=True))
        number = {name: position for position, name in enumerate(sizes)}
        axes = [[number[variable.name] for variable in table.variables] for table in released]
        scopes = tuple(tuple(sorted(each)) for each in axes)
        tree = junction_tree(scopes)
        gammas = _Gammas(tuple(sizes.values()))
        shared = gammas if len(n_priors) == 1 else _Gammas(gammas.sizes)
        for scope in tree.cliques:
            # (1): 1 / n! = 1 / Gamma(1 + n) for the entries of cliques; N! and m! likewise.
            gammas.add(scope, np.ones(1), -1.0)
        for scope in ((), *tree.separators):
            gammas.add(scope, np.ones(1), 1.0)
        for name in [name for name in sizes if name not in {table.name for table in released}]:
            gammas.add_prior([number[name]], np.ones((1, sizes[name])))
        for variables, concentration in zip(axes, concentrations, strict=True):
            shared.add_prior(variables, concentration)
        margins = sorted({*gammas.scopes, *shared.scopes, *scopes}, key=lambda scope: (len(scope), scope))
        ends = np.cumsum([math.prod(gammas.sizes[variable] for variable in scope) for scope in margins])
        starts = dict(zip(margins, [0, *ends.tolist()], strict=False))
        blocks = [gammas] * len(n_priors) + ([] if shared is gammas else [shared])
        n_slots = max(block.most for block in blocks)
        slots = [block.slots(starts, int(ends[-1]), n_slots) for block in blocks]
        shifts, coefficients = (np.concatenate(parts, axis=1) for parts in zip(*slots, strict=True))
        return cls(
            sizes=gammas.sizes,
            tree=tree,
            scopes=scopes,
            positions=tuple(
                _ascending(np.arange(table.size).reshape(table.shape), variables)
                for variables, table in zip(axes, released, strict=True)
            ),
            starts=starts,
            shifts=shifts,
            coefficients=coefficients,
            n_priors=tuple(n_priors),
        )

    @property
    def n_sets(self) -> int:
        """How many data sets there are."""
        return len(self.n_priors)

    @property
    def n_entries(self) -> int:
        """Over all margins of all data sets and, where there are several, of their sums."""
        return int(self.shifts.shape[1])

    @property
    def n_per_set(self) -> int:
        """Over all margins of one data set."""
        return self.n_entries // (self.n_sets + (self.n_sets > 1))

    def within(self, scope: Scope, block: int = 0) -> slice:
        """Where the entries of a margin of a data set stand; -1 is the sum over all."""
        start = self.starts[scope] + range(self.n_entries // self.n_per_set)[block] * self.n_per_set
        return slice(start, start + self.size(scope))

    def sites(self, entries: Rows) -> Sites:
        """What these entries add to the log density."""
        gammas = []
        for shift, coefficient in zip(self.shifts[:, entries], self.coefficients[:, entries], strict=True):
            where = np.flatnonzero(coefficient)
            if where.size:
                gammas.append((where, shift[where, None], coefficient[where, None]))
        totals = [
            (number, np.flatnonzero(entries == number * self.n_per_set + self.starts[()]))
            for number in range(self.n_sets)
        ]
        return Sites(
            entries=entries,
            gammas=tuple(gammas),
            empty=tuple((number, where) for number, where in totals if where.size),
        )

    def log_density(self, sites: Sites, counts: Floats, observed: Floats, rates: Floats) -> Floats:
        """What counts of some entries add, (n_entries, b); -inf below 0.

        Beside them stand noisy ones, (n_releases, n_entries, b), with rates (n_releases, n_entries).
        """
        from scipy.special import gammaln

        value = np.zeros_like(counts)
        for released, rate in zip(observed, rates, strict=True):
            value -= np.abs(released - counts) * rate[:, None]
        for where, shift, coefficient in sites.gammas:
            # (2).
            value[where] += coefficient * gammaln(shift + np.maximum(counts[where], 0.0))
        for number, where in sites.empty:
            value[where] += self.n_priors[number].log_prob(counts[where])
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
        self._terms: dict[Scope, dict[tuple[float, ...], float]] = {}

    @property
    def scopes(self) -> set[Scope]:
        return {(), *(scope for scope, margins in self._terms.items() if any(margins.values()))}

    @property
    def most(self) -> int:
        """The most functions of one entry."""
        return max(sum(map(bool, margins.values())) for margins in self._terms.values())

    def add_prior(self, variables: Sequence[int], concentration: Floats) -> None:
        """Integrate out the probabilities of the last of some variables given the others."""
        shaped = concentration.reshape([self.sizes[variable] for variable in variables])
        parents = variables[:-1]
        # (1): Gamma(alpha_k + n_k) for every k, and 1 / Gamma(A + n_pa) for the combination of the parents.
        self.add(tuple(sorted(variables)), _ascending(shaped, variables), 1.0)
        self.add(tuple(sorted(parents)), _ascending(shaped.sum(axis=-1), parents), -1.0)

    def add(self, scope: Scope, shift: Floats, coefficient: float) -> None:
        key = tuple(shift.tolist())
        # Equal shifts of one margin are one function: numerator and denominator may cancel.
        short = key[:1] if len(set(key)) == 1 else key
        margins = self._terms.setdefault(scope, {})
        margins[short] = margins.get(short, 0.0) + coefficient

    def slots(self, starts: dict[Scope, int], n_entries: int, n_slots: int) -> tuple[Floats, Floats]:
        """Shifts and coefficients by slot and entry; coefficients of 0 where a margin has fewer."""
        by_scope = {
            scope: [
                (shift, coefficient)
                for shift, coefficient in self._terms.get(scope, {}).items()
                if coefficient
            ]
            for scope in starts
        }
        shifts, coefficients = np.ones((n_slots, n_entries)), np.zeros((n_slots, n_entries))
        for scope, start in starts.items():
            end = start + math.prod(self.sizes[variable] for variable in scope)
            for slot, (shift, coefficient) in enumerate(by_scope[scope]):
                shifts[slot, start:end], coefficients[slot, start:end] = shift, coefficient
        return shifts, coefficients


def _ascending(values: NDArray[Any], variables: Sequence[int]) -> NDArray[Any]:
    """Flatten a table after ordering its axes by variable."""
    return np.transpose(values, np.argsort(np.array(variables, dtype=np.int64))).ravel()
