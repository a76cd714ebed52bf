"""Real programs around the package; what can be run has its own folder."""
