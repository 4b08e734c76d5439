#!/usr/bin/env bash
# Makes archives of spinsim for systems without Go, from the commit that is checked out, and their checksums, in .release:
#
#   scripts/release.sh                            all systems
#   scripts/release.sh linux/amd64 darwin/arm64   some of them
#
# Each holds the program, LICENSE and NOTICE, and those for Unix manual pages and completions as well. Equal commits and versions of Go give
# equal bytes, in whatever folder. Needs GNU tar.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly all=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64)
readonly out=$PWD/.release

case ${1-} in
-h | --help)
	sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
	exit 0
	;;
esac
[[ -z $(git status --porcelain) ]] || {
	echo "release: files are changed: commit first, since an archive is named after its commit" >&2
	exit 1
}
version=$(git describe --tags --always)
epoch=$(git log -1 --format=%ct)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# build SYSTEM PROGRAM: without cgo, paths, symbols and the linker's own number, so that nothing of this machine is in it.
build() {
	GOOS=${1%/*} GOARCH=${1#*/} CGO_ENABLED=0 GOFLAGS= go build -trimpath -buildvcs=true -ldflags='-s -w -buildid=' -o "$2" ./cmd/spinsim
}

# What goes beside the programs comes from one for this machine.
build "$(go env GOHOSTOS)/$(go env GOHOSTARCH)" "$work/spinsim"
mkdir "$work/completions"
"$work/spinsim" man "$work/man1" >/dev/null
for shell in bash zsh fish; do
	"$work/spinsim" completion "$shell" >"$work/completions/spinsim.$shell"
done

archives=()
for system in "${@:-${all[@]}}"; do
	name=spinsim-$version-${system/\//-}
	mkdir "$work/$name"
	cp LICENSE NOTICE "$work/$name/"
	if [[ $system == windows/* ]]; then
		build "$system" "$work/$name/spinsim.exe"
	else
		build "$system" "$work/$name/spinsim"
		cp -R "$work/man1" "$work/completions" "$work/$name/"
	fi
	tar -C "$work" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf - "$name" | gzip -n9 >"$out/$name.tar.gz"
	archives+=("$name.tar.gz")
	echo ".release/$name.tar.gz"
done
(cd "$out" && sha256sum "${archives[@]}" >SHA256SUMS)
