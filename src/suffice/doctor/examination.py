"""All checks, one after the other: what one raises does not keep the others from looking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.doctor.configuration import examine_configuration
from suffice.doctor.contract import Finding, State, problem
from suffice.doctor.host import examine_entropy, examine_pins, examine_versions
from suffice.doctor.permissions import examine_permissions
from suffice.doctor.places import examine_clock, examine_cluster, examine_ledger, examine_stores
from suffice.errors import SufficeError
from suffice.pipeline.cluster.connection import check_cluster
from suffice.pipeline.terms.declaration.documents import printed
from suffice.storage.ledger.opening import check_ledger_url
from suffice.storage.objects.address import read_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from suffice.doctor.contract import Check, Fact
    from suffice.profile.settings import Settings

CHECKS: Mapping[str, Check] = {
    "versions": examine_versions,
    "pins": examine_pins,
    "configuration": examine_configuration,
    "ledger": examine_ledger,
    "stores": examine_stores,
    "cluster": examine_cluster,
    "clock": examine_clock,
    "permissions": examine_permissions,
    "entropy": examine_entropy,
}
"""By name, in the order in which they are made."""


@printed("ok findings")
@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What all checks found."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no problem; warnings are none."""
        return all(finding.state is not State.PROBLEM for finding in self.findings)


def examine(place: Settings) -> Diagnosis:
    """Make every check of an installation.

    Raises
    ------
    UsageError
        Where a text names no ledger, store or cluster at all.
    """
    check_ledger_url(place.ledger)
    check_cluster(place.cluster)
    read_address(place.store)
    if place.witness is not None:
        read_address(place.witness)
    return Diagnosis(
        findings=tuple(
            Finding.of(name, fact) for name, check in CHECKS.items() for fact in _facts(check, place)
        )
    )


def _facts(check: Check, place: Settings) -> Iterator[Fact]:
    try:
        yield from check(place)
    except SufficeError as error:
        remedy = 'the documentation\'s page "Exit statuses and errors" says what to do about each error'
        yield problem(f"{type(error).__name__}: {error}", remedy)
    except Exception as error:  # noqa: BLE001 - a text of ours: another might show a secret
        remedy = "run the command that this keeps from its work: its own message says more"
        yield problem(f"the check ended in an internal error ({type(error).__name__})", remedy)
