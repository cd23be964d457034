"""What is said, summed and published: the declared document, exact statistics, noisy statistics."""
