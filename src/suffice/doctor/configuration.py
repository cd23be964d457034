"""Who decides what runs work with, and whether a variable is misspelt."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from suffice.doctor.contract import ok, problem, warning
from suffice.monitoring.records import COUNTS_FOLDER
from suffice.profile.finding import CONFIG, find_profile
from suffice.profile.settings import PUBLIC_KEYS, STALL, VARIABLES, log_setting
from suffice.profile.values import LOG, ledger_identity, redacted
from suffice.storage.releases.spool import spool_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.doctor.contract import Fact
    from suffice.profile.settings import Settings

PREFIX = "SUFFICE_"
KNOWN = frozenset(
    {
        *VARIABLES.values(),
        CONFIG,
        LOG,
        STALL,
        PUBLIC_KEYS,
        COUNTS_FOLDER,
        "SUFFICE_PUBLICATION_PUBLIC_KEYS",
        "SUFFICE_SIGNING_KEY",
        "SUFFICE_PUBLICATION_KEY",
        "SUFFICE_POSTGRESQL",
        "SUFFICE_SNOWFLAKE",
        "SUFFICE_AUDIT_POSTGRESQL",
        "SUFFICE_KERNELS",
        "SUFFICE_PAGES",
    }
)
"""Every variable that suffice reads."""


def examine_configuration(place: Settings) -> Iterator[Fact]:
    """Look at the profile and the variables; values that may hold a secret are never shown."""
    in_force = find_profile()
    if in_force is None:
        yield warning(
            "there is no deployment profile: whoever submits a run chooses its ledger and its store",
            'pin a deployment: the documentation\'s page "How to pin a deployment"',
        )
    else:
        yield ok(f"the deployment profile is {in_force.path} ({in_force.origin})")
        named = os.environ.get(CONFIG)
        if in_force.origin != "environment" and named and named != in_force.path:
            yield warning(f"{CONFIG} is set and ignored: it names another profile", "unset it")
    yield ok(f"ledger {redacted(place.ledger)}, store {redacted(place.store)}, cluster {place.cluster}")
    yield ok(f"log lines are {log_setting().value}")
    if spool_path(place.ledger, place.spool) is None:
        yield problem(
            "no spool is named, and the ledger is no file that one could lie beside",
            "set SUFFICE_SPOOL, or spool in the profile, to a private directory on a local disk",
        )
    if ledger_identity(place.ledger).has_password:
        yield warning(
            "the ledger's URL holds a password, which other programs of this user can read",
            "leave it out, and name a password file in PGPASSFILE",
        )
    unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in KNOWN)
    if unknown:
        yield warning(
            f"no variables of suffice: {', '.join(unknown)}",
            'the documentation\'s page "Configuration" lists those that it reads',
        )
