"""Options: derived from dataclasses, read from words, refused in one line.

A command states its options as a dataclass; those of an algorithm are made from its parameters.
What a value may be is decided, and refused, where the package checks it. Nothing here needs JAX.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import functools
import inspect
import itertools
import os
import re
import shlex
import shutil
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from fmab_jax.errors import Refusal, did_you_mean, number_of
from fmab_jax.parameters import UNSET, Flag, Kind, Parameter, Real, Whole, parameters_of

_TEXT = Kind()
# What Python and other tools call an option.
_MEANT = {"--store": "--out", "--output": "--out", "--path": "--out"}


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
        typed: Names of the options that are given, in their order.
        written: Paths of files that are written and whole; the command adds its own.
        stores: Folders of sweeps, which keep what is computed; the command adds its own.
    """

    options: Any
    command: Command
    words: list[str]
    typed: list[str]
    written: list[Path]
    stores: list[str]


def value_of(kind: Kind, text: str) -> Any:
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


class About(NamedTuple):
    """What is known of an option besides its name and default.

    Attributes:
        help: A sentence for people; "" where it stands below the field.
        kind: How its words are read; a `Kind` itself takes any text.
        metavar: What stands for a value in help.
        shown: How help tells the default; "" for the default itself.
    """

    help: str
    kind: Kind
    metavar: str
    shown: str


def option(
    default: Any = MISSING,
    *,
    kind: Kind = _TEXT,
    metavar: str = "",
    shown: str = "",
    help: str = "",
) -> Any:
    """Declares a field that is an option; its help is the text below it.

    Args:
        default: () for one or more values, a truth value for an option without any.
        kind: How a value is read.
        metavar: What stands for a value in help.
        shown: How help tells the default.
        help: In place of a text below it.
    """
    about = About(help, kind, metavar or kind.metavar, shown)
    return dataclasses.field(default=default, metadata={"about": about})


def with_parameters(
    base: type, owners: Sequence[type], usual: Mapping[str, Any], *, several: bool
) -> type:
    """Returns a dataclass with the options of a command and those of some described dataclasses.

    Args:
        base: Dataclass of the command's own options.
        owners: Whose parameters become options.
        usual: Defaults that differ from the parameters' own.
        several: Whether an option takes several values; then it is () where it is not given, else
            `UNSET`.

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
            default = () if several else UNSET
            told = _default_text(each, usual)
            field = option(default, kind=each.kind, shown=told, help=each.help)
            made.append((name, Any, field))
    own = dataclasses.make_dataclass("Own", made, frozen=True, kw_only=True)
    # The parameters come first.
    return dataclasses.make_dataclass("Options", [], bases=(base, own), frozen=True, kw_only=True)


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


def chosen(word: str | None, choices: Collection[str], name: str, otherwise: str = "") -> str:
    """Returns a word that is one of the choices.

    Raises:
        Refusal: If it is not; the nearest is the remedy.
    """
    if word in choices:
        return str(word)
    remedy = did_you_mean(word or "", choices, f"see {name} --help{otherwise}", str)
    told = "no command" if word is None else visible(word)
    raise Refusal.line(f"{told}: must be one of {', '.join(choices)}; {remedy}")


def wants_help(words: Sequence[str]) -> bool:
    """Tells whether words ask for help."""
    return any(word in ("-h", "--help") for word in words)


def answer(name: str, usage: str, text: str) -> None:
    """Prints help of a command that has others below it."""
    print(f"usage: {name} {usage}\n\n{textwrap.indent(text, '  ')}")
    raise Answered


class _Parser(argparse.ArgumentParser):
    """Refuses in one line where argparse would print the usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise Refusal.line(f"{message}; see {self.prog} --help")


