"""Options: declared by dataclasses, parsed from words, refused in one line.

A command declares its options as a dataclass; the parameters of an algorithm become options too.
The package checks values, not this module, which does not need JAX.
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
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

from fmab_jax.errors import PlainText, PythonHelp, Refusal, did_you_mean, parse_number
from fmab_jax.parameters import UNSET, Flag, Kind, Parameter, Real, Unset, Whole

if TYPE_CHECKING:
    from fmab_jax.algorithms.base import Algorithm

_TEXT = Kind[str]()
Options = TypeVar("Options")


class Answered(Exception):
    """Help or the version is printed; the command ends."""


class Command(NamedTuple):
    """A command and the words of its options.

    Attributes:
        name: Its name, such as "fmab run cdp".
        options: Dataclass of its options.
        help: Its description.
        arguments: The words after its name.
        algorithms: The classes of its algorithms, if any.
    """

    name: str
    options: type
    help: str
    arguments: list[str]
    algorithms: tuple[type[Algorithm], ...] = ()


class Call(NamedTuple, Generic[Options]):
    """The call of a command.

    Attributes:
        options: Its options.
        command: The command.
        words: All words after ``fmab``.
        typed: Names of the options in the words, in their order.
        written: Paths of files that are written and whole; the command adds its own.
        stores: Folders of sweeps, which keep what is computed; the command adds its own.
    """

    options: Options
    command: Command
    words: list[str]
    typed: list[str]
    files: list[Path]
    stores: list[str]

    @property
    def plugins(self) -> list[str]:
        """Files and modules of ``--plugin``."""
        return split_plugins(self.words)[0]

    @property
    def algorithm(self) -> type[Algorithm]:
        """The class of the algorithm that the command's first word names."""
        return self.command.algorithms[0]


def split_plugins(words: list[str]) -> tuple[list[str], list[str]]:
    """Returns the plug-ins that words name, anywhere and several times, and the other words."""
    parser = Parser(prog="fmab", add_help=False, allow_abbrev=False)
    parser.add_argument("--plugin", action="append", default=[])
    space, others = parser.parse_known_args(words)
    return space.plugin, others


def value_of(kind: Kind, text: str) -> float | str | None:
    """Parses a word: a number if the kind is one, None for "none".

    Any other text stays a text, which the package's check refuses.
    """
    if kind.none_label is not None and text.lower() == "none":
        return None
    if isinstance(kind, (Real, Whole)):
        number = parse_number(text)
        return text if number is None else number
    return text


def option(
    default: object = MISSING,
    *,
    kind: Kind = _TEXT,
    metavar: str = "",
    default_text: str = "",
    help: str = "",
    word: bool = False,
) -> Any:
    """Declares an option; the text below the field is its help.

    Args:
        default: () for one or more values, a truth value for an option without any.
        kind: How a value is parsed and checked; a plain `Kind` takes any text.
        metavar: Placeholder of a value in help.
        default_text: How help tells the default; "" for the default itself.
        help: Help, instead of the text below the field.
        word: Whether it is positional.
    """
    metadata = {"kind": kind, "metavar": metavar or kind.metavar, "default_text": default_text}
    return dataclasses.field(default=default, metadata={**metadata, "help": help, "word": word})


def with_parameters(
    base: type,
    tables: Mapping[str, Mapping[str, Parameter]],
    defaults: Mapping[str, object],
    several: Collection[str],
) -> type:
    """Returns a dataclass with the options of a command and those of parameters.

    Args:
        base: Dataclass of the command's own options; one in its ``shared`` also sets the delta of a
            parameter of that name.
        tables: Parameters by option, in groups; the names are distinct.
        defaults: Defaults that differ from the parameters' own.
        several: Options that take several values; their default is then (), else `UNSET`.

    Raises:
        ValueError: If two parameters, or a parameter and an option, have one name.
    """
    names = {field.name for field in dataclasses.fields(base)}
    fields = []
    for parameters in tables.values():
        for name, parameter in parameters.items():
            if name in getattr(base, "shared", ()) and "mechanism" in parameters:
                continue  # the command's option sets it, too
            if name in names:
                line = f"{name}: must have a name of its own; rename the parameter"
                raise Refusal.line(line)
            names.add(name)
            default = find_default(parameter, defaults)
            default_text = "" if name in defaults else parameter.default_text
            if not default_text:
                default_text = "must be given" if default is UNSET else parameter.kind.text(default)
            declaration = option(
                () if name in several else UNSET,
                kind=parameter.kind,
                default_text=default_text,
                help=parameter.help,
            )
            fields.append((name, object, declaration))
    params = dataclasses.make_dataclass("Params", fields, frozen=True, kw_only=True)
    # The parameters come first.
    bases = (base, params)
    return dataclasses.make_dataclass("Options", [], bases=bases, frozen=True, kw_only=True)


def find_default(parameter: Parameter, defaults: Mapping[str, object]) -> object:
    """Returns the default of the command line for a parameter; UNSET for none."""
    if parameter.name in defaults:
        return defaults[parameter.name]
    return parameter.default if parameter.suggested is UNSET else parameter.suggested


def choose(
    word: str | None,
    choices: Collection[str],
    name: str,
    otherwise: str = "",
    noun: str = "command",
) -> str:
    """Returns a word if it is one of the choices.

    Args:
        word: The word; None for none.
        choices: The valid words.
        name: Command whose help lists them.
        otherwise: What else there is to do.
        noun: What a word names.

    Raises:
        Refusal: If it is not; the nearest is the remedy.
    """
    if word in choices:
        return str(word)
    remedy = did_you_mean(word or "", choices, f"see {name} --help{otherwise}", str)
    text = f"no {noun}" if word is None else visible(word)
    raise Refusal.line(f"{text}: must be one of {', '.join(choices)}; {remedy}")


