"""Plug-ins that are another algorithm but for a few methods, made where they are used."""

from dataclasses import dataclass


def altered(owner, **own):
    """Returns a class that is another one but for what is its own; static methods say so."""
    usual = {"__module__": __name__, "__doc__": "A plug-in.", "name": "altered"}
    return dataclass(frozen=True)(type("Altered", (owner,), usual | own))
