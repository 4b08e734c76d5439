"""Runs conformance scripts of package portals on a C library of Portals 4; see portals-reference.sh.

Every process of a script is a process here (worker.py). All output of ours that the standard leaves open is left out of the comparison: see normal().
"""

import collections
import csv
import difflib
import glob
import json
import os
import re
import select
import subprocess
import sys
import time

from interface import LeftOut

def words(line):
    """The words of a line as package script splits it."""
    found, at = [], 0
    while True:
        while at < len(line) and line[at] in " \t":
            at += 1
        if at >= len(line) or line[at] == "#" and (at + 1 == len(line) or line[at + 1] in " #"):
            return found
        begin = at
        while at < len(line) and line[at] not in " \t":
            if line[at] == '"':
                at += 1
                while line[at] != '"':
                    at += 2 if line[at] == "\\" else 1
            at += 1
        found.append(line[begin:at])


def commands(lines):
    for line in lines:
        w = words(line)
        if not w:
            continue
        c = {"proc": -1, "ni": "", "args": {}, "pos": [], "flags": []}
        if w[0].endswith(":"):
            proc, _, c["ni"] = w[0][:-1].partition(".")
            c["proc"] = int(proc)
            w = w[1:]
        c["verb"] = w[0]
        for word in w[1:]:
            key, equals, value = word.partition("=")
            if equals and key and '"' not in key:
                c["args"][key] = value
            elif re.fullmatch("[A-Z]{2}[A-Z0-9_]*", word):
                c["flags"].append(word)
            else:
                c["pos"].append(word)
        yield c


class Died(Exception):
    """The library has ended its process, or hangs."""


class Run:
    """A script on the library."""

    moves = set("put get atomic fetch swap ctset ctinc me le search lesearch ptenable ptdisable unlink leunlink".split())

    def __init__(self, library, pause):
        self.library, self.pause, self.workers = library, pause, []

    def ask(self, worker, c):
        try:
            worker.stdin.write(json.dumps(c) + "\n")
            worker.stdin.flush()
            if not select.select([worker.stdout], [], [], 10)[0]:
                raise Died("%s hangs" % c["verb"])
            line = worker.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Died("%s ends the process" % c["verb"])
        answer = json.loads(line)
        if "mistake" in answer:
            sys.exit("%s\n%s" % (c, answer["mistake"]))
        if "left out" in answer:
            raise LeftOut(answer["left out"])
        return answer

    def start(self, c):
        flags = c["flags"] or ["MATCHING", "PHYSICAL"]
        if c["args"] or self.workers or "LOGICAL" in flags or int(c["pos"][0]) > 4:
            raise LeftOut("command procs with arguments, again, or of many")
        for _ in range(int(c["pos"][0])):
            self.workers.append(
                subprocess.Popen(
                    [sys.executable, "-B", os.path.join(os.path.dirname(__file__), "worker.py"), self.library], text=True,
                    env=os.environ | {"PTL_IFACE_NAME": "lo"},
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                )
            )
        answers = [self.ask(w, {"verb": "!begin", "flags": flags}) for w in self.workers]
        if any(any(a["codes"]) for a in answers):
            sys.exit("the library does not begin: %s" % answers)
        for w in self.workers:
            self.ask(w, {"verb": "!ids", "ids": [a["id"] for a in answers]})

    def lines(self, script):
        out = []
        try:
            for c in commands(script):
                if c["verb"] == "procs":
                    self.start(c)
                    continue
                if c["proc"] < 0:
                    raise LeftOut("command " + c["verb"])
                out += self.ask(self.workers[c["proc"]], c)["out"]
                if c["verb"] in self.moves:
                    time.sleep(self.pause)
        finally:
            for w in self.workers:
                w.kill()
                w.wait()
        return out


def normal(lines):
    """Without what the standard leaves open: the reason of an error; the list in events of the entry's own life; the length in SEND, the
    address in SEARCH and that of no bytes."""
    found = []
    for line in lines:
        line = re.sub(r"^(\d+: \w+: [A-Z]+_[A-Z_]+):.*", r"\1", line)
        if re.search(": (LINK|AUTO_UNLINK|AUTO_FREE)", line):
            line = line.removesuffix(" overflow")
        if ": SEND" in line:
            line = re.sub(r" mlength=\d+", "", line)
        if ": SEARCH" in line or re.search(r" m?length=0( |$)", line):
            line = re.sub(" start=0x[0-9a-f]+", "", line)
        found.append(line)
    return found


def scripts(folder):
    """File, name, lines and expected lines of all scripts."""
    for path in sorted(glob.glob(folder + "/conformance/*")):
        lines = iter(open(path).read().split("\n"))
        for line in lines:
            if not line.startswith("run "):
                continue
            script = list(iter(lambda: next(lines), "----"))
            want = list(iter(lambda: next(lines), ""))
            if want[:1] == ["----"]:
                want = want[1:-2]
            yield os.path.basename(path), re.search(r"name=(\S+)", line)[1], script, want


def agrees(library, script, want):
    """What a script prints on the library, and whether it is what is wanted."""
    for pause in (0.02, 0.15, 0.5, 2):  # the library's threads may need time
        try:
            got = normal(Run(library, pause).lines(script))
        except Died as e:
            got = [str(e)]
        if got == want:
            return got, True
    return got, False


def main(library, folder, word=""):
    """The number of scripts whose outcome is not the one that reference.csv gives."""
    with open(folder + "/reference.csv") as f:
        reasons = {(r["file"], r["script"]): r["reason"] for r in csv.DictReader(line for line in f if not line.startswith("#"))}
    counts, left_out, wrong = collections.Counter(), collections.Counter(), 0
    for file, name, script, want in scripts(folder):
        if word not in file + " " + name:
            continue
        reason, want = reasons.get((file, name)), normal(want)
        try:
            got, same = agrees(library, script, want)
        except LeftOut as e:
            counts["left out"] += 1
            left_out[str(e)] += 1
            if reason:
                wrong += 1
                print("%s %s: LEFT OUT (%s), and reference.csv says why it differs" % (file, name, e), flush=True)
            continue
        counts["agree" if same else "differ"] += 1
        if same and reason:
            wrong += 1
            print("%s %s: AGREES, and reference.csv says why it should not: %s" % (file, name, reason), flush=True)
        elif not same and not reason:
            wrong += 1
            print("%s %s: UNEXPLAINED" % (file, name))
            print("\n".join("    " + l for l in difflib.unified_diff(want, got, "ours", "reference", "", "", 9, "")), flush=True)
    if not counts:
        sys.exit("no script of %s/conformance has %r in its file or name" % (folder, word))
    print("agree: %d, differ: %d, left out: %d; not as reference.csv says: %d" % (counts["agree"], counts["differ"], counts["left out"], wrong))
    for why, n in left_out.most_common():
        print("%6d left out: %s" % (n, why))
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(*sys.argv[1:]) else 0)
