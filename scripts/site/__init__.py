"""The documentation site: pages laid out, references made from the code, built and versioned."""
