"""The literature's other mechanisms, to be studied. What they return is not a release.

No module here can reach a ledger, a store or a flow: an import contract and a test hold it to that.
"""
