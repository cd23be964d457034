"""Where tasks run: threads of this process, processes of this machine, or a cluster given by address.

In: an address.
Out: something that runs a graph of tasks.
May import: errors. It holds no data, so trusted rooms and consumers may both use it.
"""