class _Once(argparse.Action):
    """Keeps the values of an option, in the order of the options; refuses one that stands twice."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        space: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        if option and self.dest in vars(space):
            remedy = "several values go after one" if self.nargs == "+" else "drop one of them"
            remedy = f"{remedy} {option}" if self.nargs == "+" else remedy
            raise Refusal.line(f"{option}: must be given once; {remedy}")
        if self.nargs == 0:
            values = not str(option).startswith("--no-")
        setattr(space, self.dest, tuple(values) if isinstance(values, list) else values)


def _parser(command: Command) -> argparse.ArgumentParser:
    """Returns the parser of a command's options, whose defaults its dataclass fills in."""
    words: dict[str, str] = getattr(command.options, "words", {})
    width = min(100, shutil.get_terminal_size().columns)
    parser = _Parser(
        prog=command.name,
        usage=" ".join([command.name, *words.values(), "[options]"]),
        description=textwrap.indent(command.help.rstrip(), "  "),
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=8, width=width
        ),
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    # Numbers such as -1e-3 and -inf are values, not options.
    parser._negative_number_matcher = re.compile(r"-(\.?\d|inf|nan)", re.I)
    texts = _texts(command.options)
    for field in dataclasses.fields(command.options):
        about: About = field.metadata["about"]
        text = (about.help or texts[field.name]).replace("%", "%%")
        read = functools.partial(value_of, about.kind)
        if field.name in words:
            metavar = words[field.name].removesuffix("...")
            several: Any = "+" if words[field.name].endswith("...") else None
            parser.add_argument(field.name, metavar=metavar, nargs=several, action=_Once, help=text)
            continue
        flags = [flag_of(field.name)]
        how: dict[str, Any] = {"nargs": 0}
        if field.default is True:
            flags.append(f"--no-{flags[0][2:]}")
        if not isinstance(field.default, bool):
            default = (about.shown or str(field.default)).replace("%", "%%")
            text += f" (default: {default})"
            several = "+" if isinstance(field.default, tuple) else None
            how = {"nargs": several, "metavar": about.metavar, "type": read}
        parser.add_argument(*flags, dest=field.name, action=_Once, help=text, **how)
    return parser


def parse(command: Command) -> tuple[Any, list[str]]:
    """Returns the options that the words state, and the names of those given, in their order.

    Raises:
        Refusal: One line for unknown and repeated options, missing and surplus values.
        Answered: If help was asked for.
    """
    parser = _parser(command)
    if wants_help(command.rest):
        parser.print_help()
        raise Answered
    # Options may be spelled as Python spells them.
    words = [re.sub(r"^--[^=]*", lambda m: m[0].replace("_", "-"), w) for w in command.rest]
    space, rest = parser.parse_known_args(words)
    if rest and not rest[0].startswith("-"):
        line = f"{visible(rest[0])}: must stand after an option that takes it"
        raise Refusal.line(f"{line}; see {command.name} --help")
    if rest:
        option = rest[0].split("=")[0]
        names = [field.name.replace("_", "-") for field in dataclasses.fields(command.options)]
        # An option that is cut short is nearest to the ones that begin so.
        word = _MEANT.get(option, option).lstrip("-")
        near = [name for name in names if name.startswith(word)] or names
        otherwise = getattr(command.options, "otherwise", f"see {command.name} --help")
        remedy = did_you_mean(word, near, otherwise, "--{}".format)
        raise Refusal.line(f"{visible(rest[0])}: must be an option of {command.name}; {remedy}")
    return command.options(**vars(space)), list(vars(space))


def _texts(options: type) -> dict[str, str]:
    """Returns the texts below the fields of a dataclass and its bases."""
    found: dict[str, str] = {}
    for owner in options.__mro__[::-1]:
        with contextlib.suppress(OSError, TypeError):  # of a class that no file holds
            body: Any = ast.parse(inspect.getsource(owner)).body[0]
            for field, text in itertools.pairwise(body.body):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    said = ast.literal_eval(text.value)
                    found[ast.unparse(field.target)] = " ".join(said.split())
    return found


def as_word(path: str) -> str:
    """Returns a path as a shell hands it over, and no command takes for an option."""
    return shlex.quote(os.path.join(os.curdir, path) if path.startswith("-") else path)


def visible(word: str) -> str:
    """Returns a word as typed, cut, with what cannot be printed spelt out."""
    word = word if len(word) <= 80 else f"{word[:77]}..."
    return word if word.isprintable() and word else repr(word)


@contextlib.contextmanager
def called(**names: str) -> Iterator[None]:
    """Has refusals name the options of fields that the command calls otherwise.

    Args:
        names: The option of each field.
    """
    try:
        yield
    except Refusal as error:
        raise error.renamed(names.get(error.field, error.field)) from None


def spelt(error: Refusal, call: Call | None) -> str:
    """Says a refusal in the words of the command line: ``--horizon 0`` for ``horizon=0``.

    Args:
        error: Of whatever the package refuses.
        call: The command; None where there is none yet.
    """
    if call is None:
        return str(error)
    # A part of a value, such as components[0], is told by the option that it was given to.
    field = re.sub(r"^(problem|parameters)\.|\[\d+\]$", "", error.field)
    if field not in {option.name for option in dataclasses.fields(call.options)}:
        return str(error)
    # A word of the command's own has no option before it.
    return error.typed("" if field in getattr(call.options, "words", {}) else flag_of(field))


def flag_of(name: str) -> str:
    """Returns how a field is written as an option."""
    return f"--{name.replace('_', '-')}"
