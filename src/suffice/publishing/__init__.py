"""From a question about releases to published answers: files of posteriors, whole or a part at a time."""
