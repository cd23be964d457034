r"""A plan that divides its loss by what each statistic needs: from public expectations alone.

The squared inflation of a posterior's standard deviation by noise is :math:`1 + c / \varepsilon^p`, with c of
``expected_error.py``; ``division.py`` makes a weighted sum of them, or the largest, least. Shares are text
for the spec: a plan stays a function of its spec. No rows are read, no source is opened, nothing is charged.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Self

from suffice.errors import UsageError
from suffice.pipeline.ask.planning.alternatives import Alternative, alternatives_of
from suffice.pipeline.ask.planning.division import Criterion, Need, criterion_of, divided, rounded_shares
from suffice.pipeline.ask.planning.expected_error import (
    ASSUMED,
    PRIOR,
    RANK,
    RELEASED,
    expected_errors,
    is_judged_by_rank,
)
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.assumed import Assumed, countable
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.documents import Measured, Sha256, one_of, printed
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.fields import QuantileEntry, sample_entry
from suffice.pipeline.terms.declaration.hierarchy import level_name
from suffice.pipeline.terms.declaration.wording import text_table
from suffice.pipeline.terms.released.table import card, html_table, markup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.pipeline.ask.planning.expected_error import ExpectedError
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import AnySpec, Spec
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

_TARGET = re.compile(
    r"(?P<statistic>\S+)\s+(?P<parameter>\S+?(?:\[.*\])?)\s+(?P<what>sd|width)\s+(?P<number>\S+)"
)
_WIDTH = 2.0 * 1.959963984540054
"""Standard deviations in a central 95 % interval of a normal distribution."""
_LARGE = 1.02
"""A shorter error by less is not recommended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedError:
    """An error that a division has to reach, of the parameter that counts.

    Attributes
    ----------
    statistic, parameter : str
        An entry of a parameter as ``probability[UA]``.
    sd : float
        The largest standard deviation of the posterior, in the parameter's unit.
    """

    statistic: str
    parameter: str
    sd: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``STATISTIC PARAMETER sd NUMBER``, or ``width`` of a 95 % interval in its place.

        Raises
        ------
        UsageError
            Where the text is no such target.
        """
        match = _TARGET.fullmatch(text.strip())
        try:
            number = float(match["number"]) if match else math.nan
        except ValueError:
            number = math.nan
        if match is None or not 0.0 < number < math.inf:
            message = f"target {text!r}: write STATISTIC PARAMETER sd NUMBER, as 'arr_delay mean sd 0.5'"
            raise UsageError(message)
        sd = number if match["what"] == "sd" else number / _WIDTH
        return cls(statistic=match["statistic"], parameter=match["parameter"], sd=sd)


@printed(
    "statistic parameter target n trust weight share_now share_divided "
    "epsilon_divided?=loss_divided.epsilon rho_divided?=loss_divided.rho sd_without_noise "
    "sd_now sd_divided inflation_now inflation_divided efficiency_divided clipped_share"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DividedStatistic:
    """One statistic's part of a division.

    Attributes
    ----------
    statistic, parameter : str
        The parameter, or the entry of one, whose error counts.
    target : float or None
        The standard deviation that was asked for.
    n : float
        Records in the median cell.
    trust : {"assumed", "released", "prior"}
        Where its typical values are from.
    weight : float
    share_now, share_divided : Fraction
        Of the whole, 1.
    loss_divided : PrivacyLoss
    sd_without_noise, sd_now, sd_divided : float
        Expected standard deviations of the posterior, in the parameter's unit.
    inflation_now, inflation_divided : float
        Over that without noise.
    clipped_share : float
        Of the records that were taken for typical, those beyond the bounds.
    """

    statistic: str
    parameter: str
    target: Measured | None
    n: Measured
    trust: Annotated[str, one_of(ASSUMED, RELEASED, PRIOR)]
    weight: float
    share_now: Fraction
    share_divided: Fraction
    loss_divided: PrivacyLoss
    sd_without_noise: float
    sd_now: float
    sd_divided: float
    inflation_now: float
    inflation_divided: float
    clipped_share: float

    @property
    def efficiency_divided(self) -> float:
        """The variance without noise over that with it: asymptotic relative efficiency."""
        return self.inflation_divided**-2


@printed(
    "criterion plan_hash epsilon?=loss.epsilon rho?=loss.rho expectations total_now total_equal "
    "total_divided shares statistics alternatives"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DividedPlan:
    """Shares by what each statistic needs, beside those of the spec; made by ``divided_plan``.

    Attributes
    ----------
    criterion : {"sum", "maximum"}
        What is least: the weighted sum of squared inflations, or the largest of them.
    plan_hash : str
        Of the spec's plan, at its present shares.
    loss : PrivacyLoss
        Of the whole release.
    expectations : str
        What was trusted, in words.
    total_now, total_equal, total_divided : float
        Weighted root mean square inflation, or the largest: at the spec's shares, at equal ones, divided.
    statistics : tuple of DividedStatistic
        In declared order.
    alternatives : tuple of Alternative
        Other ways to release a statistic at the same loss.
    hierarchies : dict of str to tuple of str
        The levels of the spec's trees.
    """

    criterion: Annotated[Criterion, one_of(*Criterion)]
    plan_hash: Sha256
    loss: PrivacyLoss
    expectations: str
    total_now: float
    total_equal: float
    total_divided: float
    statistics: tuple[DividedStatistic, ...]
    alternatives: tuple[Alternative, ...]
    hierarchies: dict[str, tuple[str, ...]]

    @property
    def shares(self) -> str:
        """Text for the spec: paste it below ``statistics``, each statistic's share and its levels'."""
        shares = {of.statistic: of.share_divided for of in self.statistics}
        trees = {
            level_name(name, level): (name, levels)
            for name, levels in self.hierarchies.items()
            for level in levels
        }
        lines = {}
        for statistic, share in shares.items():
            name, levels = trees.get(statistic, (statistic, ()))
            of_levels = [shares[level_name(name, level)] for level in levels]
            stated = f"share: {format_number(sum(of_levels, Fraction(0)) if of_levels else share)}"
            if of_levels:
                stated += f", level_shares: [{', '.join(map(format_number, of_levels))}]"
            lines[name] = f"  {name}: {{{stated}}}"
        return "\n".join(["statistics:", *lines.values()])

    def __str__(self) -> str:
        return "\n".join([self._heading, "", text_table(_COLUMNS, self._rows), *self._lines, "", self.shares])

    def _repr_html_(self) -> str:
        cells = [list(map(markup, row)) for row in self._rows]
        numeric = [name not in {"statistic", "counts"} for name in _COLUMNS]
        lead, *_ = self._lines
        return card(self._heading, lead=lead, body=html_table(_COLUMNS, cells, numeric), foot=self._lines[1:])

    @property
    def _heading(self) -> str:
        return f"{self.loss}, divided so that the {_NAMES[self.criterion]} is least; now -> divided"

    @property
    def _rows(self) -> list[list[str]]:
        return [
            [
                of.statistic,
                of.parameter,
                f"{of.n:.4g}",
                f"{float(of.share_now):.3g} -> {format_number(of.share_divided)}",
                f"{of.sd_now:.3g} -> {of.sd_divided:.3g}",
                f"{of.inflation_now:.4g} -> {of.inflation_divided:.4g}",
            ]
            for of in self.statistics
        ]

    @property
    def _lines(self) -> list[str]:
        total = (
            f"{_NAMES[self.criterion]}: now {self.total_now:.4g}, at equal shares {self.total_equal:.4g}, "
            f"divided {self.total_divided:.4g}"
        )
        lines = [total, self.expectations]
        lines += [
            f"{of.statistic}: sd of {of.parameter} at most {of.target:.4g}, asked for"
            for of in self.statistics
            if of.target is not None
        ]
        lines += [
            f"{of.statistic}: {100 * of.clipped_share:.2g} % of such records lie beyond the bounds"
            for of in self.statistics
            if of.clipped_share >= _MANY_CLIPPED
        ]
        return [*lines, *map(str, self.alternatives)]


_COLUMNS = ["statistic", "counts", "n", "share", "sd", "inflation"]
_NAMES = {
    Criterion.SUM: "root mean square inflation of standard deviations",
    Criterion.MAXIMUM: "largest inflation of standard deviations",
}
_MANY_CLIPPED = 0.01


def divided_plan(
    spec: AnySpec,
    release: Release | None = None,
    *,
    criterion: str = Criterion.SUM,
    targets: Iterable[str | WantedError] = (),
) -> DividedPlan:
    r"""Divide a spec's epsilon, or rho, among its statistics by what each needs.

    .. math:: \varepsilon_j \propto (w_j c_j)^{1/3}

    makes :math:`\sum_j w_j (1 + c_j / \varepsilon_j^2)` least, the weighted sum of squared inflations of
    posterior standard deviations; :math:`c_j^{1/2}` makes the largest of them least. In rho noise adds
    :math:`c_j / \rho_j`, and the exponents are 1/2 and 1. Reads no rows, opens no
    source and charges nothing.

    Parameters
    ----------
    spec : Spec, path, text or mapping
        Its ``assume`` states the number of records, and typical values of parameters; those of a statistic of
        which none is stated are drawn from its default prior.
    release : Release, optional
        An earlier release of the same statistics: what is expected of these are its noisy numbers.
    criterion : {"sum", "maximum"}
    targets : iterable of str, optional
        As ``arr_delay mean sd 0.5``: these statistics get as much as that takes, and no less; the others
        share the rest.

    Returns
    -------
    DividedPlan

    Raises
    ------
    SpecError
        Where what is assumed is not enough to tell an error.
    UsageError
        Where a target names nothing, or targets take more than there is.

    Notes
    -----
    Errors are of first order in the noise (``expected_error.py``). A statistic with ``sample`` is the mean of
    its draws, whose inflation is :math:`1 + T / m`; what counts of a drawn quantile is ``rank``, how far a
    draw is from it as a share of the records.
    """
    spec = load_spec(spec)
    try:
        chosen = Criterion(criterion)
    except ValueError:
        message = f"criterion {criterion!r}: choose {' or '.join(Criterion)}"
        raise UsageError(message) from None
    wanted = _by_statistic(spec, targets)
    counting = _counting(spec, wanted)
    errors = expected_errors(counting, release)
    needs = [_need(error) for error in errors]
    fixed = [_needed(error, wanted.get(error.statistic)) for error in errors]
    amounts = _with_targets(needs, fixed, spec.privacy.loss, chosen)
    shares = rounded_shares(amounts, [of is not None for of in fixed])
    now = _shares_of(spec)
    equal = (Fraction(1, len(needs)),) * len(needs)
    if not wanted:
        # Rounding may not lose what little there is to gain.
        shares = min((shares, now, equal), key=lambda of: _worth(needs, of, chosen))
    before, after = compile_plan(spec), compile_plan(with_shares(spec, shares))
    return DividedPlan(
        hierarchies=spec.trees,
        criterion=chosen,
        plan_hash=before.plan_hash,
        loss=spec.privacy.loss,
        expectations=_trusted(errors, release),
        total_now=_total(errors, before, chosen),
        total_equal=_total(errors, compile_plan(with_shares(spec, equal)), chosen),
        total_divided=_total(errors, after, chosen),
        statistics=tuple(
            _row(error, wanted.get(error.statistic), part, shares[place], first, second)
            for place, (error, part, first, second) in enumerate(
                zip(errors, now, before.statistics, after.statistics, strict=True)
            )
        ),
        alternatives=tuple(
            of
            for error in errors
            for of in alternatives_of(with_shares(counting, shares), error)
            if of.is_better_by(_LARGE)
        ),
    )


def with_shares(spec: Spec, shares: Sequence[Fraction]) -> Spec:
    """Return a spec with other shares, in declared order."""
    entries = {
        name: spec.bound(entry.model_copy(update={"share": share}))
        for (name, entry), share in zip(spec.statistics.items(), shares, strict=True)
    }
    return spec.model_copy(update={"statistics": entries})


def _shares_of(spec: Spec) -> tuple[Fraction, ...]:
    shares = [entry.share for entry in spec.statistics.values()]
    return tuple(share / sum(shares) for share in shares)


def _worth(needs: Sequence[Need], shares: Sequence[Fraction], criterion: Criterion) -> float:
    return criterion_of(needs, [float(share) for share in shares], criterion)


def _need(error: ExpectedError) -> Need:
    return Need(cost=error.cost, power=error.power, weight=error.weight)


def _by_statistic(spec: Spec, targets: Iterable[str | WantedError]) -> dict[str, WantedError]:
    """Read targets, at most one of each statistic.

    Raises
    ------
    UsageError
    """
    read = [WantedError.parse(of) if isinstance(of, str) else of for of in targets]
    for of in read:
        if of.statistic not in spec.statistics:
            message = (
                f"target: the spec has no statistic {of.statistic!r}: it has {', '.join(spec.statistics)}"
            )
            raise UsageError(message)
    wanted = {of.statistic: of for of in read}
    if len(wanted) < len(read):
        message = "targets: one of a statistic is taken: name the parameter that decides"
        raise UsageError(message)
    return wanted


def _counting(spec: Spec, wanted: dict[str, WantedError]) -> Spec:
    """Return the spec whose targets' parameters are those that count."""
    assumed = spec.assume or Assumed()
    statistics = dict(assumed.statistics)
    for name, of in wanted.items():
        entry = spec.statistics[name]
        family = FAMILIES[entry.family]
        is_quantile = isinstance(sample_entry(entry), QuantileEntry)
        known = set() if is_quantile else countable(family, family.parameters(entry))
        known |= {RANK} if is_judged_by_rank(entry) else set()
        if of.parameter not in known:
            message = (
                f"target: {name} has no parameter {of.parameter!r}: it has {', '.join(sorted(known)[:20])}"
            )
            raise UsageError(message)
        statistics[name] = assumed.of(name).model_copy(update={"counts": of.parameter})
    return spec.model_copy(update={"assume": assumed.model_copy(update={"statistics": statistics})})


