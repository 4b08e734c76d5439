#!/usr/bin/env bash
# Rebuilds every handler module and compares it with the committed one, byte for byte.
#
#   scripts/check-wasm.sh
#
# Needs the compilers of scripts/install-tinygo.sh and scripts/install-languages.sh (Rust 1.63, of Debian 12). Exit status 1 if a module differs, or is not
# made by a go:generate directive of its folder; go generate ./handlers/... ./laws ./examples/... ./internal/... ./experiment brings them up to date.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

readonly directive='//go:generate go run (\.\./)+internal/build/cmd '
go build -o "$work/build" ./internal/build/cmd

checked=0 bad=0
declare -A made=()
while IFS=: read -r file line; do
	folder=$(dirname "$file")
	read -ra args <<<"${line#*internal/build/cmd }"
	# The directive's form: [-g] -o MODULE SOURCE
	debug=()
	if [[ ${args[0]} == -g ]]; then
		debug=(-g)
		args=("${args[@]:1}")
	fi
	if [[ ${#args[@]} -ne 3 || ${args[0]} != -o ]]; then
		printf '%s: cannot read the directive: %s\n' "$file" "$line" >&2
		exit 2
	fi
	module=$folder/${args[1]}
	made[$module]=1
	"$work/build" "${debug[@]}" -o "$work/module.wasm" "$folder/${args[2]}"
	committed=$module
	if [[ ${#debug[@]} -gt 0 ]]; then # lines of spin.h move when anything is added to it: only the code counts
		cp "$module" "$work/committed.wasm"
		committed=$work/committed.wasm
		llvm-strip-19 --strip-debug "$work/module.wasm" "$committed"
	fi
	if ! cmp -s "$work/module.wasm" "$committed"; then
		printf '%s differs from what %s/%s compiles to\n' "$module" "$folder" "${args[2]}" >&2
		bad=1
	fi
	checked=$((checked + 1))
done < <(grep -rE --include='*.go' "$directive" handlers laws examples internal experiment | sort)

while IFS= read -r module; do
	if [[ -z ${made[$module]-} ]]; then
		printf '%s has no go:generate directive\n' "$module" >&2
		bad=1
	fi
done < <(git ls-files 'handlers/**.wasm' 'laws/*.wasm' 'examples/**.wasm' 'internal/lab/**.wasm' 'internal/cores/**.wasm' 'experiment/**.wasm' | sort -u)

if [[ $checked -eq 0 ]]; then
	echo 'check-wasm: no go:generate directive found' >&2
	exit 2
fi
if [[ $bad -ne 0 ]]; then
	exit 1
fi
printf '%d modules are what their sources compile to.\n' "$checked"
