#!/usr/bin/env bash
# Installs the compilers of handlers in Rust and AssemblyScript.
#
#   scripts/install-languages.sh [--help]
#
# Rust and its core library for wasm32-unknown-unknown come from Debian, unless a compiler with that target is there already; the compiler of
# AssemblyScript comes from npm into .tools/node_modules of this repository: the packages that scripts/assemblyscript/package-lock.json has the hashes
# of, without their install scripts. C++ takes what scripts/install-tinygo.sh installs.
set -euo pipefail

if [[ ${1-} == --help || ${1-} == -h ]]; then
	sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
	exit 0
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."

install() {
	local -a run=()
	[[ $(id -u) -eq 0 ]] || run=(sudo)
	"${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" ||
		{ "${run[@]}" apt-get update && "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; }
}

# A compiler with the target, as handler build looks for one.
have_rust() {
	local rustc
	for rustc in $(type -ap rustc) /usr/bin/rustc; do
		[[ -x $rustc && -d $("$rustc" --print=target-libdir --target=wasm32-unknown-unknown 2>/dev/null) ]] && return 0
	done
	return 1
}

have_rust || install rustc libstd-rust-dev-wasm32
command -v wasm-ld-19 >/dev/null || command -v wasm-ld >/dev/null || install lld-19
command -v npm >/dev/null || install nodejs npm
if [[ ! -x .tools/node_modules/.bin/asc ]] || ! cmp -s scripts/assemblyscript/package-lock.json .tools/package-lock.json; then
	mkdir -p .tools
	cp scripts/assemblyscript/package.json scripts/assemblyscript/package-lock.json .tools
	npm ci --ignore-scripts --silent --no-audit --no-fund --prefix .tools
fi
printf 'Rust and AssemblyScript %s are there.\n' "$(.tools/node_modules/.bin/asc --version | sed 's/^Version //')"
