"""The calls: each is a command of the program."""
import functools
import json
import os
import sys

from ._program import InputError, ProgramError, RunError, execute, program
from ._result import Result


def compare(experiment, /, *, quiet=False, **flags):
    """Measure an experiment, and return a Result. Keywords are flags of the program."""
    return _document(["compare", experiment], flags, quiet)


def run(scenario, /, *, quiet=False, **flags):
    """Run a scenario, a YAML file, and return a Result."""
    return _document(["run", os.fspath(scenario)], flags, quiet)


def read(path):
    """Return the Result in a JSON document of spinsim, as save() writes it."""
    with open(path, "rb") as file:
        document = file.read()
    try:
        return Result(document, _columns)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("%s is no JSON document of spinsim with rows" % path) from error


def experiments():
    """Return what compare can measure: dicts by name, with axes, columns, slots."""
    return {e["name"]: e for e in _listing(program())["experiments"]}


def slots(experiment):
    """Return the slots of an experiment for handler modules: dicts with name,
    library, handlers and contract. They are keys of compare(handler={...}).
    """
    known = experiments()
    if experiment not in known:
        command("compare", experiment, "--slots", quiet=True)  # its error names what is near
        raise InputError("%r is no experiment" % experiment)
    return known[experiment]["slots"]


def command(*arguments, output=None, quiet=False):
    """Run any command, and return the text that it prints: command("version").

    With output, a path, the bytes go into that file: a Parquet file for pandas is
    command("compare", "hpus", "--format=parquet", output="hpus.parquet").
    """
    status, printed, messages = execute([os.fspath(a) for a in arguments], quiet)
    if status:
        raise _error(status, messages)
    if messages and not quiet:
        print(messages, file=sys.stderr)
    if output is None:
        return printed.decode()
    with open(output, "wb") as file:
        file.write(printed)
    return None


def _document(arguments, flags, quiet):
    if "format" in flags:
        raise InputError("format: a Result is always read from JSON; command() prints other formats")
    status, document, messages = execute([*arguments, "--format=json", *_arguments(flags)], quiet)
    try:
        result = Result(document, _columns) if document else None
    except (ValueError, KeyError) as error:
        raise InputError("these flags print no rows; command() returns the text") from error
    if status:
        raise _error(status, messages, result)
    if result is None and "part" not in flags:  # part=... measures, and shows no table
        raise ProgramError("%s has printed nothing: expected the program spinsim" % program())
    if messages and not quiet:
        print(messages, file=sys.stderr)
    return result


def _error(status, messages, result=None):
    message = messages[len("spinsim: "):] if messages.startswith("spinsim: ") else messages
    if status == 2:
        return InputError(message, status)
    return RunError(message or "ended with status %d" % status, status, result)


def _arguments(flags):
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, dict):
            yield from ("%s=%s=%s" % (flag, key, _text(one)) for key, one in value.items())
        elif value is not None:
            yield "%s=%s" % (flag, _text(value))


def _text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "__iter__") and not isinstance(value, (str, bytes)):
        return ",".join(_text(one) for one in value)
    return str(value)


@functools.lru_cache(maxsize=4)
def _listing(_):
    return json.loads(command("compare", "--format", "json", quiet=True))


def _columns(name):
    listing = _listing(program())
    if name == "run":
        return listing["run"]["columns"]
    return next((e["columns"] for e in listing["experiments"] if "compare " + e["name"] == name), [])
