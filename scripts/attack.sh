#!/usr/bin/env bash
# Attacks the program with spoiled files and modules, edited results, signals and full disks, on both engines, and prints what it finds:
#
#   bash scripts/attack.sh SECONDS                         draws for so long
#   bash scripts/attack.sh --draws N [--from M] [--seed S] draws M, M+1, ...: a campaign goes on, or one draw is made again
#
# Draws are made from the seed, by default 1, and their numbers. --keep FOLDER keeps the files of draws that found something.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
	printf 'scripts/attack.sh: %s\n' "$*" >&2
	exit 2
}

args=()
if [[ ${1-} =~ ^[1-9][0-9]*$ ]]; then
	args+=("-attack.time=${1}s")
	shift
fi
while (($#)); do
	case $1 in
	--draws | --from | --seed) [[ ${2-} =~ ^[0-9]+$ ]] || die "$1: expected a number" ;;
	--keep) [[ -n ${2-} ]] || die "$1: expected a folder" ;;
	*) die "$1: expected a number of SECONDS, --draws, --from, --seed or --keep" ;;
	esac
	args+=("-attack.${1#--}=$2")
	shift 2
done
[[ " ${args[*]-}" == *" -attack."@(time|draws)=* ]] || die "expected a number of SECONDS, or --draws"
scripts/with-wasmtime.sh go test -count=1 -timeout 0 -v -run '^TestAttack$' ./cmd/spinsim "${args[@]}"
