"""`python -m detent.cli`, the same as `detent`."""

from __future__ import annotations

import sys

from detent.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
