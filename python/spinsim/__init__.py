"""spinsim from Python: every call runs the program spinsim and reads its JSON.

    import spinsim
    result = spinsim.compare("bcast", ranks=[4, 64], profile="spin-int")
    result.rows          # a list of dicts: numbers in the unit that the key ends in
    result.df()          # the same for pandas
    result.columns       # what the keys mean, with units

experiments() and slots() list what there is. The program is the one that the
environment variable SPINSIM names, or spinsim of PATH. In a clone of spinsim
without either, Go builds it.

Keywords are the program's flags, so `spinsim compare bcast --help` is their
manual: ranks_per_node=2 is --ranks-per-node=2. A list is a list of values to
measure, a dict repeats the flag:

    spinsim.compare("bcast", set={"hpu.cores": [4, 8]}, handler={"bcast.stream": "my.wasm"})

A value that is a list itself is a text: set={"fabric.dims": "[4,4,2]"}. None
leaves the flag out.

Bad input raises InputError, a failure RunError with the result of all points
that were measured. Progress is on standard error, except with quiet=True.
An interrupt of the notebook ends the program.
"""
from ._calls import command, compare, experiments, read, run, slots
from ._program import Error, InputError, ProgramError, RunError, program
from ._result import Result

__all__ = [
    "Error", "InputError", "ProgramError", "Result", "RunError", "command",
    "compare", "experiments", "program", "read", "run", "slots",
]
