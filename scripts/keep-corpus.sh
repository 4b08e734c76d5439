#!/usr/bin/env bash
# Keeps what fuzzing has found: copies inputs that reached new code from Go's cache, where they are lost with it, to testdata/fuzz,
# from where every go test runs them. Of each target the smallest are kept, up to a number (30) and 4 KiB each.
#
#   FUZZTIME=600 bash .ci/run fuzz && bash scripts/keep-corpus.sh [NUMBER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

most=${1:-30}
cache=$(go env GOCACHE)/fuzz
module=$(go list -m)
git ls-files --cached --others --exclude-standard -- '*_test.go' | xargs grep -l '^func Fuzz' | xargs -n1 dirname | sort -u |
	while read -r folder; do
		for target in $(go test -list '^Fuzz' "./$folder" </dev/null | grep '^Fuzz'); do
			from=$cache/$module/$folder/$target to=$folder/testdata/fuzz/$target
			[[ -d $from ]] || continue
			mkdir -p "$to"
			have=$(find "$to" -type f | wc -l)
			find "$from" -type f -size -4k -printf '%s %p\n' | sort -n | cut -d' ' -f2- | while read -r input; do
				((have < most)) || break
				name=$to/$(basename "$input")
				[[ -e $name ]] || { cp "$input" "$name" && have=$((have + 1)); }
			done
			printf '%s: %d inputs\n' "$to" "$(find "$to" -type f | wc -l)"
		done
	done
