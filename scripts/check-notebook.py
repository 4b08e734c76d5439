#!/usr/bin/env python3
"""Run every cell of docs/notebook.ipynb: check-notebook.py NOTEBOOK, in a folder of its own, with the packages spinsim and pandas.

Cells share their variables; the value of a last line is printed, as a notebook shows it. A cell that fails ends the script with its error and status 1. A cell with the
tag of a module, such as pyarrow, that is not installed is not run, and the last line says so.
"""
import ast
import importlib.util
import json
import os
import sys
import tempfile


def run_python(source, names):
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is not None:
        print(eval(compile(ast.Expression(last.value), "cell", "eval"), names))


def main(notebook):
    with open(notebook, encoding="utf-8") as file:
        cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    names, missing = {}, []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, cell in enumerate(cells, 1):
            source = "".join(cell["source"])
            print("In [%d]: %s" % (number, source.replace("\n", "\n    ")), flush=True)
            absent = [tag for tag in cell["metadata"].get("tags", []) if importlib.util.find_spec(tag) is None]
            if absent:
                missing.append("cell %d was not run: it needs %s" % (number, ", ".join(absent)))
            else:
                run_python(source, names)
    print("%d of %d cells ran" % (len(cells) - len(missing), len(cells)))
    for line in missing:
        print(line)


if len(sys.argv) != 2:
    sys.exit("usage: check-notebook.py NOTEBOOK")
main(sys.argv[1])
