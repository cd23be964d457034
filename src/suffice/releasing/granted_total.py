"""The total that a grant states: epsilon, rho, or what leaves a unit no more than so much in a year."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.delta import largest_rho
from suffice.pipeline.terms.declaration.domains import Every
from suffice.pipeline.terms.declaration.exact_numbers import parse_decimal, parse_epsilon, parse_rho
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    AnyNumber = str | int | float | Fraction
    Named = Callable[[str], str]

_TOTALS = ("epsilon", "rho", "per_year", "rho_per_year")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedTotal:
    """What a grant states of its total: one of the first four, and a delta beside one in epsilon.

    Attributes
    ----------
    epsilon, rho : number, optional
        The total itself.
    per_year, rho_per_year : number, optional
        What a unit may lose in any twelve months, by a grant per window.
    delta : number, optional
        The account counts rho, and the total is the largest one that is (epsilon, delta)-private.
    """

    epsilon: AnyNumber | None = None
    rho: AnyNumber | None = None
    per_year: AnyNumber | None = None
    rho_per_year: AnyNumber | None = None
    delta: AnyNumber | None = None

    def loss(self, grid: str | None, max_windows: int | None, named: Named) -> PrivacyLoss:
        """Return what is granted: as stated, or as much of each window as leaves a unit no more in a year.

        Parameters
        ----------
        grid : str or None
            Of a grant per window.
        max_windows : int or None
            In how many windows of twelve months a unit has rows; in all where it is None or 0.
        named : callable
            Gives what messages call an argument.

        Raises
        ------
        UsageError
        """
        stated = {name: value for name in _TOTALS if (value := getattr(self, name)) is not None}
        if len(stated) != 1:
            message = (
                f"state {named('epsilon')} or {named('rho')}, or {named('per_year')} or "
                f"{named('rho_per_year')} beside {named('per_window')}: one of the four"
            )
            raise UsageError(message)
        ((name, value),) = stated.items()
        loss = read_stated(name, value, named)
        if self.delta is not None:
            loss = in_rho(loss, self.delta, named)
        if not name.endswith("per_year"):
            return loss
        if grid is None:
            message = f"{named(name)} works out what each window may take: state {named('per_window')}, too"
            raise UsageError(message)
        from suffice.pipeline.spec.person import loss_for_a_year  # it imports numpy

        return loss_for_a_year(loss, Every(grid.rsplit(":", 2)[1]), max_windows=max_windows or None)


def read_stated(name: str, value: AnyNumber, named: Named) -> PrivacyLoss:
    """Return what an argument states: rho where its name says so.

    Raises
    ------
    UsageError
    """
    try:
        if name.startswith("rho"):
            return PrivacyLoss.of_rho(parse_rho(_text(value)))
        return PrivacyLoss.of_epsilon(parse_epsilon(_text(value)))
    except ValueError as error:
        message = f"{named(name)}: {error}"
        raise UsageError(message) from None


def in_rho(loss: PrivacyLoss, stated: AnyNumber, named: Named) -> PrivacyLoss:
    """Return the largest rho that is (epsilon, delta)-private.

    Raises
    ------
    UsageError
    """
    if loss.epsilon is None:
        message = f"{named('delta')} stands beside {named('epsilon')} or {named('per_year')}: rho has none"
        raise UsageError(message)
    try:
        return PrivacyLoss.of_rho(largest_rho(loss.epsilon, parse_decimal(_text(stated))))
    except ValueError as error:
        message = f"{named('delta')}: {error}"
        raise UsageError(message) from None


def _text(value: AnyNumber) -> str:
    return repr(value) if isinstance(value, float) else str(value)
