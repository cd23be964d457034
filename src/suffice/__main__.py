"""``python -m suffice``."""

from suffice.cli.app import main

if __name__ == "__main__":
    main()
