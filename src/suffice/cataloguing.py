"""Make a catalogue of stores: a static site from public files alone."""
