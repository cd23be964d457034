"""Posteriors of counts that were clipped to a public bound, by the law of sums of clipped records."""
