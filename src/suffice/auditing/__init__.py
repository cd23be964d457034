"""An audit of a spec as it is configured: hostile neighbours, real releases, and mutants that must be found.

No row of the user's is read. A process of its own makes data sets that differ in one unit, carries them
through the spec's kind of source on a scratch ledger, and compares all that a release shows.
"""
