"""An event log's release, through ``suffice.release``, with a ledger of its own in a study's folder."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import suffice
from suffice.pipeline.ask.models.chain_tables import chain_table
from suffice.storage.ledger.opening import create_ledger

if TYPE_CHECKING:
    from pathlib import Path

    from studies.event_logs import EventLog
    from suffice.pipeline.ask.models.chain_tables import CountsOverTime


def released_table(log: EventLog, name: str, epsilon: int, folder: Path) -> CountsOverTime:
    """Release the counts of every feature in every cell, and return them.

    The data set is granted what one release costs. Run again in the same folder, the release is found as it
    was published: nothing is charged, and no noise is drawn.

    Parameters
    ----------
    log : EventLog
    name : str
        Of the release and its data set.
    epsilon : int, > 0
        Shared by the features; an event is added or removed.
    folder : Path
        Gets the events, the ledger and the releases.

    Returns
    -------
    CountTable
        Chains are regions.
    """
    folder.mkdir(parents=True, exist_ok=True)
    events = folder / f"{name}.parquet"
    log.write(events)
    ledger = f"sqlite:///{folder / 'ledger.db'}"
    with create_ledger(ledger) as opened:
        opened.grant(name, epsilon=Fraction(epsilon), reason="a study of one release")
    statistics = {
        feature: {"family": "categorical", "column": feature, "categories": list(categories)}
        for feature, categories in zip(log.features, log.categories, strict=True)
    }
    spec = {
        "name": name,
        "dataset": name,
        "source": {"parquet": str(events.resolve())},
        "privacy": {"epsilon": str(epsilon), "neighboring": "add_or_remove_one", "unit": "row"},
        "groups": {"region": list(log.regions), "time": list(log.times)},
        "statistics": statistics,
    }
    release = suffice.release(suffice.load_spec(spec), store=str(folder / "releases"), ledger=ledger)
    return chain_table(release, list(log.features), chain="region", time="time").counts
