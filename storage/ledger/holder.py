"""Who holds a charge's lease: which process, of which machine, and whether that process is certainly gone.

A process is only known within its namespace of process ids: containers of one machine share its boot id,
and each counts its processes from one. So a holder is called dead only where machine, boot and namespace
are ours, and the process is gone, or another has its number. Of anything else nothing is known, and its
lease decides.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from suffice.storage.ledger.charge import Charge

_PROC = Path("/proc")
_MACHINE = Path("/etc/machine-id")
_STATE, _START = 0, 19
"""Fields of ``/proc/PID/stat`` after the program's name, which may hold spaces: the 3rd and the 22nd."""


def this_process() -> str:
    """Return what tells this process from every other, as JSON; ``{}`` where the system does not say."""
    place = _place()
    found = _stat(os.getpid())
    if place is None or found is None:
        return "{}"
    return json.dumps({**place, "pid": os.getpid(), "start": found[_START]}, sort_keys=True)


def is_gone(process: str) -> bool:
    """Tell whether the process that :func:`this_process` described has certainly ended."""
    try:
        stated = json.loads(process)
        place = {name: stated[name] for name in ("machine", "boot", "namespace")}
        pid, start = int(stated["pid"]), str(stated["start"])
    except (ValueError, KeyError, TypeError):
        return False
    if place != _place() or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # it is there, and another user's
    found = _stat(pid)
    # A process that ended, and that its parent has not asked about, is still listed.
    return found is not None and (found[_START] != start or found[_STATE] in {"Z", "X"})


def is_held(charge: Charge, now: datetime) -> bool:
    """Tell whether a charge's lease holds: it has not passed, and its holder is not known to be dead."""
    return charge.lease_expires > now and not is_gone(charge.holder_process)


def _place() -> dict[str, str] | None:
    """Return what a process id counts in; None where the system does not say."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = os.readlink(_PROC / "self/ns/pid")  # noqa: PTH115 - a name, which leads to no file
    except (OSError, ValueError):
        return None
    machine = ""
    with contextlib.suppress(OSError, ValueError):
        machine = _MACHINE.read_text(encoding="ascii").strip()
    return {"machine": machine, "boot": boot, "namespace": namespace} if boot and namespace else None


def _stat(pid: int) -> list[str] | None:
    """Return the fields of a process behind its name; None where they cannot be read."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > _START else None
