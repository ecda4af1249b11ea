"""Options: declared by dataclasses and parameters, parsed from words, refused in one line.

A command declares its own options as a dataclass. The parameters of algorithms and studies become
options too; the package checks their values, not this module, which does not need JAX.
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
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

from fmab_jax.errors import Refusal, did_you_mean, parse_number
from fmab_jax.parameters import UNSET, Flag, Kind, Parameter, Real, Whole

if TYPE_CHECKING:
    from fmab_jax.algorithms.base import Algorithm

_TEXT = Kind[str]()
OwnOptions = TypeVar("OwnOptions")


class Answered(Exception):
    """Help or the version is printed; the command ends."""


@dataclass(frozen=True)
class NoOptions:
    """A command without options of its own."""


class Option(NamedTuple):
    """How an option is parsed and described.

    Attributes:
        kind: How a value is parsed and checked; a plain `Kind` takes any text.
        metavar: Placeholder of a value in help.
        default_text: How help states the default; "" for no default.
        help: One line.
        takes_list: Whether several words are its value.
        is_switch: Whether it is a truth value, which no word follows.
        is_word: Whether it is positional.
    """

    kind: Kind
    metavar: str
    default_text: str
    help: str
    takes_list: bool = False
    is_switch: bool = False
    is_word: bool = False


class Command(NamedTuple):
    """A command and the words of its options.

    Attributes:
        name: Its name, such as "fmab run cdp".
        options: Dataclass of its own options.
        help: Its description.
        arguments: The words after its name.
        parameters: Parameters of algorithms, problem and study that are options as well, by option.
        defaults: Defaults that differ from the parameters' own.
        lists: Options of parameters that take several values.
        algorithms: The classes of its algorithms, if any.
    """

    name: str
    options: type
    help: str
    arguments: list[str]
    parameters: Mapping[str, Parameter] = {}
    defaults: Mapping[str, object] = {}
    lists: Collection[str] = ()
    algorithms: tuple[type[Algorithm], ...] = ()


class Call(NamedTuple, Generic[OwnOptions]):
    """The call of a command.

    Attributes:
        options: The command's own options.
        command: The command.
        words: All words after ``fmab``.
        values: The values of parameters, in the order of the words; a list for several words.
        files: Paths of files that are written and whole; the command adds its own.
        stores: Folders of sweeps, which keep what is computed; the command adds its own.
    """

    options: OwnOptions
    command: Command
    words: list[str]
    values: dict[str, Any]
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
        kind: As in `Option`.
        metavar: As in `Option`.
        default_text: How help states the default; "" for the default itself.
        help: Help, instead of the text below the field.
        word: Whether it is positional.
    """
    is_list, is_switch = isinstance(default, tuple), isinstance(default, bool)
    text = "" if word or is_switch else default_text or str(default)
    settings = kind, metavar or kind.metavar, text, help, is_list, is_switch, word
    return dataclasses.field(default=default, metadata={"option": Option(*settings)})


def list_options(command: Command) -> dict[str, Option]:
    """Returns the options of a command by name, those of parameters first."""
    options = {}
    for name, parameter in command.parameters.items():
        default = find_default(parameter, command.defaults)
        text = "" if name in command.defaults else parameter.default_text
        if not text:
            text = "must be given" if default is UNSET else parameter.kind.text(default)
        kind, is_list = parameter.kind, name in command.lists
        is_switch = isinstance(kind, Flag)
        options[name] = Option(kind, kind.metavar, text, parameter.help, is_list, is_switch)
    texts = _read_help_texts(command.options)
    for field in dataclasses.fields(command.options):
        declared = field.metadata["option"]
        options[field.name] = declared._replace(help=declared.help or texts[field.name])
    return options


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


class Parser(argparse.ArgumentParser):
    """Refuses in one line; argparse would print the usage and exit."""

    def error(self, message: str) -> NoReturn:
        """Raises the message as a `Refusal`."""
        raise Refusal.line(f"{message}; see {self.prog} --help")


