"""Where rows come from: one kind of source per file, behind one contract. A trusted room.

In: a spec, and what it names.
Out: Arrow batches of single partitions.
May import: spec and below.
"""
