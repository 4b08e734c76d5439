#!/usr/bin/env bash
# The promise of docs/architecture.md, "Add something": what is added takes one
# file, or one folder, and at most one line elsewhere. This script adds one of
# each to a copy of the tree, counts, uses what it has added and runs the tests.
#
#   bash scripts/trial.sh          the short tests of the packages that know lists
#   bash scripts/trial.sh --full   all tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests=(-short -skip '^TestAttack$|Signal' ./cmd/spinsim ./experiment ./experiment/spin17 ./fabric ./handlers ./inet ./nic ./profile
	./internal/lint ./internal/reports ./internal/scaffold ./internal/site)
[[ ${1-} != --full ]] || tests=(./...)

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$copy"
cd "$copy"
git() { command git -c user.name=trial -c user.email=trial@example.org "$@"; }
git init -q
git add -A
git commit -qm trial

# added WHAT PATH: counts what has changed since the last call. New files are at
# PATH, or their names begin with it.
added() {
	git add -A
	local strange lines
	strange=$(git diff --cached --name-only --diff-filter=A | grep -v "^$2" || true)
	lines=$(git diff --cached --numstat --diff-filter=a | awk '{ n += $1 + $2 } END { print n + 0 }')
	printf '%-16s %-36s lines elsewhere: %d\n' "$1" "$2" "$lines"
	if [[ -n $strange ]] || ((lines > 1)); then
		git diff --cached --stat
		printf '%s\n' "scripts/trial.sh: $1: expected $2 and one line elsewhere" >&2
		exit 1
	fi
	git commit -qm "$1"
}

# line FILE BEFORE TEXT: adds a line before the one that is BEFORE.
line() {
	sed -i "s|^$2\$|$3\n&|" "$1"
	grep -qxF -- "$3" "$1"
}

cat >experiment/spin17/trial.go <<'END'
package spin17

