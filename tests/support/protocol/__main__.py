"""Print how each mutant breaks its promise, or those whose names hold the words that are given."""

from __future__ import annotations

import sys

from support.protocol.scenarios import LIMITS, MUTANTS
from support.protocol.search import search

for mutant in (*MUTANTS, *LIMITS):
    if all(word in mutant.name for word in sys.argv[1:]):
        result = search(mutant.rules, invariants=[mutant.breaks])
        sys.stdout.write(f"{mutant.name}, in {mutant.rules.name!r}: breaks {result.broken!r}\n")
        sys.stdout.write(f"{result}\n\n")
