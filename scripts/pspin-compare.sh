#!/usr/bin/env bash
# Prints the cycles that handlers took in a simulation of PsPIN's RTL, from the traces of its cores, beside spinsim's.
#
#   scripts/pspin-compare.sh [-s BYTES] ELF TRACE...
#
# ELF is the file with the handlers and PsPIN's runtime, or a listing of its symbols by nm -S. A TRACE is that of one core
# (trace_core_CC_N.log). Nothing here builds or runs PsPIN: its repository (spcl/pspin, docs/examples.md) says how. A run is from the nop
# before the call in hpu_run to the nop behind it, the marks HANDLER:START and HANDLER:END of sw/runtime/src/hpu.c. The first run on a
# core is cold, the others are warm; the table has the median of each. -s is the size of the packets, by default 1024: for the cycles
# of spinsim, of those handlers that compare pspin has.
#
# SPINSIM names the program, by default: go run ./cmd/spinsim. Needs nm (binutils or llvm) for an ELF file.
set -euo pipefail
export LC_ALL=C

fail() {
	printf 'pspin-compare: %s\n' "$1" >&2
	exit 2
}

size=1024
if [[ ${1-} == -s ]]; then
	[[ ${2-} =~ ^[0-9]+$ ]] || fail "-s: ${2-nothing}, expected bytes"
	size=$2
	shift 2
fi
(($# >= 2)) || fail 'expected [-s BYTES] ELF TRACE...'
readonly elf=$1
shift
for file in "$elf" "$@"; do
	[[ -r $file ]] || fail "$file: cannot be read"
done

# symbols prints address, size and name of the functions of an ELF file, or of a listing.
symbols() {
	if [[ $(head -c 4 "$elf" | tail -c 3) != ELF ]]; then
		cat "$elf"
		return
	fi
	local tool
	for tool in nm llvm-nm llvm-nm-19; do
		if command -v "$tool" >/dev/null; then
			"$tool" -S "$elf"
			return
		fi
	done
	fail "$elf: nm not found: apt-get install binutils"
}

# runs prints the name, trace and cycles of every run of a handler, in order.
runs() {
	awk '
	function number(hex,   i, n) {
		n = 0
		hex = tolower(hex)
		for (i = 1; i <= length(hex); i++) n = 16 * n + index("0123456789abcdef", substr(hex, i, 1)) - 1
		return n
	}
	function at(pc,   i) {
		for (i = 0; i < functions; i++) if (pc >= from[i] && pc < to[i]) return name[i]
		return ""
	}
	BEGIN { functions = 0 }
	FNR == 1 { file++; handler = ""; start = -1 }
	file == 1 {
		if (NF == 4 && $3 ~ /^[tTwW]$/) {
			from[functions] = number($1); to[functions] = number($1) + number($2); name[functions++] = $4
		}
		next
	}
	$1 !~ /^[0-9]+$/ || $2 !~ /^[0-9]+$/ || $3 !~ /^[0-9a-fA-F]+$/ { next }
	{
		lines++
		where = $3 in cache ? cache[$3] : (cache[$3] = at(number($3)))
		nop = $5 == "nop" || $5 == "c.nop" || $4 == "00000013" || $4 == "0001"
		if (where == "hpu_run") {
			if (nop && handler != "") { print handler, FILENAME, $2 - start; handler = ""; start = -1 }
			else if (nop) start = $2
		} else if (where != "" && handler == "" && start >= 0) handler = where
	}
	END {
		if (functions == 0) print "no functions in the list of symbols" > "/dev/stderr"
		else if (lines == 0) print "no instruction in the traces" > "/dev/stderr"
		exit functions == 0 || lines == 0
	}' <(symbols) "$@"
}

found=$(runs "$@") || fail "$elf and the traces do not fit"
[[ -n $found ]] || fail "no handler ran between two nops of hpu_run; expected traces and ELF of the same program"

# ours prints the column of compare pspin for a handler of PsPIN; nothing: it has none such.
ours() {
	local example
	case $1 in
	empty_ph) example=empty ;;
	pingpong_ph) example=ping_pong ;;
	copy_to_host_ph) example=copy_to_host ;;
	filtering_ph) example=filtering ;;
	aggregate_global_ph) example=aggregate ;;
	*) return ;;
	esac
	${SPINSIM:-go run ./cmd/spinsim} compare pspin --quiet --example "$example" --size "$size" --format csv |
		awk -F, '/^#/ { next } !head { for (i = 1; i <= NF; i++) column[$i] = i; head = 1; next } { print $column["cold_cycles"], $column["warm_cycles"]; exit }'
}

median() { sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "-" }'; }

printf '%-24s %6s %10s %10s %10s %10s\n' handler runs cold warm 'our cold' 'our warm'
cut -d ' ' -f 1 <<<"$found" | sort -u | while read -r handler; do
	each=$(grep -F "$handler " <<<"$found")
	cold=$(awk '!seen[$2]++ { print $3 }' <<<"$each" | median)
	warm=$(awk 'seen[$2]++ { print $3 }' <<<"$each" | median)
	read -r our_cold our_warm _ <<<"$(ours "$handler") - -"
	printf '%-24s %6d %10s %10s %10s %10s\n' "$handler" "$(wc -l <<<"$each")" "$cold" "$warm" "$our_cold" "$our_warm"
done