def wants_help(words: Sequence[str]) -> bool:
    """Returns whether words ask for help."""
    return any(word in ("-h", "--help") for word in words)


def answer(name: str, usage: str, text: str) -> None:
    """Prints the help of a command with subcommands."""
    print(f"usage: {name} {usage}\n\n{textwrap.indent(text, '  ')}")
    raise Answered


class _Switch(argparse.Action):
    """Sets a truth value: ``--split`` or ``--no-split``; several of them add up."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        flag = option_strings[0]
        self.several = settings.pop("several")
        super().__init__([flag, f"--no-{flag[2:]}"], dest, nargs=0, **settings)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *values: Any
    ) -> None:
        """Sets, or adds, the value."""
        value, before = values[-1] == self.option_strings[0], getattr(namespace, self.dest, None)
        if before is not None and not self.several:
            parser.error(f"{values[-1]}: given with {self.option_strings[value]}; drop one")
        setattr(namespace, self.dest, [*(before or ()), value] if self.several else value)


class Parser(argparse.ArgumentParser):
    """Refuses in one line; argparse would print the usage and exit."""

    def error(self, message: str) -> NoReturn:
        """Raises the message as a `Refusal`."""
        raise Refusal.line(f"{message}; see {self.prog} --help")


def _build_parser(command: Command) -> argparse.ArgumentParser:
    """Builds the parser of a command's options; its dataclass holds the defaults."""
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
        several = isinstance(field.default, tuple)
        if several:
            settings["nargs"] = "+"
        if metadata["word"]:
            flag = field.name
        elif isinstance(metadata["kind"], Flag) or isinstance(field.default, bool):
            settings = {"action": _Switch, "several": several}
        else:
            settings["type"] = functools.partial(value_of, metadata["kind"])
        if not metadata["word"] and not isinstance(field.default, bool):
            text += (
                f" (default: {(metadata['default_text'] or str(field.default)).replace('%', '%%')})"
            )
        parser.add_argument(flag, help=text, **settings)
    # `main` has already read it; here it is only for help.
    text = "Load algorithms, laws or outputs of one's own; may be given several times."
    parser.add_argument("--plugin", metavar="FILE|MODULE", help=text)
    return parser


def parse(command: Command) -> tuple[object, list[str]]:
    """Parses the words of a command into options, and their names in order.

    Raises:
        Refusal: One line for unknown options, missing and surplus values, values out of range.
        Answered: If the words ask for help.
    """
    parser = _build_parser(command)
    if wants_help(command.arguments):
        parser.print_help()
        raise Answered
    # Underscores work as in Python.
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
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    for flag in flags:
        if flags.count(flag) > 1:
            raise Refusal.line(f"{flag}: given twice; write its values after one {flag}")
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in vars(space).items()}
    for field in dataclasses.fields(command.options):
        # Algorithms check their parameters, and lists are checked at use.
        if field.name in values and not isinstance(field.default, (tuple, bool, Unset)):
            kind, remedy = field.metadata["kind"], f"see {command.name} --help"
            kind.check(field.name, values[field.name], remedy)
    return command.options(**values), list(values)


def _read_help_texts(options: type) -> dict[str, str]:
    """Returns the texts below the fields of a dataclass and its bases."""
    help_texts: dict[str, str] = {}
    for owner in options.__mro__[::-1]:
        with contextlib.suppress(OSError, TypeError):  # a class without a source file
            definition = ast.parse(inspect.getsource(owner)).body[0]
            assert isinstance(definition, ast.ClassDef)
            for field, text in itertools.pairwise(definition.body):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    words = ast.literal_eval(text.value)
                    help_texts[ast.unparse(field.target)] = " ".join(words.split())
    return help_texts


def visible(word: str) -> str:
    """Returns a typed word, shortened, with escapes for unprintable characters."""
    word = word if len(word) <= 80 else f"{word[:77]}..."
    return word if word.isprintable() and word else repr(word)


@contextlib.contextmanager
def rename_fields(**names: str) -> Iterator[None]:
    """Renames the fields of refusals to the options of a command.

    Args:
        names: The option of each field.
    """
    try:
        yield
    except Refusal as error:
        raise error.renamed(names.get(error.field, error.field)) from None


def format_refusal(error: Refusal, command: Command | None) -> str:
    """Formats a refusal with options: ``--horizon 0`` instead of ``horizon=0``.

    Args:
        error: A refusal of the package.
        command: The command, whose options it may name; None if there is none yet.
    """
    # A part of a value, such as components[0], belongs to the whole option.
    remedy = error.remedy
    if isinstance(remedy, PythonHelp):
        is_own = command is not None and command.algorithms
        name = command.name if command and is_own else f"fmab run {remedy.algorithm}"
        remedy = f"see {name} --help"
        error = Refusal(error.field, PlainText(error.value), error.allowed, remedy)
    field = re.sub(r"^(problem|parameters)\.|\[\d+\]$", "", error.field)
    fields = dataclasses.fields(command.options) if command else ()
    options = {option.name: option for option in fields}
    if field not in options:
        return str(error)
    # Shells need quotes only for blanks at the ends; a missing value is left out.
    value = re.sub(r"^(['\"])(\S|\S.*\S)(\1|(?<=\.\.\.))$", r"\2", error.value)
    if error.allowed.startswith("given") and value in ("None", "<not given>"):
        value = ""
    # A positional word has no flag.
    flag = "" if options[field].metadata["word"] else format_flag(field)
    return f"{flag} {value}".strip() + f": must be {error.allowed}; {remedy}"


def format_flag(name: str) -> str:
    """Formats the name of a field as an option."""
    return f"--{name.replace('_', '-')}"