def _needed(error: ExpectedError, target: WantedError | None) -> float | None:
    """Return how much a target takes; None where there is none.

    Raises
    ------
    UsageError
        Where the statistic without any noise misses it.
    """
    if target is None:
        return None
    room = (target.sd / error.sampling_sd) ** 2 - 1.0
    if room <= 0.0:
        message = (
            f"target: {error.n:.4g} records without any noise give {error.statistic} {error.parameter} an sd "
            f"of {error.sampling_sd:.4g}: ask for more than that, or for more records"
        )
        raise UsageError(message)
    return float((error.cost / room) ** (1.0 / error.power))


def _with_targets(
    needs: Sequence[Need], fixed: Sequence[float | None], loss: PrivacyLoss, criterion: Criterion
) -> list[float]:
    """Give targets what they take, and divide the rest; where all have one, what is over goes in proportion.

    Raises
    ------
    UsageError
        Where the targets take more than there is.
    """
    taken = sum(of for of in fixed if of is not None)
    free = [need for need, of in zip(needs, fixed, strict=True) if of is None]
    whole = float(loss.amount)
    if taken > whole or (free and taken >= whole):
        message = (
            f"the targets take {loss.measure} {taken:.4g}"
            + (", and leave nothing for the others" if free else "")
            + f": the spec has {whole:.6g}; ask for less, or raise it"
        )
        raise UsageError(message)
    rest = iter(divided(free, whole - taken, criterion) if free else ())
    return [float(next(rest)) if of is None else of for of in fixed]


