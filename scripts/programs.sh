#!/usr/bin/env bash
# programs.sh FOLDER runs MPI programs that Debian does not have over the simulator:
# FOLDER has sources of any of OSU's micro-benchmarks (5 or 7), HPCG and miniFE,
# which are built outside of it. It needs what spinsim mpirun needs, libopenmpi-dev,
# g++, autoconf, automake, libtool and make. It prints each program with passed,
# failed, or why it does not fit, and ends with 1 if one has failed. Passed: the
# program says so, all runs had the same bytes and picoseconds, and the results of
# HPCG and miniFE are those over shared memory.
# PROGRAMS_ONLY is a regular expression of the lines to run, such as
# "osu-7.4 allreduce 16", PROGRAMS_RANKS the numbers of ranks ("2 4 8 16"),
# PROGRAMS_RUNS the runs of each (2), PROGRAMS_ARGS are options of spinsim mpirun,
# such as --profile exanest.
set -euo pipefail

[[ -d ${1:-} ]] || { echo "usage: programs.sh FOLDER, with sources of OSU's micro-benchmarks, HPCG or miniFE" >&2; exit 2; }
folder=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/spinsim-programs.XXXXXX")
trap 'rm -rf "$work"' EXIT
go build -o "$work/spinsim" ./cmd/spinsim
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
passed=0 failed=0 other=0

# The folders in which a file of this path is, above that path.
sources() { find "$folder" -path "*/$1" | sed "s|/$1\$||" | sort; }

built() { # NAME COMMAND...: what fails ends all
	(cd "$work/$1" && "${@:2}") >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; echo "programs.sh: $1 was not built" >&2; exit 1; }
}

report() { # NAME RANKS RESULT [TIME FIGURES]
	printf '%-40s %5s  %-8s %14s  %s\n' "$1" "$2" "$3" "${4:-}" "${5:-}"
	case $3 in passed) passed=$((passed + 1)) ;; failed) failed=$((failed + 1)) ;; *) other=$((other + 1)) ;; esac
}

