package nic

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// way is the stages in the order in which a message walks through them.
var way = []string{"transmit", "reliable", "link", "receive", "match", "schedule", "act", "deposit"}

// back is what a stage may ask of an earlier one in passing. No message goes
// that way: what a handler or the NIC itself sends begins anew.
var back = map[string]string{
	"match → transmit: owners":   "whose interface a header is for",
	"match → transmit: answerer": "a header that nobody else sends: a new message",
	"act → transmit: origin":     "what handlers send: new messages",
	"act → link: roomy":          "whether the egress has room",
	"act → schedule: resuming":   "a handler goes on",
	"deposit → act: waiters":     "data of a reply for a handler that waits, and that it is there",
	bothSides:                    "packets of its own have come, or have their turn on the wire",
}

// bothSides: a transport stands in front of the link for what is sent and
// behind it for what has come.
const bothSides = "link → reliable: transport"

func wired(t *testing.T, transport string) *NIC {
	n := new(NIC)
	n.Init(&Config{
		Engine: sim.New(1), Nodes: 2, Core: new(Core), Spec: &Spec{}, HPU: &HPUSpec{Cores: 1, Contexts: 1}, Fabric: &fabric.Spec{}, Bus: new(host.Bus),
		Transport: &TransportSpec{Kind: transport},
	})
	require.NotNil(t, n)
	return n
}

// In the code a message goes on and never back: a stage knows others by
// interfaces only, and none by which it could give an earlier one a message, a
// packet or a frame. Whoever adds a way back has to write it down above.
func TestMessagesGoOn(t *testing.T) {
	messages := []reflect.Type{reflect.TypeFor[*inbound](), reflect.TypeFor[packet](), reflect.TypeFor[*Frame](), reflect.TypeFor[task](), reflect.TypeFor[fabric.Packet]()}
	used := map[string]bool{}
	forward := 0
	for _, transport := range []string{Lossless, Reliable} {
		n := reflect.ValueOf(wired(t, transport)).Elem()
		stages := map[string]reflect.Value{}
		// at returns the stage that has a pointer, or a part that it points to.
		at := func(p uintptr) string {
			for name, v := range stages { //lint:maporder at most one has it
				if from := v.Addr().Pointer(); from <= p && p < from+v.Type().Size() {
					return name
				}
			}
			return ""
		}
		for _, name := range way {
			v := n.FieldByName(name)
			if v.Kind() == reflect.Pointer {
				if v.IsNil() {
					continue
				}
				v = v.Elem()
			}
			stages[name] = v
		}
		for name, v := range stages { //lint:maporder each by itself
			for i := range v.NumField() {
				f, in := v.Type().Field(i), v.Field(i)
				require.False(t, f.Type.Kind() == reflect.Pointer && slices.Contains(way, f.Type.Elem().Name()), "%s knows %s itself, not by an interface", name, f.Name)
				if f.Type.Kind() != reflect.Interface || in.IsNil() || in.Elem().Kind() != reflect.Pointer {
					continue
				}
				other := at(in.Elem().Pointer())
				if other == "" {
					continue
				}
				if slices.Index(way, other) > slices.Index(way, name) {
					forward++
					continue
				}
				key := name + " → " + other + ": " + f.Type.Name()
				require.Contains(t, back, key)
				if used[key] = true; key == bothSides {
					continue
				}
				for k := range f.Type.NumMethod() {
					m := f.Type.Method(k)
					for p := range m.Type.NumIn() {
						require.NotContains(t, messages, m.Type.In(p), "%s: %s", key, m.Name)
					}
				}
			}
		}
	}
	require.Greater(t, forward, 8)
	require.Len(t, used, len(back), "a way back that nobody has any more: %v", used)
}

// A stage handles its own events and no others.
func TestStagesKnowTheirEvents(t *testing.T) {
	n := wired(t, Reliable)
	for name, handle := range map[string]func(*sim.Event){ //lint:maporder each by itself
		"transmit": n.transmit.handle, "link": n.link.handle, "reliable": n.reliable.handle, "receive": n.receive.handle, "schedule": n.schedule.handle,
		"act": n.act.handle, "deposit": n.deposit.handle, "any stage": n.handle,
	} {
		require.Panics(t, func() { handle(&sim.Event{Kind: 0xff77}) }, name)
	}
	kinds := []sim.Kind{kindsOfTransmit, kindsOfLink, kindsOfReliable, kindsOfReceive, kindsOfMatch, kindsOfSchedule, kindsOfAct, kindsOfDeposit}
	stages := len(way)
	for _, o := range optional {
		if o.events != kindsOfReliable {
			require.Zero(t, o.events%stageOf)
			kinds = append(kinds, o.events)
			stages++
		}
	}
	slices.Sort(kinds)
	require.Len(t, slices.Compact(kinds), stages)
	require.Less(t, host.KindBusEnd, kinds[0])
	require.Less(t, kinds[len(kinds)-1]+stageOf, sim.KindShared)
}

// What go doc says of the package is the way of a message: at most 20 lines,
// the files of the stages in their order, each there and of the stage's type
// and interfaces.
func TestDocTellsTheWay(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", text, parser.ParseComments)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(file.Doc.Text()), "\n")
	require.LessOrEqual(t, len(lines), 20)
	var told []string
	for _, l := range lines {
		if name, what, is := strings.Cut(strings.TrimSpace(l), ".go  "); is && l[0] == '\t' {
			require.NotEmpty(t, strings.TrimSpace(what))
			told = append(told, name)
			source, err := os.ReadFile(name + ".go")
			require.NoError(t, err)
			require.Regexp(t, `(?m)^type `+name+` struct`, string(source))
			require.Regexp(t, `(?m)^func \(\w+ \*`+name+`\)`, string(source))
		}
	}
	require.Equal(t, way, told)
	named := regexp.MustCompile(`\w+\.go`).FindAllString(file.Doc.Text(), -1)
	for _, name := range named {
		require.FileExists(t, filepath.Clean(name))
	}
}
