#!/usr/bin/env bash
# Asks what the loops of internal/cores take on the cores that the cost tables describe, and writes internal/cores/references.csv.
#
#   scripts/core-references.sh            write the file
#   scripts/core-references.sh --check    only compare with it; exit status 1 if it differs
#   scripts/core-references.sh --loops    print the machine instructions of the loops instead
#
# Needs clang-19 and llvm-mca-19 (Debian: apt-get install clang-19 llvm-19). The loops are those of internal/cores/guest/kernels.c,
# compiled for the core as handlers would be: -O2, scalar, not unrolled. The innermost loop of each function then goes to
#
#   scalar       llvm-mca with the model of Rocket (rocket-rv64): 64 bits, in order, one instruction at a time
#   a15          llvm-mca with the model of the Cortex-A57 (cortex-a57) on code for the Cortex-A15. LLVM has none of the Cortex-A15: its
#                cortex-a15 is the Cortex-A9's, two instructions wide. The A57 is as wide as the A15: three
#                instructions, two integer units, one for multiplications, one for loads, one for stores, two for floating point
#   rv32-pspin   the table "Cycle counts per instruction type" of the CV32E40P's user manual, below: LLVM has no model of it
set -euo pipefail
export LC_ALL=C

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly source=internal/cores/guest/kernels.c out=internal/cores/references.csv rounds=1200
readonly clang=${CLANG:-clang-19} mca=${LLVM_MCA:-llvm-mca-19}
readonly flags=(-O2 -std=c11 -ffreestanding -ffp-contract=off -fno-math-errno -fno-vectorize -fno-slp-vectorize -fno-unroll-loops)
readonly loops=(copy sum8 sum64 xor32 cmul cmulf hash crc chase histogram filter normf)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for tool in "$clang" "$mca"; do
	command -v "$tool" >/dev/null || {
		printf 'core-references: %s not found: apt-get install clang-19 llvm-19\n' "$tool" >&2
		exit 2
	}
done

# loops FILE FOLDER: the innermost loop of each function of an assembly file, from a label to the last branch back to it.
split_loops() {
	mkdir "$2"
	awk -v folder="$2" '
		/^[a-z0-9]+:/ { name = $1; sub(/:.*/, "", name); n = 0; delete at }
		/^\.L[A-Za-z0-9_]+:/ { label = $1; sub(/:.*/, "", label); at[label] = n }
		/^\t[a-z]/ {
			sub(/[ \t]+[#@] .*/, "")
			line[n++] = $0
			if ($1 ~ /^(b|j)/ && $NF in at) {
				body[name] = ""
				for (i = at[$NF]; i < n; i++) body[name] = body[name] line[i] "\n"
			}
		}
		END { for (f in body) printf "%s", body[f] > (folder "/" f ".s") }
	' "$1"
}

compile() { # NAME, options of the compiler
	local name=$1
	shift
	"$clang" "$@" "${flags[@]}" -S "$source" -o "$work/$name.s"
	split_loops "$work/$name.s" "$work/$name"
}

# simulate FILE, options of llvm-mca: cycles of a round, with the branches predicted.
simulate() {
	local file=$1
	shift
	"$mca" "$@" -iterations=$rounds "$file" 2>/dev/null |
		awk -v rounds=$rounds '/^Total Cycles:/ { printf "%.2f", $3 / rounds }'
}

# count FILE: cycles of a round on a CV32E40P. Its manual, "Pipeline Details": everything 1; mulh 5; div and rem 35, the most; a load or (FPU
# latency 1) a floating-point instruction 1 more if the next one uses the result; fdiv.s and fsqrt.s 19, the most; a jump 2; a branch 3
# if it is taken, else 1. A branch back that is not the last is taken every second time, one out of the loop never. Calls are not
# counted: nothing is printed.
count() {
	awk '
		{ op[NR] = $1; text = $0; sub(/^[ \t]*[^ \t]+/, "", text); gsub(/[(), \t]+/, " ", text); rest[NR] = text " "; target[NR] = $NF }
		END {
			weight = 1
			for (i = 1; i <= NR; i++) {
				split(rest[i], r, " ")
				cost = 1
				if (op[i] == "call") exit
				if (op[i] ~ /^mulh/) cost = 5
				else if (op[i] ~ /^(div|rem)/) cost = 35
				else if (op[i] ~ /^f(div|sqrt)/) cost = 19
				else if (op[i] == "j") cost = 2
				else if (op[i] ~ /^b/) {
					if (target[i] == target[NR]) cost = i == NR ? 3 : 2
				}
				if (op[i] ~ /^(lb|lh|lw|flw|fadd|fsub|fmul)/ && i < NR) {
					uses = rest[i + 1]
					if (op[i + 1] !~ /^(s[bhw]|fsw|b)/) sub(/^ *[^ ]+/, "", uses) # its result
					if (index(uses, " " r[1] " ")) cost++
				}
				cycles += cost * weight
				if (op[i] ~ /^b/ && target[i] == target[NR] && i < NR) weight /= 2
			}
			printf "%.2f", cycles
		}' "$1"
}

compile scalar --target=riscv64-unknown-elf -mcpu=rocket-rv64 -march=rv64gc -mabi=lp64d
compile a15 --target=armv7a-none-eabihf -mcpu=cortex-a15
compile rv32-pspin --target=riscv32-unknown-elf -march=rv32imfc -mabi=ilp32f -mtune=rocket-rv32

if [[ ${1-} == --loops ]]; then
	for table in scalar a15 rv32-pspin; do
		for loop in "${loops[@]}"; do
			printf '%s %s\n' "$table" "$loop"
			cat "$work/$table/$loop.s"
		done
	done
	exit
fi

{
	printf '# Written by scripts/core-references.sh with %s.\n' "$("$mca" --version | sed -n 's/.*LLVM version/LLVM/p')"
	printf 'table,loop,cycles,instructions\n'
	for loop in "${loops[@]}"; do
		lines() { wc -l <"$work/$1/$loop.s"; }
		printf 'scalar,%s,%s,%d\n' "$loop" "$(simulate "$work/scalar/$loop.s" -mtriple=riscv64 -mcpu=rocket-rv64 -mattr=+m,+f,+d,+c)" "$(lines scalar)"
		printf 'a15,%s,%s,%d\n' "$loop" "$(simulate "$work/a15/$loop.s" -mtriple=armv7a-none-eabihf -mcpu=cortex-a57)" "$(lines a15)"
		printf 'rv32-pspin,%s,%s,%d\n' "$loop" "$(count "$work/rv32-pspin/$loop.s")" "$(lines rv32-pspin)"
	done
} >"$work/references.csv"

if [[ ${1-} == --check ]]; then
	diff "$out" "$work/references.csv"
	exit
fi
cp "$work/references.csv" "$out"
