"""The trusted side: from rows to exact sums, and the noise on them. Only releasing comes in here."""
