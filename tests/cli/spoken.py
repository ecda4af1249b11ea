"""What a command says."""

import shlex

from fmab_jax.cli.main import main


def said(capsys, words, status=0):
    """Returns what a command writes to standard output and standard error."""
    capsys.readouterr()
    assert main(shlex.split(words)) == status, capsys.readouterr()
    return capsys.readouterr()


def number(text):
    return float(text.replace(",", ""))
