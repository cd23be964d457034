"""What may be asked of a release, at no cost in privacy. Nothing in here sees a row or an exact sum."""
