#!/usr/bin/env bash
# fabtests.sh FOLDER runs libfabric's own tests over the simulator: FOLDER is the
# directory fabtests of libfabric v1.17. It needs what spinsim mpirun needs, and
# autoconf, automake, libtool and make. It prints each test of runfabtests.sh with
# passed, failed, or why it does not fit, and ends with 1 if one has failed.
# FABTESTS_ONLY is a regular expression of the tests to run, FABTESTS_ARGS are
# options of spinsim mpirun, such as --profile exanest.
set -euo pipefail

list=${1:?usage: fabtests.sh FOLDER}/scripts/runfabtests.sh
[[ -r $list ]] || { echo "fabtests.sh: no $list: is $1 the directory fabtests of libfabric?" >&2; exit 2; }
work=$(mktemp -d "${TMPDIR:-/tmp}/spinsim-fabtests.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -r "$1" "$work/source"
go build -o "$work/spinsim" ./cmd/spinsim
(cd "$work/source" && ./autogen.sh && ./configure --with-libfabric=/usr --prefix="$work" && make -j2 install) >"$work/log" 2>&1 ||
	{ tail -20 "$work/log" >&2; exit 1; }

# one process of a test: a server, or a client that begins later
cat >"$work/one" <<'END'
#!/bin/sh
kind=$1 work=$2
shift 2
case $kind$OMPI_COMM_WORLD_RANK in
pair0) set -- "$@" -E ;;
pair1) sleep 0.4; set -- "$@" -E 127.0.0.1 ;;
named1) set -- "$@" rank0 ;;
esac
"$@"
echo $? >"$work/code.$OMPI_COMM_WORLD_RANK"
END
chmod +x "$work/one"

# What is no test of a provider of reliable datagrams, and why.
unfit() {
	case $1 in
	*"-e msg"* | fi_msg | fi_msg_pingpong* | fi_msg_bw* | fi_msg_epoll | fi_msg_sockets | fi_cm_data) echo "connected endpoints" ;;
	*"-e dgram"* | fi_dgram | fi_dgram_*) echo "unreliable datagrams" ;;
	fi_shared_ctx*) echo "contexts that endpoints share" ;;
	fi_scalable_ep*) echo "scalable endpoints" ;;
	fi_rdm_rma_trigger*) echo "triggered operations" ;;
	fi_rdm_shared_av*) echo "an address vector of two processes" ;;
	fi_ubertest*) echo "no list of configurations for this provider" ;;
	fi_multinode*) echo "started by a script of its own" ;;
	sighandler_test*) echo "no test of libfabric" ;;
	esac
}

# arrays of the tests, as runfabtests.sh has them
eval "$(sed -n '/^neg_unit_tests=(/,/^prov_efa_tests=(/p' "$list" | sed '$d')"
passed=0 failed=0 other=0

report() { printf '%-52s %s\n' "$1" "$2"; }

try() { # KIND TEST
	local kind=$1 test=$2 ranks=1 why code=0 c
	[[ $test =~ ${FABTESTS_ONLY:-.} ]] || return 0
	why=$(unfit "$test")
	if [[ $why ]]; then
		report "$test" "does not fit: $why"
		other=$((other + 1))
		return
	fi
	[[ $test == fi_poll* ]] && kind=named # it does not agree by sockets
	[[ $kind == pair || $kind == named ]] && ranks=2
	test=${test/-s SERVER_ADDR/-s rank0}
	test=${test/GOOD_ADDR/rank0}
	rm -f "$work"/code.*
	local words
	read -ra words <<<"$test"
	timeout 60 "$work/spinsim" mpirun -n $ranks ${FABTESTS_ARGS:-} -- "$work/one" "$kind" "$work" "$work/bin/${words[0]}" "${words[@]:1}" -p spinsim \
		>"$work/out" 2>&1 </dev/null || true
	for ((c = 0; c < ranks; c++)); do
		((code)) || code=$(cat "$work/code.$c" 2>/dev/null || echo 1)
	done
	[[ $kind == negative ]] && code=$((code == 61 ? 0 : 1)) # FI_ENODATA
	if ((code == 0)); then
		report "$test" passed
		passed=$((passed + 1))
	elif ((code == 61 || code == 38)); then # FI_ENODATA, FI_ENOSYS: as in runfabtests.sh
		report "$test" "does not fit: the test says so"
		other=$((other + 1))
	else
		report "$test" "failed: $(grep -av '^$\|spinsim v\|virtual time' "$work/out" | tail -1 | cut -c1-90)"
		failed=$((failed + 1))
	fi
}

for t in "${neg_unit_tests[@]}"; do try negative "$t"; done
for t in "${functional_tests[@]}" "${short_tests[@]}" "${standard_tests[@]}"; do try pair "$t"; done
for t in "${unit_tests[@]}" "${regression_tests[@]}" "${complex_tests[@]}" "${multinode_tests[@]}"; do try single "$t"; done
echo "$passed passed, $failed failed, $other do not fit"
((failed == 0))
