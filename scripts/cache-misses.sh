#!/usr/bin/env bash
# Counts what a cell of a broadcast on 512 ranks costs: instructions, and misses of a cache of 1 MiB, by package and by line of source.
#
#   scripts/cache-misses.sh [LINES]        LINES of source that miss most, by default 40
#
# Most of such a run is waiting for memory (RATIONALE.md, "Cells are not simulated in trains"), which on a shared machine no clock can
# tell. Valgrind's cachegrind simulates the cache: two counts of one program differ by a fraction of a percent. What is shown is that of
# 128 KiB less that of 64 KiB, so nothing of the start. Takes some minutes; installs valgrind with apt-get where it is missing.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly lines=${1:-40} ranks=512 cell=256
if [[ ! $lines =~ ^[0-9]+$ ]]; then
	printf 'usage: scripts/cache-misses.sh [LINES]\n' >&2
	exit 2
fi
if ! command -v valgrind >/dev/null; then
	apt-get install -y --no-install-recommends valgrind >&2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

GOEXPERIMENT=nodwarf5 go build -o "$work/spinsim" ./cmd/spinsim # valgrind reads lines of DWARF 4
count() { # SIZE
	GODEBUG=asyncpreemptoff=1,cpu.rdtscp=off GOMAXPROCS=1 GOGC=400 valgrind --tool=cachegrind --cache-sim=yes \
		--I1=1048576,8,64 --D1=1048576,8,64 --LL=33554432,16,64 --cachegrind-out-file="$work/$1" \
		"$work/spinsim" osu bcast --ranks "$ranks" -m "$1:$1" -i 1 -x 0 -q >"$work/$1.log" 2>&1 ||
		{ cat "$work/$1.log" >&2 && exit 1; }
}
readonly least=65536 most=131072
count $least &
count $most
wait $!

# Events are Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw; zeros at the end of a line are left out.
awk -v cells=$(((ranks - 1) * (most - least) / cell)) -v top="$lines" -v here="$PWD/" -v std="$(go env GOROOT)/src/" '
	FNR == 1 { sign = NR == 1 ? -1 : 1 }
	/^fl=/ {
		file = substr($0, 4)
		sub("^" here, "", file); sub("^" std, "std/", file); sub("^.*/pkg/mod/", "", file)
		folder = file; sub("/[^/]*$", "", folder)
	}
	/^[0-9]/ {
		missed = sign * ($6 + $9)
		line[file ":" $1] += missed; misses[folder] += missed; missing += missed
		instructions[folder] += sign * $2; all += sign * $2
	}
	END {
		printf "%10s %12s   a cell of %d B\n", "misses", "instructions", 256
		printf "%10.1f %12.0f   all\n", missing / cells, all / cells
		sort = "sort -k1,1nr | head -24"
		for (f in misses) if (misses[f] > cells / 10 || instructions[f] > 10 * cells) printf "%10.1f %12.0f   %s\n", misses[f] / cells, instructions[f] / cells, f | sort
		close(sort)
		printf "\n%10s   line\n", "misses"
		sort = "sort -k1,1nr | head -" top
		for (l in line) if (line[l] > cells / 20) printf "%10.2f   %s\n", line[l] / cells, l | sort
		close(sort)
	}' "$work/$least" "$work/$most"
