"""The program spinsim: where it is, and how it runs."""
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


class Error(Exception):
    """What spinsim says, with its exit status (None: it did not run)."""

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class ProgramError(Error):
    """There is no program to run."""


class InputError(Error):
    """A name, value or file is wrong. Nothing has run; the status is 2."""


class RunError(Error):
    """Something has failed. result: of what was measured, or None."""

    def __init__(self, message, status, result=None):
        super().__init__(message, status)
        self.result = result


def program():
    """Return the path of the program: SPINSIM, on PATH, or built from a clone.

    ProgramError says why there is none.
    """
    named = os.environ.get("SPINSIM")
    found = shutil.which(named or "spinsim")
    if found:
        return found
    if named:
        raise ProgramError("SPINSIM=%s is not a program" % named)
    for start in (pathlib.Path.cwd(), pathlib.Path(__file__).resolve().parent):
        for folder in (start, *start.parents):
            if (folder / "cmd" / "spinsim" / "main.go").is_file() and (folder / "go.mod").is_file():
                return _build(folder)
    raise ProgramError("no program spinsim: expected it on PATH, its name in the environment variable SPINSIM, or a clone of spinsim as the current folder")


@functools.lru_cache(maxsize=None)
def _build(clone):
    go = shutil.which("go")
    if not go:
        raise ProgramError("no program spinsim, and no Go on PATH to build it from %s" % clone)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    name = "spinsim.exe" if os.name == "nt" else "spinsim"
    path = cache / "spinsim" / hashlib.sha256(str(clone).encode()).hexdigest()[:16] / name
    built = subprocess.run([go, "build", "-o", str(path), "./cmd/spinsim"], cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if built.returncode:
        raise ProgramError("go build in %s:\n%s" % (clone, built.stdout.decode(errors="replace").strip()))
    return str(path)


# A line of internal/cli/progress.go.
_PROGRESS = re.compile(r"\d+/\d+, about .* left$")


def execute(arguments, quiet):
    """Run the program. Return its status, its output (bytes) and its messages."""
    command = [program(), *arguments]
    read, write = _messages(quiet)
    with tempfile.TemporaryFile() as output:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=write)
        except OSError as error:
            os.close(read)
            raise ProgramError("%s: %s" % (command[0], error.strerror)) from error
        finally:
            os.close(write)
        try:
            messages = _follow(read)
            status = child.wait()
        except BaseException:
            child.terminate()
            child.wait()
            raise
        finally:
            os.close(read)
        output.seek(0)
        return status, output.read(), messages


def _messages(quiet):
    """Return both ends of the program's standard error.

    It shows its progress on a terminal only, so it gets one.
    """
    if not quiet and hasattr(os, "openpty"):
        try:
            return os.openpty()
        except OSError:
            pass  # a container without terminals: no progress
    return os.pipe()


def _follow(read):
    """Show progress in one line until the program ends. Return all other lines."""
    lines, rest, width = [], b"", 0
    while True:
        try:
            got = os.read(read, 65536)
        except OSError:
            got = b""  # a terminal ends with EIO
        *whole, rest = (rest + (got or b"\n")).split(b"\n")
        for line in (text.decode(errors="replace").rstrip("\r") for text in whole):
            if _PROGRESS.search(line):
                sys.stderr.write("\r" + line.ljust(width))
                width = len(line)
            else:
                lines.append(line)
        if not got:
            break
        sys.stderr.flush()
    if width:
        sys.stderr.write("\r" + " " * width + "\r")
        sys.stderr.flush()
    return "\n".join(lines).strip("\n")
