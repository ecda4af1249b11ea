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
import re
import shutil
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from fmab_jax.errors import Refusal, did_you_mean, parse_number
from fmab_jax.parameters import UNSET, Flag, Kind, Parameter, Real, Unset, Whole, parameters_of

_TEXT = Kind()


class Answered(Exception):
    """Help, or the version, was all that was asked for, and it is printed."""


class Contradicted(Exception):
    """What was claimed is wrong, and all that was asked for is printed; says what."""


class Command(NamedTuple):
    """A command, and the words that are left for its options.

    Attributes:
        name: As it is typed, such as "fmab run cdp".
        options: Dataclass of its options.
        help: Its description.
        rest: Words.
        subject: The class of the algorithm that is named, if one is.
    """

    name: str
    options: type
    help: str
    arguments: list[str]
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
    files: list[Path]
    stores: list[str]


def value_of(kind: Kind, text: str) -> Any:
    """Reads a word: a number or a truth value where the kind is one, None for "none".

    Any other text stays, for the package's own check to refuse.
    """
    if kind.none_label is not None and text.lower() == "none":
        return None
    if isinstance(kind, Flag) and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if isinstance(kind, (Real, Whole)):
        number = parse_number(text)
        return text if number is None else number
    return text


def option(
    default: Any = MISSING,
    *,
    kind: Kind = _TEXT,
    metavar: str = "",
    default_text: str = "",
    help: str = "",
    word: bool = False,
) -> Any:
    """Declares a field that is an option; its help is the text below it.

    Args:
        default: () for one or more values, a truth value for an option without any.
        kind: How a value is read, and what it may be; a `Kind` itself takes any text.
        metavar: What stands for a value in help.
        default_text: How help tells the default; "" for the default itself.
        help: In place of a text below it.
        word: Whether it stands without "--".
    """
    metadata = {"kind": kind, "metavar": metavar or kind.metavar, "default_text": default_text}
    return dataclasses.field(default=default, metadata={**metadata, "help": help, "word": word})


def with_parameters(
    base: type, owners: Sequence[type], defaults: Mapping[str, Any], *, allow_lists: bool
) -> type:
    """Returns a dataclass with the options of a command and those of some described dataclasses.

    Args:
        base: Dataclass of the command's own options.
        owners: Whose parameters become options.
        defaults: Defaults that differ from the parameters' own.
        allow_lists: Whether an option takes several values; its default is then (), else `UNSET`.

    Raises:
        ValueError: If two parameters, or a parameter and an option, have one name.
    """
    names = {field.name for field in dataclasses.fields(base)}
    fields = []
    for owner in owners:
        for name, parameter in parameters_of(owner).items():
            if name in names:
                line = f"{owner.__name__}.{name}: must have a name of its own; rename the parameter"
                raise Refusal.line(line)
            names.add(name)
            default = find_default(parameter, defaults)
            default_text = "" if name in defaults else parameter.default_text
            if not default_text:
                default_text = "must be given" if default is UNSET else parameter.kind.text(default)
            settings: Any = {
                "kind": parameter.kind,
                "default_text": default_text,
                "help": parameter.help,
            }
            fields.append((name, Any, option(() if allow_lists else UNSET, **settings)))
    params = dataclasses.make_dataclass("Params", fields, frozen=True, kw_only=True)
    # The parameters come first.
    bases = (base, params)
    return dataclasses.make_dataclass("Options", [], bases=bases, frozen=True, kw_only=True)


def find_default(parameter: Parameter, defaults: Mapping[str, Any]) -> Any:
    """Returns what the command line takes where a parameter is not given; UNSET for nothing."""
    if parameter.name in defaults:
        return defaults[parameter.name]
    return parameter.default if parameter.suggested is UNSET else parameter.suggested


def choose(word: str | None, choices: Collection[str], name: str, otherwise: str = "") -> str:
    """Returns a word that is one of the choices.

    Raises:
        Refusal: If it is not; the nearest is the remedy.
    """
    if word in choices:
        return str(word)
    remedy = did_you_mean(word or "", choices, f"see {name} --help{otherwise}", str)
    text = "no command" if word is None else visible(word)
    raise Refusal.line(f"{text}: must be one of {', '.join(choices)}; {remedy}")


def wants_help(words: Sequence[str]) -> bool:
    """Tells whether words ask for help."""
    return any(word in ("-h", "--help") for word in words)


def answer(name: str, usage: str, text: str) -> None:
    """Prints help of a command that has others below it."""
    print(f"usage: {name} {usage}\n\n{textwrap.indent(text, '  ')}")
    raise Answered


class Parser(argparse.ArgumentParser):
    """Refuses in one line where argparse would print the usage and exit."""

    def error(self, message: str) -> NoReturn:
        """Raises the message as a `Refusal`."""
        raise Refusal.line(f"{message}; see {self.prog} --help")


