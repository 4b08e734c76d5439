#!/usr/bin/env bash
# User and system seconds, and resident megabytes, of other simulators beside spinsim's on the same work. Nothing of theirs is in this
# repository: name a checkout of each, none is fetched. Peers without a checkout are left out.
#
#   LOGGOPSIM=~/LogGOPSim HTSIM=~/csg-htsim bash scripts/peers.sh [SPINSIM]     (default: built here)
#
# LOGGOPSIM  spcl/LogGOPSim (needs g++, re2c, gengetopt, libgraphviz-dev)   schedules in the LogGOPS model
# HTSIM      Broadcom/csg-htsim (needs g++, make)                           a permutation at 400 Gb/s in packets of 4 KiB
# SMPI is used if there is a smpicc (Debian's libsimgrid-dev)               MPI_Allreduce of one double
#
# Peers are built in a temporary folder; the checkouts stay as they are. RUNS, by default 3, is how often each runs, by turns: the least time counts.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=$(mktemp -d)
readonly repository dir runs=${RUNS:-3}
trap 'rm -rf "$dir"' EXIT

die() {
	printf 'peers.sh: %s\n' "$*" >&2
	exit 1
}

[[ $runs =~ ^[1-9][0-9]*$ ]] || die "RUNS: \"$runs\", expected a number"
command -v /usr/bin/time >/dev/null || die "needs /usr/bin/time (Debian's package time)"
spinsim=$(realpath "${1:-$dir/spinsim}")
[[ -n ${1-} ]] || go -C "$repository" build -o "$spinsim" ./cmd/spinsim
cd "$dir"

# measure WHO COMMAND...: adds its seconds and megabytes to a list.
measure() {
	local who=$1
	shift
	/usr/bin/time -o time -f '%U %S %M' "$@" >"$who.out" 2>&1 || die "$*: $(tail -n 3 "$who.out")"
	awk '{ print $1 + $2, $3 / 1000 }' time >>"$who.times"
}

# beside WHAT PEER: runs the commands in theirs and ours by turns, and prints a line.
beside() {
	rm -f ./*.times
	for ((i = 0; i < runs; i++)); do
		measure theirs "${theirs[@]}"
		measure ours "$spinsim" -q "${ours[@]}" --threads 1
	done
	awk -v what="$1" -v peer="$2" 'function least(a, b) { return a == "" || b < a ? b : a }
		FILENAME ~ /theirs/ { t = least(t, $1); tm = least(tm, $2); next }
		{ o = least(o, $1); om = least(om, $2) }
		END { printf "%-34s %-10s %7.2f s %5.0f MB  spinsim %7.2f s %5.0f MB  time x%.2f  memory x%.2f\n", what, peer, t, tm, o, om, o / t, om / tm }' theirs.times ours.times
}

loggopsim() {
	mkdir loggopsim
	cp "$1"/src/LogGOPSim/* loggopsim/
	(cd loggopsim && gengetopt -F loggopsim_cmdline -i loggopsim_cmdline.ggo &&
		g++ -O3 -std=c++11 -w -fpermissive -I/usr/include/graphviz LogGOPSim.cpp loggopsim_cmdline.c -o LogGOPSim -lcgraph) >build.txt 2>&1 || die "LogGOPSim: $(tail -n 3 build.txt)"
	local pattern
	for pattern in "dissemination --ranks 65536" "barrier-linear --ranks 8192"; do
		# shellcheck disable=SC2086 # words
		"$spinsim" goal gen $pattern -o schedule.bin
		theirs=(loggopsim/LogGOPSim -f schedule.bin -b)
		ours=(goal run schedule.bin)
		beside "$pattern" LogGOPSim
	done
}

htsim() {
	mkdir htsim
	cp -r "$1"/sim htsim/
	(make -C htsim/sim -j"$(nproc)" libhtsim.a && make -C htsim/sim/datacenter -j"$(nproc)" htsim_roce htsim_ndp) >build.txt 2>&1 || die "htsim: $(tail -n 3 build.txt)"
	"$spinsim" goal gen permutation --ranks 1024 --size 2MiB -o permutation.goal
	awk '/^rank/ { rank = $2 } /^send/ { list[++n] = rank "->" $4 " id " n " start 0 size " $2 + 0 }
		END { print "Nodes 1024\nConnections " n; for (i = 1; i <= n; i++) print list[i] }' permutation.goal >permutation.cm
	local kind payload
	for kind in roce ndp; do
		theirs=(htsim/sim/datacenter/htsim_$kind -tm permutation.cm -nodes 1024 -tiers 3 -linkspeed 400000 -mtu 4096 -q 100 -end 1000 -strat ecmp_host -paths 16 -o log)
		for payload in none checked; do # theirs have none
			ours=(goal run permutation.goal --on nodes --matching host --payload "$payload")
			beside "permutation 1024 x 2 MiB, $payload" "$kind"
		done
		[[ $(grep -ci finished theirs.out) == $(awk 'NR == 2 { print $2 }' permutation.cm) ]] || die "htsim_$kind: not all flows have finished"
	done
}

smpi() {
	cat >allreduce.c <<-'EOF'
		#include <mpi.h>
		#include <stdio.h>
		int main(int argc, char **argv)
		{
			int n;
			double one = 1, sum = 0;
			MPI_Init(&argc, &argv);
			MPI_Comm_size(MPI_COMM_WORLD, &n);
			MPI_Barrier(MPI_COMM_WORLD);
			MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
			if (sum != n) {
				fprintf(stderr, "sum %g of %d ranks\n", sum, n);
				MPI_Abort(MPI_COMM_WORLD, 1);
			}
			MPI_Finalize();
			return 0;
		}
	EOF
	smpicc -O2 allreduce.c -o allreduce
	local n
	for n in 512 1024 2048; do
		cat >platform.xml <<-EOF
			<?xml version='1.0'?>
			<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
			<platform version="4.1">
			<cluster id="c" prefix="node-" suffix="" radical="0-$((n - 1))" speed="10Gf" bw="50GBps" lat="100ns" topology="FAT_TREE" topo_parameters="3;16,16,$((n / 256));1,8,8;1,1,1"/>
			</platform>
		EOF
		seq -f 'node-%.0f' 0 $((n - 1)) >hosts
		theirs=(smpirun -np "$n" -platform platform.xml -hostfile hosts --cfg=smpi/simulate-computation:no ./allreduce)
		ours=(osu allreduce --profile spin-int --ranks-per-node 1 --ranks "$n" -m 8:8 -i 1 -x 0)
		beside "allreduce 8 B, $n ranks" SMPI
	done
}

if command -v smpicc >/dev/null; then smpi; else echo "SMPI: no smpicc, left out"; fi
if [[ -n ${LOGGOPSIM-} ]]; then loggopsim "$(cd "$OLDPWD" && realpath "$LOGGOPSIM")"; else echo "LogGOPSim: LOGGOPSIM is not given, left out"; fi
if [[ -n ${HTSIM-} ]]; then htsim "$(cd "$OLDPWD" && realpath "$HTSIM")"; else echo "htsim: HTSIM is not given, left out"; fi
