"""``suffice.audit``: a spec is audited in a process of its own, and the result is a document.

The audit's directory is removed at its end. In it stands a lock that the audit's processes hold. Where they
were killed nobody holds it, and the next audit removes what they left: invented rows and releases of them.

What an audit says: levels, what they found, the mutants that they caught, and what nobody looked at.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from suffice.auditing.scratch_sources import SCRATCH_POSTGRESQL
from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.spec.contract_fit import check_contract
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec, require_source
from suffice.pipeline.terms.declaration.data_contract import read_contract
from suffice.pipeline.terms.declaration.documents import printed
from suffice.storage.releases.manifest import software_versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.spec.spec import AnySpec, Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

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


@printed("name trials of largest_loss_over_declared=largest_or_none power=power_as_text said")
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

    @property
    def largest_or_none(self) -> str | None:
        """The largest loss; None where none is measured."""
        return self.largest or None

    @property
    def power_as_text(self) -> str | None:
        """The power with six digits."""
        return None if self.power is None else f"{self.power:.6f}"


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


@printed(
    "audit format_version ok verdict name dataset plan_hash window source cluster contract levels findings "
    "mutants false_alarm=false_alarm_as_text not_tried not_seen versions created seconds=seconds_as_text "
    "signature"
)
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
    audit: ClassVar[Literal[True]] = True
    format_version: ClassVar[int] = FORMAT_VERSION
    not_seen: ClassVar[tuple[str, ...]] = NOT_SEEN
    signature: ClassVar[None] = None

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

    @property
    def false_alarm_as_text(self) -> str:
        """The chance of a false alarm with three digits."""
        return f"{self.false_alarm:.3g}"

    @property
    def seconds_as_text(self) -> str:
        """The seconds to a tenth."""
        return f"{self.seconds:.1f}"

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


PREFIX = "suffice-audit-"
_LOCK = "lock"


def root() -> Path:
    """Return where audits have their directories: in memory if they can, as every step waits for a disk."""
    shared = Path("/dev/shm")  # noqa: S108 - directories of one user, with generated rows alone
    return shared if shared.is_dir() else Path(tempfile.gettempdir())


@contextlib.contextmanager
def scratch_directory(within: Path) -> Iterator[tuple[Path, int]]:
    """Give a new directory and the descriptor of its lock, which processes that use it inherit."""
    for left in within.glob(f"{PREFIX}*"):
        remove_left(left)
    with (
        tempfile.TemporaryDirectory(prefix=PREFIX, dir=within) as name,
        (Path(name) / _LOCK).open("x") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name), lock.fileno()


def remove_left(directory: Path) -> None:
    """Remove the directory of an audit of this user, where none of its processes lives."""
    with contextlib.suppress(OSError):
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            return
        with (directory / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where it is held
            shutil.rmtree(directory)


SECONDS = 180.0
PAIRS = 160
LEVELS = ("exact", "noise", "black-box")
PACKAGES = ("dask", "numba", "numpy", "opendp", "pyarrow", "suffice")
FALSE_ALARM = 5e-7 + 1e-7
"""Of the noise level and of the black box; the exact level and the appearance have none."""

_KEPT = ("HOME", "LANG", "PATH", "PYTHONPATH", "TMPDIR", "TZ", "VIRTUAL_ENV", SCRATCH_POSTGRESQL)


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What is to be audited.

    Attributes
    ----------
    spec : Spec
    level : str
        The last level that is tried.
    pairs : int
        Of the exact level.
    seconds : float
        After which no further mutant is begun.
    cluster : str
    seed : int
        Of the generated rows; no noise follows from it.
    mutants : bool
    contract : DataContract or None
        Of the scratch account; one that the spec fits.
    """

    spec: Any
    level: str
    pairs: int
    seconds: float
    cluster: str
    seed: int
    mutants: bool
    contract: Any


