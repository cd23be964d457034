"""What an audit says: levels, what they found, the mutants that they caught, and what nobody looked at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

FORMAT_VERSION = 1

NOT_SEEN = (
    "what the source's server may read, log or bill",
    "row policies, views and rights of the role that reads",
    "whether the unit's column names one person, and who shares an id",
    "warehouses and object stores that are not here",
    "how long anything takes, and how much memory it needs",
    "the operating system, the processor, and the generator of random bits",
)
"""What an audit cannot see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One thing that is wrong.

    Attributes
    ----------
    level : str
    check : str
        What was compared.
    what : str
        What was seen; of generated rows alone.
    """

    level: str
    check: str
    what: str

    def __str__(self) -> str:
        return f"{self.level}: {self.check}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What one level tried.

    Attributes
    ----------
    name : str
    trials : int
        Pairs of neighbours, draws or runs; 0 where it was not tried.
    of : str
        What is counted.
    largest : str
        The largest loss that was seen over the declared one, as text; empty where none is measured.
    power : float or None
        The chance to notice a scale 1.25 times too small; of the noise level.
    said : str
        Why it was not tried, or what it took for granted.
    """

    name: str
    trials: int
    of: str
    largest: str = ""
    power: float | None = None
    said: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return what `audit.json` holds."""
        return {
            "name": self.name,
            "trials": self.trials,
            "of": self.of,
            "largest_loss_over_declared": self.largest or None,
            "power": self.power if self.power is None else f"{self.power:.6f}",
            "said": self.said,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantResult:
    """One mutant, and what caught it.

    Attributes
    ----------
    name : str
    caught_by : str or None
        The check; None where it survived.
    """

    name: str
    caught_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedContract:
    """The contract that the audited account is taken to have.

    Attributes
    ----------
    of : {"account", "spec"}
        ``account``: it was stated. ``spec``: the spec implies it.
    sha256 : str
    """

    of: str
    sha256: str

    def __str__(self) -> str:
        whose = "the one that the spec implies" if self.of == "spec" else "the one that was stated"
        return f"{self.sha256[:16]}, {whose}: it holds for an account with one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of an audit. It holds for one plan and one set of versions.

    Attributes
    ----------
    name, dataset, plan_hash, window, source : str
        What was audited; the kind of source that was tried.
    cluster : str
    contract : AssumedContract or None
        None where an account without one was audited.
    levels : tuple of Level
    findings : tuple of Finding
    mutants : tuple of MutantResult
        Those that can be applied to this spec.
    false_alarm : float
        The chance that an audit of a right release finds something, in all.
    not_tried : tuple of str
    versions : dict of str to str
    seconds : float
    """

    name: str
    dataset: str
    plan_hash: str
    window: str
    source: str
    cluster: str
    contract: AssumedContract | None
    levels: tuple[Level, ...]
    findings: tuple[Flaw, ...]
    mutants: tuple[MutantResult, ...]
    false_alarm: float
    not_tried: tuple[str, ...]
    versions: dict[str, str]
    created: str
    seconds: float

    @property
    def survivors(self) -> tuple[str, ...]:
        """Mutants that nothing caught."""
        return tuple(mutant.name for mutant in self.mutants if mutant.caught_by is None)

    @property
    def ok(self) -> bool:
        """Whether nothing was found, by tests that caught every mutant."""
        return not self.findings and not self.survivors and bool(self.mutants)

    @property
    def verdict(self) -> str:
        """What may be said of it; never that something is private."""
        if self.findings:
            return f"{len(self.findings)} found"
        if not self.mutants:
            return "nothing found, by tests that no mutant was tried on: no result"
        if self.survivors:
            return f"no result: the tests miss {len(self.survivors)} of {len(self.mutants)} mutants"
        return f"nothing found by tests that catch these {len(self.mutants)} mutants"

    def to_dict(self) -> dict[str, Any]:
        """Return what `audit.json` holds, unsigned."""
        return {
            "audit": True,
            "format_version": FORMAT_VERSION,
            "ok": self.ok,
            "verdict": self.verdict,
            "name": self.name,
            "dataset": self.dataset,
            "plan_hash": self.plan_hash,
            "window": self.window,
            "source": self.source,
            "cluster": self.cluster,
            "contract": None if self.contract is None else asdict(self.contract),
            "levels": [level.to_dict() for level in self.levels],
            "findings": [
                {"level": each.level, "check": each.check, "what": each.what} for each in self.findings
            ],
            "mutants": [{"name": each.name, "caught_by": each.caught_by} for each in self.mutants],
            "false_alarm": f"{self.false_alarm:.3g}",
            "not_tried": list(self.not_tried),
            "not_seen": list(NOT_SEEN),
            "versions": self.versions,
            "created": self.created,
            "seconds": f"{self.seconds:.1f}",
            "signature": None,
        }

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.verdict}", ""]
        lines.append(f"contract     {self.contract or 'none: an account without one was audited'}")
        for level in self.levels:
            largest = f", at most {level.largest} of the declared loss" if level.largest else ""
            power = "" if level.power is None else f", power {level.power:.4f} against a scale / 1.25"
            tried = (
                f"{level.trials} {level.of}{largest}{power}" if level.trials else f"not tried: {level.said}"
            )
            lines.append(f"{level.name:<12} {tried}")
        lines += ["", *(f"found        {each}" for each in self.findings)]
        lines += [f"mutant       {each.name}: {each.caught_by or 'NOT CAUGHT'}" for each in self.mutants]
        lines += ["", f"false alarm  at most {self.false_alarm:.1e} in all"]
        lines += [f"not tried    {each}" for each in self.not_tried]
        lines += [f"not seen     {each}" for each in NOT_SEEN]
        lines.append("void with another plan, another version of suffice, or another of its libraries")
        return "\n".join(lines)