import (
	"context"
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var trial = &experiment.Experiment{
	Name: "trial", Short: "a message and its handlers", Source: "sPIN'17 §9",
	Smoke:   []experiment.Values{{"size": 64}},
	Axes:    []experiment.Axis{{Name: "size", Kind: report.Size, Least: "1", Most: "1MiB", Default: "8,64KiB", Help: "size of the message"}},
	Columns: []report.Column{{Name: "latency", Unit: "ns", Kind: report.Duration, Help: "from the put to the host that knows the message has been handled"}},
	Slots:    experiment.Always(count.TargetSlot),
	Followed: "latency",
	Run: func(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
		v := experiment.Values{}
		source := func(s *runtime.Proc) error { return experiment.Send(s, 1, make([]byte, p.Int("size"))) }
		_, err := p.Simulate(ctx, source, func(target *runtime.Proc) error {
			in, err := p.Receive(target, p.Int("size"))
			if err != nil {
				return err
			}
			v["latency"], err = in.Wait()
			p.NoteOperation(1, "", 0, v["latency"].(sim.Time))
			if n, _ := in.Handlers().Number("bytes"); err == nil && n != uint64(p.Int("size")) {
				err = fmt.Errorf("the handlers have counted %v bytes, expected %d", n, p.Int("size"))
			}
			return err
		})
		return v, err
	},
}
END
line experiment/spin17/spin17.go $'\t\tgraphs,' $'\t\ttrial,'
added experiment experiment/spin17/trial.go

# A name as long as sum, so that the module stays one, and the first of all.
cp -r handlers/sum handlers/abs
mv handlers/abs/sum.wasm handlers/abs/abs.wasm
LC_ALL=C sed -i 's/"name":"sum"/"name":"abs"/' handlers/abs/abs.wasm
find handlers/abs -name '*.go' -o -name '*.md' | xargs sed -i 's/\bsum\b/abs/g'
line internal/libraries/libraries.go $'\t_ "github.com/spinsim/spinsim/handlers/accumulate"' $'\t_ "github.com/spinsim/spinsim/handlers/abs"'
added library handlers/abs/

cat >fabric/trial.go <<'END'
package fabric

import "fmt"

var trialKind = &kind{
	name:  "dumbbell",
	build: func(_ *Spec, nodes int) (Topology, error) { return dumbbell(nodes), nil },
}

// dumbbell is two switches with a cable, and the nodes by turns at one of them.
type dumbbell int

func (n dumbbell) Size() (switches, links int) { return 2, int(n) + 2 }
func (n dumbbell) Home(node int) int           { return node % 2 }
func (n dumbbell) Channels() int               { return 1 }
func (n dumbbell) SwitchName(s int) string     { return fmt.Sprintf("Switch[%d]", s) }
func (n dumbbell) LinkName(link int) string    { return fmt.Sprintf("Link[%d]", link) }

func (n dumbbell) Link(link int) Link {
	if link < int(n) {
		return Link{From: link % 2, To: link, Node: true}
	}
	return Link{From: link - int(n), To: int(n) + 1 - link}
}

func (n dumbbell) Route(at, _, dst int) (link, channel int) {
	if dst%2 == at {
		return dst, 0
	}
	return int(n) + at, 0
}
END
line fabric/kind.go $'\tfileKind,' $'\ttrialKind,'
added topology fabric/trial.go

sed 's/^int: 1$/int: 2/' profile/profiles/costs/scalar.yaml >profile/profiles/costs/arm.yaml
added 'cost table' profile/profiles/costs/arm.yaml

printf '%s\n' 'base: spin-int' 'name: aries' 'description: a trial' >profile/profiles/aries.yaml
added profile profile/profiles/aries.yaml

cp inet/sets/rfc.yaml inet/sets/aix.yaml
added 'TCP parameters' inet/sets/aix.yaml

cat >nic/trial.go <<'END'
package nic

import "github.com/spinsim/spinsim/sim"

// trialStage stands in front of receive, counts packets and may keep them for a
// time.
type trialStage struct {
	*env
	next  arrivals
	keeps sim.Time
	count int64
}

const kindsOfTrial = 10 * stageOf

func connectTrial(n *NIC, _ *Config) optionalStage {
	s := &trialStage{env: &n.env, next: n.link.next}
	n.link.next = s
	return s
}

func (s *trialStage) handle(e *sim.Event) {
	if e.Kind != kindsOfTrial {
		unknown("trial", e)
	}
	s.next.packetArrived(e.P.(*Frame), int(e.A), false)
}

func (s *trialStage) packetArrived(f *Frame, i int, damaged bool) {
	if s.count++; s.keeps > 0 && !damaged {
		s.post(s.now()+s.keeps, kindsOfTrial, uint64(i), f)
		return
	}
	s.next.packetArrived(f, i, damaged)
}

func (s *trialStage) abandoned(source int32) { s.next.abandoned(source) }
END
line nic/nic.go $'\t{kindsOfReliable, connectReliable},' $'\t{kindsOfTrial, connectTrial},'
added 'NIC stage' nic/trial.go

cat >cmd/spinsim/trial.go <<'END'
package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func trialCommand() *cobra.Command {
	var text string
	var times int
	c := &cobra.Command{
		Use:   "trial",
		Short: "Print a text several times",
		Long:  "Trial prints a text several times.",
		Args:  exactArguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			if times < 1 {
				return badInput(fmt.Errorf("--times: %d, expected at least 1", times))
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), strings.Repeat(text+" ", times))
			return err
		},
	}
	c.Flags().StringVar(&text, "text", "trial", "what to print")
	c.Flags().IntVar(&times, "times", 1, "how often")
	return c
}
END
line cmd/spinsim/commands.go $'\t\t{"man", manCommand},' $'\t\t{"trial", trialCommand},'
added command cmd/spinsim/trial.go

go vet ./experiment/spin17 ./handlers/abs/... ./fabric ./nic ./cmd/spinsim
go build -o "$copy/spinsim" ./cmd/spinsim
./spinsim trial
./spinsim compare trial --profile aries --set fabric.kind=dumbbell --set hpu.costs=arm
./spinsim handler inspect abs
rm spinsim
GOFLAGS="${GOFLAGS-} -timeout=25m" go test -vet=off "${tests[@]}"
