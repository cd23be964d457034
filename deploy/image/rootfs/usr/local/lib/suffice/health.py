"""Whether a container can work: the command starts, and what has to be written can be. Says no more.

`suffice doctor` looks at the ledger, the stores and the cluster as well; that takes longer, and a store that is
away for a minute is no reason to restart a worker.
"""

import os
import subprocess
import sys
import tempfile

for variable in ("TMPDIR", "HOME", "SUFFICE_SPOOL"):
    folder = os.environ.get(variable) or {"TMPDIR": "/tmp"}.get(variable)  # noqa: S108 - a mount of its own
    if not folder:
        continue
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0" * 4096)
    except OSError:
        sys.exit(f"{variable}: {folder} cannot be written: mount a volume there")
if subprocess.run(["suffice", "--version"], stdout=subprocess.DEVNULL, check=False).returncode:  # noqa: S607
    sys.exit("suffice does not start")