def _build_parser(command: Command, options: Mapping[str, Option]) -> argparse.ArgumentParser:
    """Builds the parser of a command's options."""
    words = [o.metavar + "..." * o.takes_list for o in options.values() if o.is_word]
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
    for name, item in options.items():
        settings: dict[str, Any] = {"metavar": item.metavar}
        settings["type"] = functools.partial(value_of, item.kind)
        if item.takes_list:
            settings["nargs"] = "+"
        if item.is_switch:
            settings = {"action": argparse.BooleanOptionalAction}
        text = item.help + f" (default: {item.default_text})" * bool(item.default_text)
        flag = name if item.is_word else format_flag(name)
        parser.add_argument(flag, help=text.replace("%", "%%"), **settings)
    # `main` has already read it; here it is only for help.
    text = "Load algorithms, laws or outputs of one's own; may be given several times."
    parser.add_argument("--plugin", metavar="FILE|MODULE", help=text)
    return parser


def parse(command: Command) -> tuple[Any, dict[str, Any]]:
    """Parses the words of a command into its own options, and the values of parameters in order.

    Raises:
        Refusal: One line for unknown options, missing and surplus values, values out of range.
        Answered: If the words ask for help.
    """
    options = list_options(command)
    parser = _build_parser(command, options)
    if wants_help(command.arguments):
        parser.print_help()
        raise Answered
    # Underscores work as in Python.
    words = [re.sub(r"^--[^=]*", lambda m: m[0].replace("_", "-"), w) for w in command.arguments]
    space, extra = parser.parse_known_args(words)
    if extra and not extra[0].startswith("-"):
        taken = [item for name, item in options.items() if item.is_word and not item.takes_list]
        line = "must stand after an option that takes a value; flags take none"
        if taken and extra[0] in itertools.takewhile(lambda word: word[:1] != "-", words):
            line = f"must be left out: {command.name} takes one {taken[0].metavar}"
        raise Refusal.line(f"{visible(extra[0])}: {line}; see {command.name} --help")
    if extra:
        names = [name.replace("_", "-") for name in options]
        word, otherwise = extra[0].split("=")[0].lstrip("-"), f"see {command.name} --help"
        remedy = did_you_mean(word, names, otherwise, "--{}".format)
        raise Refusal.line(f"{visible(extra[0])}: must be an option of {command.name}; {remedy}")
    flags = [re.sub("^--no-", "--", word.split("=")[0]) for word in words if word[:2] == "--"]
    for flag in flags:
        if flags.count(flag) > 1:
            raise Refusal.line(f"{flag}: given twice; write its values after one {flag}")
    values = vars(space)
    own = {name: values.pop(name) for name in [*values] if name not in command.parameters}
    for name, value in own.items():
        if options[name].takes_list:
            own[name] = tuple(value)
        elif not options[name].is_switch:
            options[name].kind.check(name, value, f"see {command.name} --help")
    return command.options(**own), values


def list_changed(options: Any, skip: Collection[str] = ()) -> dict[str, object]:
    """Returns a command's own options that differ from their defaults, by name."""
    names = {field.name: field.default for field in dataclasses.fields(options)}
    values = {name: getattr(options, name) for name in names if name not in skip}
    return {name: value for name, value in values.items() if value != names[name]}


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
    field = re.sub(r"^(problem|parameters)\.|\[\d+\]$", "", error.field)
    options = list_options(command) if command else {}
    if field not in options:
        return str(error)
    # Shells need quotes only for blanks at the ends; a missing value is left out.
    value = re.sub(r"^(['\"])(\S|\S.*\S)(\1|(?<=\.\.\.))$", r"\2", error.value)
    if error.allowed.startswith("given") and value in ("None", "<not given>"):
        value = ""
    # A positional word has no flag.
    flag = "" if options[field].is_word else format_flag(field)
    return f"{flag} {value}".strip() + f": must be {error.allowed}; {error.remedy}"


def format_flag(name: str) -> str:
    """Formats the name of a field as an option."""
    return f"--{name.replace('_', '-')}"
