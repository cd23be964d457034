"""What is known of parameters, whatever they belong to: moments, intervals, draws, contrasts of cells."""
