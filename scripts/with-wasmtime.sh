#!/usr/bin/env bash
# Runs a command of Go in this repository with the engine wasmtime in every program that it builds (needs cgo, fetches 237 MB):
#
#   scripts/with-wasmtime.sh go test ./hpu
#   scripts/with-wasmtime.sh go build -o spinsim ./cmd/spinsim    # spinsim compare bcast --engine wasmtime
#
# The engine is a module of its own, hpu/testdata/wasmtime, which nothing here imports: go mod tidy looks at files of any build tag, so that
# one import would have everybody fetch it who uses a package of spinsim. The import is in a file that only this script's overlay
# has, and the requirement in a go.mod beside it; both are made anew each time. The build tag wasmtime is set for tests.
set -euo pipefail

[[ $# -gt 0 && $1 != --help && $1 != -h ]] || {
	sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
	exit 0
}
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly repository engine=github.com/spinsim/spinsim/hpu/testdata/wasmtime
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

cp "$repository/go.mod" "$made/with.mod"
sort -u "$repository/go.sum" "$repository/hpu/testdata/wasmtime/go.sum" >"$made/with.sum"
(cd "$repository" && go mod edit -require="$engine@v0.0.0" -replace="$engine=./hpu/testdata/wasmtime" \
	-require="$(awk '/wasmtime-go/ { print $(NF-1) "@" $NF }' hpu/testdata/wasmtime/go.mod)" "$made/with.mod")
printf 'package hpu\n\nimport _ "%s"\n' "$engine" >"$made/with.go"
printf '{"Replace": {"%s": "%s"}}\n' "$repository/hpu/with_wasmtime.go" "$made/with.go" >"$made/overlay.json"

export CGO_ENABLED=1
GOFLAGS="${GOFLAGS:-} -modfile=$made/with.mod -overlay=$made/overlay.json -tags=wasmtime" "$@"
