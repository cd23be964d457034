"""Publications: answers to requests, below ``publications/`` in a store, the manifest last.

In: files and what they rest on.
Out: a folder named by its request; of two writers the first manifest wins.
May import: releases and below.
"""
