"""From noisy statistics, a family and a prior to distributions of its parameters."""
