"""The command ``fmab``, which is ``python -m fmab_jax`` as well."""

import sys


def main() -> int:
    """Runs the command line; returns the exit status, 130 after Ctrl-C."""
    try:
        from fmab_jax.cli.main import main
    except KeyboardInterrupt:  # imports take half a second
        print("fmab: stopped; nothing written", file=sys.stderr)
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(main())
