#!/usr/bin/env bash
# Seconds of processor of each benchmark at doubling sizes, and how many times as long each doubling takes.
#
#   bash scripts/growth.sh [NAME...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/spinsim" ./cmd/spinsim

while read -r name from command; do
	[[ $# -eq 0 || " $* " == *" $name "* ]] || continue
	line='' before=0
	for step in 1 2 4 8; do
		size=$((from * step))
		[[ $name != goal ]] || "$work/spinsim" goal gen halo3d --ranks "$size" --size 4KiB --iterations 4 -o "$work/halo.goal" >"$work/out" 2>&1
		run=${command//SIZE/$size}
		TIMEFORMAT='%U %S'
		spent=$( { time "$work/spinsim" ${run//WORK/$work} --threads 1 >"$work/out" 2>&1; } 2>&1) || { cat "$work/out" >&2; exit 1; }
		line+=$(awk -v b="$before" -v n="$size" '{ s = $1 + $2; printf "  %d: %.2f s", n, s; if (b > 0) printf " (%.1f)", s / b }' <<<"$spent")
		before=$(awk '{ print $1 + $2 }' <<<"$spent")
	done
	printf '%-9s%s\n' "$name" "$line"
done <<'LIST'
bcast 1024 -q compare bcast --profile spin-int --mode spin-stream --size 4KiB --ranks SIZE
ftbcast 256 -q compare ftbcast --profile spin-int --mode spin --failed 0 --size 16KiB --ranks SIZE
detector 2048 -q compare ftbcast --profile spin-int --mode detector --failed 0 --size 8 --ranks SIZE
allreduce 256 -q compare allreduce --profile spin-int --transport portals --mode host --calls 1 --size 256 --ranks SIZE
osu-ranks 64 -q compare osu-ranks --benchmark allgather --iterations 1 --size 64 --ranks SIZE
alltoall 64 -q osu alltoall -m 64:64 -i 1 -x 0 --ranks SIZE
goal 256 -q goal run WORK/halo.goal --on nodes --matching offload
scaling 64 -q compare scaling --app minife --scaling weak --ranks SIZE
kv 64 -q compare kv --profile spin-int --mode spin --records 100 --ops 10 --clients SIZE
txlog 17 -q compare txlog --profile spin-int --mode spin --op transaction --size 64 --count 10 --ranks SIZE
graph 16 -q compare graph --profile spin-int --mode spin --kernel bfs --scale 10 --ranks SIZE
LIST
