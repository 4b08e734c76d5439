#!/usr/bin/env bash
# Sweeps on a cluster: the array job of `spinsim sweep` under a slurmctld and a slurmd of its own, on this machine. The merged table has the
# bytes of the undivided command; after tasks are cancelled and killed the merge names what is missing, and the table is
# whole when they have run again. So are parts that shells start, numbered from 0 as Kubernetes does.
#
#   bash scripts/check-slurm.sh [SPINSIM]     (default: built here)
#
# Needs Debian's slurmctld, slurmd, slurm-client and munge. All their files are in a temporary folder. Neither root nor control groups are needed.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=$(mktemp -d)
readonly repository dir parts=4

die() {
	printf 'check-slurm.sh: %s\n' "$*" >&2
	tail -n 20 "$dir"/*.log >&2 || true
	exit 1
}

daemons=()
finish() {
	((${#daemons[@]} == 0)) || kill "${daemons[@]}" 2>/dev/null || true
	wait # for their last files
	rm -rf "$dir"
}
trap finish EXIT

# until_true SECONDS WHAT COMMAND...: asks every tenth of a second.
until_true() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || die "$what: waited in vain"
		read -rt 0.1 <>"$dir/never" || true
	done
}

# start NAME COMMAND...: a daemon that stays in the foreground.
start() {
	local name=$1
	shift
	"$@" >"$dir/$name.log" 2>&1 &
	daemons+=($!)
}

cluster() {
	local host port=$((20000 + $$ % 20000))
	host=$(hostname -s)
	mkfifo "$dir/never"
	mkdir "$dir/munge" "$dir/state" "$dir/spool"
	chmod 755 "$dir" # munged refuses a socket that not all can reach
	(umask 077 && head -c 1024 /dev/urandom >"$dir/munge/key")
	cat >"$dir/slurm.conf" <<-EOF
		ClusterName=check
		SlurmctldHost=$host(127.0.0.1)
		SlurmctldPort=$port
		SlurmdPort=$((port + 1))
		SlurmUser=$(id -un)
		SlurmdUser=$(id -un)
		AuthInfo=socket=$dir/munge.socket
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool
		SlurmctldPidFile=$dir/slurmctld.pid
		SlurmdPidFile=$dir/slurmd.pid
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SlurmdParameters=config_overrides
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		MailProg=/bin/true
		NodeName=$host NodeAddr=127.0.0.1 CPUs=$parts
		PartitionName=all Nodes=ALL Default=YES State=UP
	EOF
	export SLURM_CONF=$dir/slurm.conf
	start munged munged --foreground --force --key-file="$dir/munge/key" --socket="$dir/munge.socket" --pid-file="$dir/munged.pid" \
		--log-file="$dir/munge.own.log" --seed-file="$dir/munge/seed"
	until_true 60 "munged" munge --socket="$dir/munge.socket" --no-input
	start slurmctld slurmctld -D
	start slurmd slurmd -D -N "$host"
	until_true 120 "a node of Slurm" eval '[[ $(sinfo --noheader --format=%t) == idle ]]'
}

# over JOB: none of its tasks waits or runs.
over() { [[ -z $(squeue --noheader --jobs="$1" 2>/dev/null) ]]; }

# same FILE WHAT: the table has the bytes of the undivided command's.
same() { cmp "$dir/whole.csv" "$1" || die "$2: not what the undivided command prints"; }

spinsim=${1:-}
if [[ -z $spinsim ]]; then
	spinsim=$dir/spinsim
	go -C "$repository" build -o "$spinsim" ./cmd/spinsim
fi
cd "$dir"
# One point at a time, half a second each: a task ends neither before it is cancelled nor with no result. Every part has six of them.
readonly command=(compare bcast --mode "rdma,spin-stream" --profile "spin-int,spin-dis" --ranks "512" --size "16KiB..512KiB*2" --threads 1 --format csv)
"$spinsim" -q "${command[@]}" >whole.csv
"$spinsim" sweep --slurm job.sh --parts "$parts" -- "${command[@]}"
cluster

printf '%s\n' '-- an array job'
sbatch --wait job.sh || die "the array job failed: $(cat slurm-*.out)"
sh job.sh merge >merged.csv
same merged.csv "the array job"

printf '%s\n' '-- a task is cancelled, another killed'
rm -r job.results slurm-*.out
job=$(sbatch --parsable job.sh)
# begun PART: it has a result.
begun() { [[ -s job.results/part-$1-of-$parts.ndjson ]]; }
until_true 300 "a result of part 2" begun 2
scancel "${job}_2"
until_true 300 "a result of part 4" begun 4
scancel --full --signal=KILL "${job}_4"
until_true 300 "the end of the array job" over "$job"
status=0
sh job.sh merge >cut.csv 2>missing.txt || status=$?
cat missing.txt
[[ $status -eq 1 && ! -s cut.csv ]] || die "the merge without two parts: status $status, expected 1 and no table"
kept=$(cat job.results/*.ndjson | wc -l)
points=$("$spinsim" "${command[@]}" --points | tail -n 1)
grep -q "^spinsim: $((${points% points} - kept)) of $points are not in job.results:\$" missing.txt || die "the folder has $kept points, the merge says another number"
((kept > 2 && kept < ${points% points})) || die "$kept of $points: nothing was cut short"
sbatch --wait --array=2,4 job.sh || die "the tasks failed when they were submitted again: $(cat slurm-*.out)"
sh job.sh merge >again.csv
same again.csv "the array job with tasks submitted again"

printf '%s\n' '-- parts numbered from 0, by shells'
seq 0 $((parts - 1)) | xargs -P 2 -I{} env JOB_COMPLETION_INDEX={} sh -c \
	'spinsim=$1; shift; "$spinsim" -q "$@" --part $((JOB_COMPLETION_INDEX + 1))/'"$parts"' --resume shared' sh "$spinsim" "${command[@]}"
"$spinsim" -q "${command[@]}" --resume shared --measure-missing=false >shells.csv
same shells.csv "parts that shells have started"
