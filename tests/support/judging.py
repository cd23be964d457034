"""What must hold for a release's name after any fault, once a recovery or a rerun has ended."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.operations.recovery import Report, recover
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.spool import find_spool
from support.faults import STATISTICS
from support.losses import stated
from support.making import flights, mapping, write_parts

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.storage.ledger.charge import ChargeSummary
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.releases.release_store import ReleaseStore
    from support.forking import Ended, Forks

EPSILON = Fraction(1, 100)
MONTHLY = {"column": "day", "every": "month", "amend": ["7 days"]}
"""The windows of runs that are given one."""
_FINAL = (ChargeState.PUBLISHED, ChargeState.ABANDONED)


@dataclass
class Scene:
    """A ledger, a store, data, and every noisy file that was ever seen there."""

    directory: Path
    ledger: str
    forks: Forks
    files: dict[tuple[str, str], set[bytes]] = field(default_factory=lambda: defaultdict(set))
    loss: dict[str, str] = field(default_factory=lambda: {"epsilon": "0.01"})
    """What specs of runs state that they cost."""
    statistics: dict[str, Any] = field(default_factory=lambda: STATISTICS)

    @property
    def store(self) -> Path:
        """The store's directory."""
        return self.directory / "releases"

    @property
    def spool(self) -> Path:
        """The spool, wherever the ledger is."""
        return self.directory / "spool"

    @property
    def draws(self) -> Path:
        """The file that counts draws."""
        return self.directory / "draws"

    def order(self, name: str, **changes: Any) -> dict[str, Any]:
        """Return what :meth:`Forks.run` needs for a release."""
        return {
            "spec": mapping(
                self.directory / "data",
                name=name,
                privacy={**self.loss, "neighboring": "add_or_remove_one", "unit": "row"},
                statistics=self.statistics,
                window=MONTHLY if "window" in changes else None,
            ),
            "store": str(self.store),
            "ledger": self.ledger,
            "spool": str(self.spool),
            "draws": str(self.draws),
            **changes,
        }

    def run(self, name: str, **changes: Any) -> Ended:
        """Make a release in a process of its own, then look at the store."""
        ended = self.forks.run(**self.order(name, **changes))
        self.observe()
        return ended

    def recover(self) -> Report:
        """Recover in this process, then look at the store."""
        with open_ledger(self.ledger) as ledger:
            report = recover(
                ledger,
                lambda uri: open_store(uri, ledger_id=ledger.ledger_id),
                spool=find_spool(self.spool),
            )
        self.observe()
        return report

    def observe(self) -> None:
        """Keep what stands in noisy files now, those half written too."""
        for path in self.store.glob("*/*/*/*"):
            statistic, dot, _ = path.name.removeprefix(".").partition(".parquet")
            if dot:
                self.files[path.parent.name, statistic].add(path.read_bytes())


def make_scene(
    directory: Path, ledger_url: str, forks: Forks, measure: PrivacyMeasure = PrivacyMeasure.EPSILON
) -> Scene:
    """Write data, and grant a budget for them."""
    write_parts(flights(60), directory / "data", 1)
    with create_ledger(ledger_url) as ledger:
        ledger.grant("passengers", **stated(measure, Fraction(1000)), reason="tests")
    return Scene(directory, ledger_url, forks)


def problems(scene: Scene, name: str) -> list[str]:
    """Name every broken rule about a name; its runs have ended, and a recovery or a rerun after them."""
    with open_ledger(scene.ledger) as ledger:
        account = ledger.account("passengers")
        everything = list(ledger.charges("passengers"))
        charges = [charge for charge in everything if charge.name == name]
        told = list(ledger.verify())
        spent = (charge.loss.amount for charge in everything if charge.counts_as == "spent")
        if account.spent != sum(spent, Fraction(0)):
            told.append("what is spent is not what its charges say")
        if scene.store.exists():
            store = open_store(str(scene.store))
            told += _about_releases(store, name, charges, ledger)
            told += _about_orphans(scene, charges)
    told += [f"a charge is {charge.state}" for charge in charges if charge.state not in _FINAL]
    draws = scene.draws.read_text().splitlines().count(name) if scene.draws.exists() else 0
    if draws > sum(charge.drew for charge in charges):
        told.append(f"noise was drawn {draws} times, and {sum(charge.drew for charge in charges)} paid for")
    for charge in charges:
        told += [
            f"two noisy versions of {statistic} were readable for one charge"
            for (release_id, statistic), contents in scene.files.items()
            if release_id == charge.release_id and not _is_one(contents)
        ]
    return told


def _about_releases(
    store: ReleaseStore, name: str, charges: list[ChargeSummary], ledger: Ledger
) -> list[str]:
    told = []
    releases = store.releases(name)
    if len(releases) > len({release.edition for release in releases}):
        told.append("two releases of one edition")
    paid = {charge.release_id for charge in charges if charge.counts_as == "spent"}
    for release in releases:
        if release.release_id not in paid:
            told.append("a release without a charge")
        told += verify_release(release.uri, ledger=ledger).problems
    published = {charge.release_id for charge in charges if charge.state is ChargeState.PUBLISHED}
    if published != {release.release_id for release in releases}:
        told.append("the published charges are not those of the releases")
    return told


def _about_orphans(scene: Scene, charges: list[ChargeSummary]) -> list[str]:
    return [
        f"{path.name} of an abandoned charge is left"
        for charge in charges
        if charge.state is ChargeState.ABANDONED
        for path in (scene.store / charge.name / charge.edition / charge.release_id).glob("*")
        if not path.name.removeprefix(".").startswith("manifest.json")  # tombstones, one perhaps half put
    ]


def _is_one(contents: set[bytes]) -> bool:
    """Tell whether all contents are one, some of them perhaps cut short by a kill."""
    longest = max(contents, key=len)
    return all(longest.startswith(content) for content in contents)
