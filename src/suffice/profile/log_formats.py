"""How a log may be written, and what says so; for both readers of it, one of which imports pydantic."""

LOG = "SUFFICE_LOG"
LOG_FORMATS = ("text", "json")