def _build_parser(command: Command) -> argparse.ArgumentParser:
    """Returns the parser of a command's options, whose defaults its dataclass fills in."""
    fields = dataclasses.fields(command.options)
    words = [
        field.metadata["metavar"] + "..." * isinstance(field.default, tuple)
        for field in fields
        if field.metadata["word"]
    ]
    width = min(100, shutil.get_terminal_size().columns)
    parser = Parser(
        prog=command.name,
        usage=" ".join([command.name, *words, "[options]"]),
        description=textwrap.indent(command.help.rstrip(), "  "),
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=8, width=width
        ),
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    # Numbers such as -1e-3 and -inf are values, not options.
    parser._negative_number_matcher = re.compile(r"-(\.?\d|inf|nan)", re.I)
    texts = _read_help_texts(command.options)
    for field in fields:
        metadata, flag = field.metadata, format_flag(field.name)
        text = (metadata["help"] or texts[field.name]).replace("%", "%%")
        settings: dict[str, Any] = {"metavar": metadata["metavar"]}
        if isinstance(field.default, tuple):
            settings |= {"nargs": "+", "action": "extend"}
        if metadata["word"]:
            flag = field.name
        elif isinstance(field.default, bool):
            # What is off needs no option that switches it off.
            settings = {"action": argparse.BooleanOptionalAction if field.default else "store_true"}
        else:
            settings["type"] = functools.partial(value_of, metadata["kind"])
            text += (
                f" (default: {(metadata['default_text'] or str(field.default)).replace('%', '%%')})"
            )
        parser.add_argument(flag, help=text, **settings)
    # Read before the command is known.
    text = "Load algorithms, laws or outputs of one's own; may be given several times."
    parser.add_argument("--plugin", metavar="FILE|MODULE", help=text)
    return parser


def parse(command: Command) -> tuple[Any, list[str]]:
    """Returns the options that the words state, and the names of those given, in their order.

    Raises:
        Refusal: One line for unknown options, missing and surplus values, values out of range.
        Answered: If help was asked for.
    """
    parser = _build_parser(command)
    if wants_help(command.arguments):
        parser.print_help()
        raise Answered
    # Options may be spelled as Python spells them.
    words = [re.sub(r"^--[^=]*", lambda m: m[0].replace("_", "-"), w) for w in command.arguments]
    space, extra = parser.parse_known_args(words)
    if extra and not extra[0].startswith("-"):
        line = f"{visible(extra[0])}: must stand after an option that takes it"
        raise Refusal.line(f"{line}; see {command.name} --help")
    if extra:
        names = [field.name.replace("_", "-") for field in dataclasses.fields(command.options)]
        word, otherwise = extra[0].split("=")[0].lstrip("-"), f"see {command.name} --help"
        remedy = did_you_mean(word, names, otherwise, "--{}".format)
        raise Refusal.line(f"{visible(extra[0])}: must be an option of {command.name}; {remedy}")
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in vars(space).items()}
    for field in dataclasses.fields(command.options):
        # The parameters of an algorithm are checked by it, and lists by who takes them.
        if field.name in values and not isinstance(field.default, (tuple, bool, Unset)):
            kind, remedy = field.metadata["kind"], f"see {command.name} --help"
            kind.check(field.name, values[field.name], remedy)
    return command.options(**values), list(values)


def _read_help_texts(options: type) -> dict[str, str]:
    """Returns the texts below the fields of a dataclass and its bases."""
    help_texts: dict[str, str] = {}
    for owner in options.__mro__[::-1]:
        with contextlib.suppress(OSError, TypeError):  # of a class that no file holds
            body: Any = ast.parse(inspect.getsource(owner)).body[0]
            for field, text in itertools.pairwise(body.body):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    words = ast.literal_eval(text.value)
                    help_texts[ast.unparse(field.target)] = " ".join(words.split())
    return help_texts


def visible(word: str) -> str:
    """Returns a word as typed, cut, with what cannot be printed spelt out."""
    word = word if len(word) <= 80 else f"{word[:77]}..."
    return word if word.isprintable() and word else repr(word)


@contextlib.contextmanager
def rename_fields(**names: str) -> Iterator[None]:
    """Has refusals name the options of fields that the command calls otherwise.

    Args:
        names: The option of each field.
    """
    try:
        yield
    except Refusal as error:
        raise error.renamed(names.get(error.field, error.field)) from None


def format_refusal(error: Refusal, command: Command | None) -> str:
    """Says a refusal in the words of the command line: ``--horizon 0`` for ``horizon=0``.

    Args:
        error: Of whatever the package refuses.
        command: Whose options it may name; None where there is none yet.
    """
    # A part of a value, such as components[0], is told by the option that it was given to.
    field = re.sub(r"^(problem|parameters)\.|\[\d+\]$", "", error.field)
    fields = dataclasses.fields(command.options) if command else ()
    options = {option.name: option for option in fields}
    if field not in options:
        return str(error)
    # A shell needs no quotes, but for blanks at the ends; what was not given is not shown.
    value = re.sub(r"^(['\"])(\S|\S.*\S)(\1|(?<=\.\.\.))$", r"\2", error.value)
    if error.allowed.startswith("given") and value in ("None", "<not given>"):
        value = ""
    # A word of the command's own has no option before it.
    flag = "" if options[field].metadata["word"] else format_flag(field)
    return f"{flag} {value}".strip() + f": must be {error.allowed}; {error.remedy}"


def format_flag(name: str) -> str:
    """Returns how a field is written as an option."""
    return f"--{name.replace('_', '-')}"
