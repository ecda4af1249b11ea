"""Options: derived from dataclasses, read from words, refused in one line.

A command states its options as a dataclass; those of an algorithm are made from its parameters.
What a value may be is decided, and refused, where the package checks it. Nothing here needs JAX.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import shlex
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro
from tyro.conf import arg
from tyro.constructors import PrimitiveConstructorSpec

from fmab_jax.errors import Refusal, did_you_mean, number_of
from fmab_jax.parameters import UNSET, Flag, Kind, Parameter, Real, Whole, parameters_of


class Answered(Exception):
    """Help, or the version, was all that was asked for, and it is printed."""


class Contradicted(Exception):
    """What was claimed is wrong, and all that was asked for is printed; says what."""


class Command(NamedTuple):
    """A command, and the words that are left for its options.

    Attributes:
        name: As it is typed, such as "fmab run cdp".
        options: Dataclass of its options; ``words`` on it names those that stand without "--", the
            last with "..." where it may stand several times.
        help: Its description.
        rest: Words.
        subject: The class of the algorithm that is named, if one is.
    """

    name: str
    options: type
    help: str
    rest: list[str]
    subject: Any = None


class Call(NamedTuple):
    """What a command is called with.

    Attributes:
        options: Its options.
        command: The command.
        words: All words after ``fmab``.
        written: Paths of files that are written and whole; the command adds its own.
    """

    options: Any
    command: Command
    words: list[str]
    written: list[Path]


def read(kind: Kind, text: str) -> Any:
    """Reads a word: a number or a truth value where the kind is one, None for "none".

    Any other text stays, for the package's own check to refuse.
    """
    if kind.none is not None and text.lower() == "none":
        return None
    if isinstance(kind, Flag) and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if isinstance(kind, (Real, Whole)):
        number = number_of(text)
        return text if number is None else number
    return text


def typed(kind: Kind) -> Any:
    """Returns a type for tyro whose values `read` reads."""
    spec = PrimitiveConstructorSpec(
        nargs=1,
        metavar=kind.metavar,
        instance_from_str=lambda texts: read(kind, texts[0]),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(value)],
    )
    return Annotated[Any, spec]


def shown(default: str) -> Any:
    """Has help tell a default in these words."""
    return arg(help_behavior_hint=f"(default: {default})")


Number = typed(Real())
Count = typed(Whole())
Off = tyro.conf.FlagCreatePairsOff


def with_parameters(
    base: type, owners: Sequence[type], usual: Mapping[str, Any], *, several: bool, command: str
) -> type:
    """Returns a dataclass with the options of a command and those of some described dataclasses.

    Args:
        base: Dataclass of the command's own options.
        owners: Whose parameters become options.
        usual: Defaults that differ from the parameters' own.
        several: Whether an option takes several values; then it is () where it is not given, else
            `UNSET`.
        command: Such as "fmab run cdp"; kept as ``command`` on the class, for refusals.

    Raises:
        ValueError: If two parameters, or a parameter and an option, have one name.
    """
    taken = {field.name for field in dataclasses.fields(base)}
    made = []
    for owner in owners:
        for name, each in parameters_of(owner).items():
            if name in taken:
                told = f"{owner.__name__}.{name}: must have a name of its own; rename the parameter"
                raise Refusal.line(told)
            taken.add(name)
            value = typed(each.kind)
            about = arg(
                help=each.help,
                metavar=each.kind.metavar,
                help_behavior_hint=f"(default: {_default_text(each, usual)})",
            )
            kind: Any = tuple[value, ...] if several else value  # type: ignore[valid-type]
            field = dataclasses.field(default=() if several else UNSET)
            made.append((name, Annotated[kind, about], field))
    own = dataclasses.make_dataclass("Own", made, frozen=True, kw_only=True)
    space = {"command": command}
    return dataclasses.make_dataclass(
        "Options", [], bases=(base, own), namespace=space, frozen=True, kw_only=True
    )


def default_of(parameter: Parameter, usual: Mapping[str, Any]) -> Any:
    """Returns what the command line takes where a parameter is not given; UNSET for nothing."""
    if parameter.name in usual:
        return usual[parameter.name]
    return parameter.default if parameter.suggested is UNSET else parameter.suggested


def _default_text(parameter: Parameter, usual: Mapping[str, Any]) -> str:
    if parameter.shown and parameter.name not in usual:
        return parameter.shown
    default = default_of(parameter, usual)
    return "must be given" if default is UNSET else parameter.kind.text(default)


def chosen(word: str | None, choices: Collection[str], name: str) -> str:
    """Returns a word that is one of the choices.

    Raises:
        Refusal: If it is not; the nearest is the remedy.
    """
    if word in choices:
        return str(word)
    remedy = did_you_mean(word or "", choices, f"see {name} --help", str)
    told = "no command" if word is None else visible(word)
    raise Refusal.line(f"{told}: must be one of {', '.join(choices)}; {remedy}")


def wants_help(words: Sequence[str]) -> bool:
    """Tells whether words ask for help."""
    return any(word in ("-h", "--help") for word in words)


def answer(name: str, usage: str, text: str) -> None:
    """Prints help of a command that has others below it."""
    print(f"usage: {name} {usage}\n\n{textwrap.indent(text, '  ')}")
    raise Answered


def parse(command: Command) -> Any:
    """Returns the options that the words state.

    Raises:
        Refusal: One line for words that make no sense.
        Answered: If help was asked for.
    """
    rest = command.rest
    if wants_help(rest):
        rest = ["--help"]
    else:
        _check_words(command)
    # Whatever tyro still has to say goes into one line as well.
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                command.options,
                prog=command.name,
                # tyro keeps the line breaks before indented lines only.
                description=textwrap.indent(command.help.rstrip(), "  ", lambda line: True),
                args=rest,
                config=(tyro.conf.OmitArgPrefixes,),
            )
    except SystemExit as end:
        if not end.code:
            raise Answered from None
        told = re.sub(r"\x1b\[[0-9;]*m|[^\x20-\x7e]+", " ", said.getvalue())
        raise Refusal.line(f"{command.name}: must be words that make sense; {told}") from None


def _check_words(command: Command) -> None:
    """Refuses unknown and repeated options, missing and surplus values."""
    name = command.name
    takes = {name: "options only"}
    wanted: dict[str, str] = getattr(command.options, "words", {})
    for field in dataclasses.fields(command.options):
        if field.name in wanted:
            continue
        option = "--" + field.name.replace("_", "-")
        if isinstance(field.default, bool):
            takes[option] = "no value"
            if field.default:
                takes["--no-" + option[2:]] = "no value"
        else:
            several = isinstance(field.default, tuple)
            takes[option] = "one or more values" if several else "one value"
    # Every option with the words after it; words before any option belong to the command.
    given = [[name]]
    for word in command.rest:
        if word.startswith("--"):
            spelling, *values = word.split("=", 1)
            given.append([spelling.replace("_", "-"), *values])
        elif word.startswith("-") and number_of(word) is None:
            meant = f"-{word}" * (len(word) > 3)
            remedy = did_you_mean(meant, takes, f"see {name} --help", str)
            remedy += f"; a file of that name is ./{visible(word)}"
            raise Refusal.line(f"{visible(word)}: must be an option of {name}; {remedy}")
        else:
            given[-1].append(word)
    if wanted:
        named, given[0] = given[0][1:], [name]
        # The last may stand several times: "PATH...".
        repeated = list(wanted.values())[-1].endswith("...")
        if len(named) < len(wanted) or (len(named) > len(wanted) and not repeated):
            told = " ".join([name, *map(visible, named)])
            listed = " and ".join(wanted.values())
            raise Refusal.line(f"{told}: must be given {listed}; see {name} --help")
    for place, (option, *values) in enumerate(given):
        if option not in takes:
            near = [known for known in takes if known.startswith(option)]
            remedy = did_you_mean(option, near or takes, f"see {name} --help", str)
            raise Refusal.line(f"{visible(option)}: must be an option of {name}; {remedy}")
        if any(option == other for other, *_ in given[:place]):
            remedy = f"several values go after one {option}"
            if takes[option] != "one or more values":
                remedy = "drop one of them"
            raise Refusal.line(f"{option}: must be given once; {remedy}")
        fits = {"one value": len(values) == 1, "one or more values": bool(values)}
        if not fits.get(takes[option], not values):
            told = " ".join([option, *map(visible, values)])
            raise Refusal.line(f"{told}: must be given with {takes[option]}; see {name} --help")


def as_word(path: str) -> str:
    """Returns a path as a shell hands it over, and no command takes for an option."""
    return shlex.quote(os.path.join(os.curdir, path) if path.startswith("-") else path)


def visible(word: str) -> str:
    """Returns a word as typed, cut, with what cannot be printed spelt out."""
    return word[:80] if word.isprintable() and word else repr(word[:80])


@contextlib.contextmanager
def spelt(options: Any, **other: str) -> Iterator[None]:
    """Spells the fields in the package's refusals as options: ``--horizon 0`` for ``horizon=0``.

    Args:
        options: Whose fields are options.
        other: The option of a field that is called otherwise.
    """
    names = {field.name: field.name for field in dataclasses.fields(options)} | other
    try:
        yield
    except Refusal as error:
        field = error.field.removeprefix("problem.").removeprefix("parameters.")
        if field not in names:
            raise
        name = names[field]
        # A word of the command's own has no option before it.
        option = "" if name in getattr(options, "words", {}) else f"--{name.replace('_', '-')}"
        command = getattr(options, "command", "")
        raise Refusal.line(error.spelt(option, names, command)) from None
