"""``python -m fmab_jax`` is ``fmab``."""

import sys

from fmab_jax.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
