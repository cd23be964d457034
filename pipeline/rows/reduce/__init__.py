"""The graph of tasks, and what travels between them. A trusted room.

In: splits of a source.
Out: exact sums, in the calling process.
May import: contribution and below; clusters are opened by the room `cluster`.
"""
