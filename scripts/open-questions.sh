#!/bin/sh
# Prints the questions of lists of open questions that are neither a choice
# (ledger/questions) nor settled (ledger/settled.tsv):
#
#	scripts/open-questions.sh LIST.md…
#
# A list has a question in a row of a table, "| A1 | …", or in bold, "**A1 …**".
# Of ExaNeSt's letters A to D are TR-488, E and F PART'22. The lists are not part
# of the project.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: scripts/open-questions.sh LIST.md..." >&2; exit 2; }

settled() { # ids of a publication
	awk -F'\t' -v of="$1" '$1 == of {print $2}' ledger/settled.tsv | grep -o '[A-F][0-9][0-9]*' || true
}
chosen() { cut -f1 "ledger/questions/$1.tsv" | sed 's/\..*//' | grep '^[A-F][0-9]' || true; }

missing=0
for list; do
	ids=$(grep -o -E '(^\| |\*\*)[A-F][0-9]+' "$list" | grep -o '[A-F][0-9]*$')
	for id in $ids; do
		case $(basename "$list"):$id in
		*spin-npf*:A*) known="$(chosen spin17) $(settled spin17)" ;;
		*spin-npf*) known="$(chosen npf) $(settled npf)" ;;
		*) known="$(chosen exanest) $(chosen part) $(settled exanest) $(settled part)" ;;
		esac
		if ! echo "$known" | tr ' ' '\n' | grep -qx "$id"; then
			missing=$((missing + 1))
			grep -E "(^\| |\*\*)$id[ .*|]" "$list" | cut -c1-100
		fi
	done
done
echo "$missing questions that are neither a choice nor settled"
