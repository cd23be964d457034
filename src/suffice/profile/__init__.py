"""What the operator of a deployment pins, and what a run takes from a profile, a parameter or a variable."""
