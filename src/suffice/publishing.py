"""Publish posteriors: the plain function that orders request, computation, files and store."""
