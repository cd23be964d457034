"""Commands of Prefect, one after another in one process: ``python -m support.prefect_commands COMMANDS``.

Each is a list of words in a JSON list, as a shell would give it to ``prefect``. Printed last is, as JSON, the
exit status of each; the first that fails is the last.
"""

from __future__ import annotations

import json
import sys

from prefect.cli import app


def status(words: list[str]) -> int:
    """Run a command, and return its exit status."""
    sys.argv = ["prefect", *words]
    try:
        app()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    return 0


def main() -> None:
    """Run the commands."""
    statuses: list[int] = []
    for words in json.loads(sys.argv[1]):
        statuses.append(status(words))
        if statuses[-1]:
            break
    sys.stdout.write("\n" + json.dumps(statuses) + "\n")


if __name__ == "__main__":
    main()