def audit(
    spec: AnySpec,
    *,
    level: str = "black-box",
    seconds: float = SECONDS,
    pairs: int = PAIRS,
    cluster: str = "threads",
    mutants: bool = True,
    seed: int = 27,
    contract: str | os.PathLike[str] | None = None,
    no_contract: bool = False,
) -> Audit:
    """Look for what a release by this spec would lose beyond what it declares; read no row of the source.

    Hostile neighbouring data sets are made from the spec alone, and released through its kind of source in a
    process of its own, on a scratch ledger. What is released there is no release to any reader.

    Parameters
    ----------
    spec : Spec
        From :func:`suffice.load_spec`.
    level : {"exact", "noise", "black-box"}
        The last level that is tried.
    seconds : float
        After which no further mutant is begun; what was begun ends.
    pairs : int
        Pairs of neighbours of the exact level.
    cluster : {"threads", "local"}
        What reads and adds; an address is none of an audit's business.
    mutants : bool
        Whether wrong releases are made, which the tests have to catch. Without them there is no result.
    seed : int
        Which rows are made; no noise depends on it.
    contract : path, optional
        The contract of the account. Where it is left out, it is the one that the spec implies, and the
        result says so.
    no_contract : bool
        Audit the spec for an account that has none: there single files decide statuses, and that is found.

    Returns
    -------
    Audit
        It is void with another plan and with other versions.

    Raises
    ------
    UsageError
        Where an argument breaks its rule.
    SchemaError
        Where the spec does not fit the contract.
    StageFailedError
        Where the audit's process ended without a result.
    """
    spec = load_spec(spec)
    require_source(spec)
    if level not in LEVELS:
        message = f"a level is one of {', '.join(LEVELS)}, not {level!r}"
        raise UsageError(message)
    if cluster not in {"threads", "local"}:
        message = "an audit runs on threads, or on a local cluster of its own"
        raise UsageError(message)
    if not 0 < seconds < float("inf") or pairs < 1:
        message = "an audit takes a number of seconds above 0, and at least one pair"
        raise UsageError(message)
    if contract is not None and no_contract:
        message = "a contract and no_contract exclude each other"
        raise UsageError(message)
    plan = compile_plan(spec)
    assumed = None if no_contract else _assumed(spec, contract)
    request = AuditRequest(
        spec=spec,
        level=level,
        pairs=pairs,
        seconds=seconds,
        cluster=cluster,
        seed=seed,
        mutants=mutants,
        contract=None if assumed is None else assumed[1],
    )
    result = _in_a_child(request)
    return Audit(
        name=plan.name,
        dataset=plan.dataset,
        plan_hash=plan.plan_hash,
        window=result["window"],
        source=result["source"],
        cluster=cluster,
        contract=None if assumed is None else AssumedContract(of=assumed[0], sha256=assumed[1].sha256),
        levels=tuple(Level(**each) for each in result["levels"]),
        findings=tuple(Flaw(**each) for each in result["findings"]),
        mutants=tuple(MutantResult(**each) for each in result["mutants"]),
        false_alarm=FALSE_ALARM,
        not_tried=tuple(result["not_tried"]),
        versions=software_versions(PACKAGES),
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:00:00Z"),
        seconds=result["seconds"],
    )


def _assumed(spec: Spec, path: str | os.PathLike[str] | None) -> tuple[str, DataContract]:
    """Return whose contract the scratch account has, and the contract; the spec fits it."""
    from suffice.auditing.implied_columns import implied_schema
    from suffice.auditing.scratch_sources import implied_contract  # imports the engine

    if path is not None:
        whose, contract = "account", read_contract(os.fspath(path))
    else:
        whose, contract = "spec", implied_contract(spec, implied_schema(spec))
    check_contract(spec, contract)
    return whose, contract


def _in_a_child(request: AuditRequest) -> dict[str, Any]:
    """Run the audit in a process that inherits no setting, and return what it wrote."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with scratch_directory(root()) as (place, lock):
        result = place / "result.json"
        ended = subprocess.run(  # noqa: S603 - this interpreter, and a module of ours
            [sys.executable, "-m", "suffice.auditing.child", str(result)],
            input=pickle.dumps(request),
            env=environment,
            cwd=place,
            capture_output=True,
            check=False,
            pass_fds=(lock,),
        )
        if ended.returncode or not result.exists():
            last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
            message = f"the audit's process ended with status {ended.returncode}: {' '.join(last)}"
            raise StageFailedError("auditing", message)
        document: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return document
