"""What records of merged cells add up to: posteriors of exact totals behind a sum of many noises."""
