"""Pages that people read: the card of a posterior, the catalogue, and their design.

In: releases, posteriors, publications.
Out: HTML without any reference to elsewhere.
May import: data_files and below.
"""
