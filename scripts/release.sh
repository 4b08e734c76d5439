#!/usr/bin/env bash
# Makes archives of spinsim for systems without Go, from the commit that is checked out, and their checksums, in .release:
#
#   scripts/release.sh                            all systems
#   scripts/release.sh linux/amd64 darwin/arm64   some of them
#
# Each holds the program, LICENSE and NOTICE, and those for Unix manual pages and completions as well. For Linux there is an OCI image, too:
#
#   podman load -i .release/spinsim-v0.1.0-linux-amd64.oci.tar        or: skopeo copy oci-archive:FILE docker-daemon:spinsim:v0.1.0
#
# Equal commits and versions of Go give equal bytes, in whatever folder. The version is that of internal/provenance/version.txt: of a tagged commit
# it is the tag, of others it ends in -devel and the commit. Needs GNU tar.
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
version=$(<internal/provenance/version.txt)
if tag=$(git describe --tags --exact-match 2>/dev/null); then
	[[ $tag == "$version" ]] || {
		echo "release: the tag is $tag, internal/provenance/version.txt has $version: they must be the same" >&2
		exit 1
	}
else
	version+=-devel-$(git rev-parse --short=12 HEAD)
fi
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
	if [[ $system == linux/* ]]; then
		scripts/oci-image.sh "$work/$name" "$out/$name.oci.tar" "$version" "${system#*/}" "$epoch"
		archives+=("$name.oci.tar")
		echo ".release/$name.oci.tar"
	fi
done
(cd "$out" && sha256sum "${archives[@]}" >SHA256SUMS)
