#!/usr/bin/env bash
# Builds the TinyGo compiler that handlers are compiled with.
#
#   scripts/install-tinygo.sh [--help]
#
# TinyGo is built from the Go module proxy against Debian's LLVM 19. Where LLVM
# 19 is missing, its packages are installed with apt-get (root or sudo). The
# compiler goes to $SPINSIM_TOOLS/tinygo, by default .tools/tinygo in this
# repository. Nothing happens if the right version is there already.
set -euo pipefail

readonly version=0.41.1
readonly module=github.com/tinygo-org/tinygo@v${version}
readonly module_sum=h1:Hp1Frc4zQALL88t49XraSZEwkIYEjMOmmurlmsTigzE=
readonly llvm=19
# Counts changes to what build does below, so that an older result is built again.
readonly recipe=1
readonly stamp="tinygo $version llvm $llvm recipe $recipe"
readonly packages=(llvm-$llvm-dev clang-$llvm libclang-$llvm-dev lld-$llvm)

work=
trap 'if [[ -n $work ]]; then rm -rf "$work"; fi' EXIT

die() {
	printf 'install-tinygo: %s\n' "$*" >&2
	exit 1
}

usage() {
	sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
}

# LLVM is complete when each file the build of TinyGo or its use needs is there.
have_llvm() {
	[[ -e /usr/include/llvm-c-$llvm/llvm-c/Core.h ]] &&
		[[ -e /usr/lib/llvm-$llvm/lib/libLLVM-$llvm.so || -e /usr/lib/llvm-$llvm/lib/libLLVM.so ]] &&
		[[ -e /usr/lib/llvm-$llvm/include/clang-c/Index.h ]] &&
		command -v "clang-$llvm" >/dev/null &&
		command -v "clang++-$llvm" >/dev/null &&
		command -v "wasm-ld-$llvm" >/dev/null
}

install_llvm() {
	command -v apt-get >/dev/null ||
		die "LLVM $llvm is missing and apt-get is not here: install clang, lld and the development files of LLVM and libclang, version $llvm, as Debian lays them out, then run this again"
	local -a run=()
	if [[ $(id -u) -ne 0 ]]; then
		command -v sudo >/dev/null ||
			die "LLVM $llvm is missing and neither root nor sudo is available: ask for: apt-get install ${packages[*]}"
		run=(sudo)
	fi
	# Package lists may be absent or out of date on a fresh machine; only then is an update worth its time.
	if ! "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"; then
		"${run[@]}" apt-get update || die "apt-get update failed"
		"${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}" ||
			die "apt-get could not install ${packages[*]} (Debian 12 or newer has them)"
	fi
	have_llvm || die "LLVM $llvm is still incomplete after installing ${packages[*]}"
}

# json_field FIELD < the output of go mod download -json
json_field() {
	sed -n "s/^[[:space:]]*\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p"
}

# download prints the folder of the module in Go's module cache.
download() {
	local json dir sum
	if ! json=$(cd "$work" && go mod download -json "$module"); then
		die "go mod download $module: $(json_field Error <<<"$json")"
	fi
	sum=$(json_field Sum <<<"$json")
	[[ $sum == "$module_sum" ]] || die "$module has checksum $sum, expected $module_sum"
	dir=$(json_field Dir <<<"$json")
	[[ -d $dir ]] || die "go mod download $module named no folder"
	printf '%s\n' "$dir"
}

build() {
	local source=$1 root=$work/tinygo
	mkdir "$root"
	# The module cache is read-only and TinyGo wants a root of its own.
	cp -R "$source/." "$root"
	chmod -R u+w "$root"
	# A git submodule, absent from the module; TinyGo lists the folder even when nothing in it is used.
	mkdir -p "$root/src/net" "$root/bin"
	# Helpers for targets without floating-point minimum; exported, they would be in every handler.
	sed -i '/^\/\/export f\(min\|max\)imumf\{0,1\}$/d' "$root/src/runtime/float.go"
	# clang is there anyway: no other C compiler is needed.
	(cd "$root" && CC=clang-$llvm CXX=clang++-$llvm CGO_ENABLED=1 \
		go build -trimpath -buildvcs=false -tags "llvm$llvm" -o bin/tinygo .) ||
		die "go build of $module failed"
	# TinyGo always runs Binaryen's optimiser behind the linker. One optimiser is enough, and one
	# less version to agree on for reproducible bytes: this stand-in hands its input on.
	cat >"$root/bin/wasm-opt" <<'WASMOPT'
#!/bin/sh
# Stands in for Binaryen's wasm-opt: copies its input to its output.
input= output=
while [ $# -gt 0 ]; do
	case $1 in
	--version) echo "wasm-opt version 102 (copies only)"; exit 0 ;;
	--output | -o) output=$2; shift ;;
	-*) ;;
	*) input=$1 ;;
	esac
	shift
done
if [ -z "$input" ] || [ -z "$output" ]; then
	echo "wasm-opt: expected an input and --output" >&2
	exit 2
fi
exec cp "$input" "$output"
WASMOPT
	chmod +x "$root/bin/wasm-opt"
	"$root/bin/tinygo" version >/dev/null || die "the new tinygo does not run"
	printf '%s\n' "$stamp" >"$root/.spinsim"
}

main() {
	case ${1-} in
	'') ;;
	-h | --help) usage; return ;;
	*) die "unknown argument $1 (try --help)" ;;
	esac
	command -v go >/dev/null || die "go is not on the PATH: install Go 1.26 first (https://go.dev/dl)"

	local repository tools dest
	repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
	tools=${SPINSIM_TOOLS:-$repository/.tools}
	mkdir -p "$tools"
	tools=$(cd "$tools" && pwd)
	dest=$tools/tinygo
	# Settings for other Go work must not leak into this build.
	export GOFLAGS= GOWORK=off GOOS= GOARCH=

	have_llvm || install_llvm
	if [[ -f $dest/.spinsim && $(<"$dest/.spinsim") == "$stamp" ]] && "$dest/bin/tinygo" version >/dev/null; then
		printf 'TinyGo %s is in %s already.\n' "$version" "$dest"
		return
	fi

	work=$(mktemp -d "$tools/.tinygo-XXXXXX")
	printf 'Downloading %s\n' "$module"
	local source
	source=$(download)
	printf 'Building TinyGo %s against LLVM %s (about a minute)\n' "$version" "$llvm"
	build "$source"
	rm -rf "$dest"
	mv "$work/tinygo" "$dest"
	printf 'TinyGo %s is in %s.\n' "$version" "$dest"
	if [[ $dest == "$repository/.tools/tinygo" ]]; then
		printf 'go generate ./handlers/... and spinsim handler build find it there.\n'
	else
		printf 'To use it: export SPINSIM_TINYGO=%s/bin/tinygo\n' "$dest"
	fi
}

main "$@"