# What a run said, in its own folder: all that must be the same in each run. The
# memory of processes is the system's, and the order of what several ranks print
# mpirun's.
simulated() { # RANKS COMMAND...
	rm -rf "$work/run"
	mkdir "$work/run"
	(cd "$work/run" && timeout 600 "$work/spinsim" mpirun -np "$1" ${PROGRAMS_ARGS:-} -- "${@:2}" >out 2>err </dev/null) || return
	took=$(sed -n 's/.*: \([0-9.]* [^ ]*\) of virtual time.*/\1/p' "$work/run/err")
	{ echo "$took" && sort "$work"/run/*; } | grep -v RSS >"$work/said"
}

# Results that are the same over shared memory: no times, nor what follows from them.
results() { cat "$work"/run/* | grep -E 'Resid|esidual|Departure|Result=|teration.*=|Iterations:|VALID|solution' | sed 's/with a GFLOP.*//' || true; }

try() { # NAME RANKS ORACLE COMMAND...: ORACLE is a command, and the results over shared memory
	local name=$1 ranks=$2 check=$3 i
	shift 3
	[[ "$name $ranks" =~ ${PROGRAMS_ONLY:-.} ]] || return 0
	for ((i = 0; i < ${PROGRAMS_RUNS:-2}; i++)); do
		if ! simulated "$ranks" "$@"; then
			if grep -q MPI_THREAD_MULTIPLE "$work"/run/*; then
				report "$name" "$ranks" refused "" "it asks for MPI_THREAD_MULTIPLE"
			else
				report "$name" "$ranks" failed "" "$(grep -av '^$\|spinsim v' "$work/run/err" | tail -1 | cut -c1-120)"
				tail -5 "$work/run/out" "$work/run/err" >&2
			fi
			return
		fi
		((i == 0)) || cmp -s "$work/said" "$work/first" || { report "$name" "$ranks" failed "$took" "run $((i + 1)) differs: $(diff "$work/first" "$work/said" | sed -n 2p | cut -c1-90)"; return; }
		mv "$work/said" "$work/first"
	done
	"$check" "$name" "$ranks" "$@"
}

# OSU 7 says of each size whether the data were right.
osu_check() {
	local figures
	figures=$(awk '/^[0-9]/ { if (!first) first = $1 ": " $2; last = $1 ": " $2 } /^ +[0-9]/ { last = $1 } END { print (first && first != last ? first ", " : "") last }' "$work/run/out")
	if grep -qw Fail "$work/run/out" || [[ -z $figures ]]; then
		report "$1" "$2" failed "$took" "$(grep -wm1 Fail "$work/run/out" || echo no figures)"
	else
		report "$1" "$2" passed "$took" "$figures"
	fi
}

same_results() {
	results >"$work/simulated"
	rm -rf "$work/run"
	mkdir "$work/run"
	(cd "$work/run" && timeout 600 mpirun --oversubscribe --mca coll ^sm,hcoll,han -np "$2" "${@:3}" >out 2>err </dev/null) || { report "$1" "$2" failed "$took" "over shared memory"; return; }
	results >"$work/memory"
	if [[ -s $work/memory ]] && cmp -s "$work/simulated" "$work/memory"; then
		report "$1" "$2" passed "$took" "$(grep -hE 'Final Resid|residual mean' "$work/memory" | tail -1 | sed 's/.*:: *//')"
	else
		report "$1" "$2" failed "$took" "shared memory differs: $(diff "$work/memory" "$work/simulated" | sed -n 2p | cut -c1-90)"
	fi
}

# Options of OSU's programs: few iterations, as a simulation has no noise, and
# validation where version 7 has it. Its sums of MPI_CHAR overflow, and programs of
# one datum free a window's memory that is MPI's, over shared memory too.
options() { # PROGRAM VERSION
	local o="-x 1 -i 4"
	case $1 in *barrier) ;; *fop_latency | *cas_latency) [[ $2 != 7* ]] || o+=" -w create" ;; */collective/*) o+=" -m 65536" ;; esac
	case $2$1 in 7*reduce*) o+=" -T mpi_int -c" ;; 7*barrier | 7*/one-sided/* | 7*_fan_* | 5*) ;; *) o+=" -c" ;; esac
	echo "$o"
}

osu() { # SOURCE
	local version name program one ranks few words
	version=$(sed -n 's/^AC_INIT(\[[^,]*\], *\[\([^]]*\)\].*/\1/p' "$1/configure.ac")
	cp -r "$1" "$work/osu-$version"
	built "osu-$version" sh -c 'autoreconf -fi && ./configure CC=mpicc CXX=mpicxx && make -j2'
	for program in $(find "$work/osu-$version" -path '*/mpi/*/osu_*' -type f -perm -1 ! -path '*/.libs/*' | sort); do
		one=${program##*/osu_} few=${PROGRAMS_RANKS:-2 4 8 16}
		name="osu-$version $one"
		read -ra words <<<"$(options "$program" "$version")"
		case $program in
		*/startup/*) report "$name" - "no test" "" "it measures MPI_Init, which takes real time" && continue ;;
		*/pt2pt/* | */one-sided/*) case $one in *multi* | *mbw* | *fan*) ;; *) few=2 ;; esac ;;
		*/neighborhood/*) few=${few/#2 /} ;; # a grid of two ranks has no neighbours
		esac
		for ranks in $few; do try "$name" "$ranks" osu_check "$program" "${words[@]}"; done
	done
}

for source in $(find "$folder" -name configure.ac -exec grep -l OSU-Micro-Benchmarks {} + | sort); do osu "${source%/*}"; done
for source in $(sources src/ComputeSYMGS_ref.cpp); do
	mkdir -p "$work/hpcg"
	built hpcg sh -c "sh '$source/configure' Linux_MPI && make -j2"
	for ranks in ${PROGRAMS_RANKS:-2 4 8 16}; do try "hpcg 16x16x16" "$ranks" same_results "$work/hpcg/bin/xhpcg" --nx=16 --ny=16 --nz=16 --rt=0; done
done
for source in $(sources ref/src/cg_solve.hpp); do
	cp -r "$source/ref" "$work/minife"
	built minife make -C src
	for ranks in ${PROGRAMS_RANKS:-2 4 8 16}; do try "minife 24x24x24" "$ranks" same_results "$work/minife/src/miniFE.x" nx=24 verify_solution=1; done
done
echo "$passed passed, $failed failed, $other do not fit"
((failed == 0 && passed > 0))
