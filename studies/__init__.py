"""Studies of the literature's results and mechanisms, on simulated or public data. Not part of the package.

Each study is one file with ``run(out, seed, size)``: it writes PNG and CSV to a folder. What a mechanism of
``studies.mechanisms`` returns is not a release: it has no ledger, and nobody pays for it.
"""