def _total(errors: Sequence[ExpectedError], plan: Plan, criterion: Criterion) -> float:
    """Return the weighted root mean square inflation, or the largest, of a plan."""
    inflations = [error.inflation(of) for error, of in zip(errors, plan.statistics, strict=True)]
    if criterion is Criterion.MAXIMUM:
        return max(inflations)
    weights = [error.weight for error in errors]
    squares = sum(weight * of**2 for weight, of in zip(weights, inflations, strict=True))
    return math.sqrt(squares / sum(weights))


def _row(
    error: ExpectedError,
    target: WantedError | None,
    now: Fraction,
    share: Fraction,
    before: StatisticPlan,
    after: StatisticPlan,
) -> DividedStatistic:
    return DividedStatistic(
        statistic=error.statistic,
        parameter=error.parameter,
        target=None if target is None else target.sd,
        n=error.n,
        trust=error.trust,
        weight=error.weight,
        share_now=now,
        share_divided=share,
        loss_divided=after.loss,
        sd_without_noise=error.sampling_sd,
        sd_now=error.sd(before),
        sd_divided=error.sd(after),
        inflation_now=error.inflation(before),
        inflation_divided=error.inflation(after),
        clipped_share=error.clipped_share,
    )


def _trusted(errors: Sequence[ExpectedError], release: Release | None) -> str:
    """Say what the errors rest on."""
    by_trust: dict[str, list[str]] = {}
    for error in errors:
        by_trust.setdefault(error.trust, []).append(error.statistic)
    says = {
        ASSUMED: "assume in the spec",
        RELEASED: f"the noisy numbers of {release.label}" if release is not None else "",
        PRIOR: "the median of 64 draws of its default prior, as assume states no typical value",
    }
    parts = [f"{', '.join(names)}: {says[trust]}" for trust, names in by_trust.items()]
    return f"trusted, and checked against nothing: {'; '.join(parts)}"
