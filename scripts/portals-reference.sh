#!/usr/bin/env bash
# Runs the conformance scripts of package portals on the public reference implementation of Portals 4 and compares what they print.
#
#   scripts/portals-reference.sh [WORD]     all scripts, or those whose file or name contains WORD
#
# Exit status 1 if a script differs for no reason that internal/portalscript/testdata/reference.csv gives, if it agrees although that file says why it does
# not, and if the library does not begin. What is left out is counted by what it asks for: scripts that say when messages move ("manual"), and those
# that need what only our device has.
#
# The implementation (sandialabs/portals4, the commit of September 2024 that has PtlAbort) is built in $SPINSIM_TOOLS/portals4, by default .tools/portals4, with its transport over UDP on the
# loopback interface. It needs git, a C compiler, autoconf, automake, libtool, libev and Python 3 (Debian: apt-get install autoconf automake libtool
# libev-dev python3). A run takes half an hour on two idle cores: every process has a thread that never sleeps.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly commit=4e787c1330d956f9d924b7aed21094eb40dfd83d
readonly source=${PORTALS4_SOURCE:-https://github.com/sandialabs/portals4}
readonly home=${SPINSIM_TOOLS:-$PWD/.tools}/portals4
readonly library=$home/installed/lib/libportals.so

if [[ ! -e $library ]]; then
	rm -rf "$home"
	mkdir -p "$home/build"
	git clone --quiet "$source" "$home/source"
	git -C "$home/source" checkout --quiet "$commit"
	(cd "$home/source" && ./autogen.sh)
	# Not unordered-matching: with it this commit does not compile.
	# zero-mrs: memory regions of no bytes, which many scripts have. fcommon: it was written for compilers before GCC 10.
	(cd "$home/build" && ../source/configure --prefix="$home/installed" --disable-transport-ib --enable-transport-udp --enable-reliable-udp \
		--enable-transport-shmem --enable-zero-mrs --enable-me-triggered CFLAGS="-O1 -g -fcommon -w")
	make -C "$home/build" -j"$(nproc)" install
fi >&2

exec python3 -B scripts/portals-reference/compare.py "$library" internal/portalscript/testdata "$@"
