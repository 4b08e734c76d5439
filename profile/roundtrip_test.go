package profile

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/sim"
)

// words are the possible texts of fields, and some that are hard to write.
var words = []string{
	"full", "latency", "cycles", "nothing", "initiated", "landed", "pipelined", "serial", "none", "reliable", "nscc", "dctcp", "arriving", "either", "load", "spray", "recycle", fabric.FatTree, fabric.Crossbar, fabric.ByFlow, fabric.UnitsAtAll, "zyx", "up",
	"block", "loop", "offset", "index", "none", "queue", "stall", "poison", "tasklet", "always", "own", "message", "page", "once", "process", "read-write", "cache", "memory", "cached", "ordered", "together", "mailbox", "sum", "acknowledged", "", "a: b, {c} [d] #e 'f' \"g\" <é>", "two\nlines \\n", " 010 ", "~", "null", "1e3", "yes", "*x", "- x",
}

// others are possible other values of a field, if the rest of the profile
// permits them.
func others(field reflect.Value) (list []any) {
	switch v := field.Interface().(type) {
	case sim.Rate:
		return []any{sim.NewRate(1000, 7), sim.NewRate(20, 1), sim.Rate{}}
	case string, hpu.Chain, hpu.Address:
		for _, w := range words {
			list = append(list, reflect.ValueOf(w).Convert(field.Type()).Interface())
		}
		return list
	case bool:
		return []any{!v}
	case float64:
		return []any{0.125, 1e-9, 0.1}
	case []int:
		return []any{[]int{4, 2}, []int{3}, []int{2, 1, 3}}
	case fabric.Buffers:
		return []any{fabric.Buffers{1 << 16}, fabric.Buffers{1 << 16, 1 << 14}}
	case []fabric.Down:
		node := 3
		return []any{[]fabric.Down{{Node: &node, From: 1, To: 2500}, {Link: "Switch[0].Port[1]", To: sim.Second}}}
	case []fabric.PlanSwitch:
		return []any{append(slices.Clone(v), fabric.PlanSwitch{Name: "c", Ports: 3})}
	case []fabric.PlanNodes:
		return []any{[]fabric.PlanNodes{{At: "b", Count: 2}, {At: "a"}}}
	case []fabric.PlanLink:
		return []any{append(slices.Clone(v), fabric.PlanLink{From: "b", To: "a", Rate: sim.NewRate(7, 3), Wire: 5, OneWay: true})}
	case map[string]int64:
		return []any{map[string]int64{"dma_to_host": 7, "ct_inc": 1}}
	case nic.Pools:
		return []any{nic.Pools{"r5": {Kind: nic.Firmware, Cores: 2, Contexts: 3, Invocation: 4}, "wire": {Kind: nic.Hardware, Latency: 5, Depth: 6}}}
	case nic.Tenants:
		return []any{nic.Tenants{"a": {UID: 1, Weight: 3, MaxCycles: 100}, "b": {UID: 2, Weight: 1, WaitingHandlers: 7, PacketBuffer: 64, NodeMemory: 1 << 16}}}
	case nic.Serve:
		return []any{nic.Serve{"count": {"payload": "r5", "header": nic.HPUs}, "sum": {"completion": "r5"}}}
	case map[string]uint64:
		return []any{map[string]uint64{"target_ps": 7}}
	case map[string]hpu.InstrCost:
		return []any{map[string]hpu.InstrCost{"i32.add i32.sub": {Cost: 2, Slots: 1, Latency: 3}}}
	}
	for _, n := range []int64{field.Int() + 1, field.Int() - 1, 2 * field.Int(), 0, 1, 64, 1 << 20, 1<<30 + 1} {
		list = append(list, reflect.ValueOf(n).Convert(field.Type()).Interface())
	}
	return list
}

// contexts are devices that together use every field.
var contexts = [][]string{
	nil,
	{"fabric.kind=torus", "fabric.radix=0", "fabric.dims=[2, 2]"},
	{"fabric.kind=file", "fabric.radix=0", "fabric.topology={switches: [{name: a}, {name: b}], nodes: [{at: a, count: 2}], links: [{from: a, to: b}]}"},
	{"fabric.kind=exanest", "fabric.radix=0", "fabric.dims=[2, 2, 2]", "fabric.exanest={link_rate: 10Gb/s, router: 1us, order: xyz, ties: source, channels: 2, z_links: 1}"},
	{"fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=4", "fabric.spines=2"},
	{"fabric.kind=dragonfly", "fabric.radix=0", "fabric.leaf_nodes=2", "fabric.group=4", "fabric.globals=2"},
	{"fabric.queue=64KiB", "fabric.answers_first=true", "fabric.mark_to=32KiB", "fabric.header=64", "fabric.paths=packet", "transport.kind=reliable", "transport.law=nscc", "transport.way=spray", "transport.paths=64"},
	{"fabric.answers_first=true", "fabric.pause_from=64KiB"},
	{"fabric.answers_first=true", "fabric.rates=10us"},
	{"fabric.units={at: leaves, rate: 1ps/B, wire: 1ns}"},
	{"fabric.paths=load", "fabric.choices=2", "transport.kind=reliable"},
	{"pools={r5: {kind: firmware, cores: 1, contexts: 1, invocation: 2us}}"},
	{"host.library={vectors: once}", "dma.shared_memory=false"},
	{"fabric.faults={delay: 0.25, max_delay: 1us}"},
	{"hpu.clusters=2", "dma.shared_memory=false"},
	{"hpu.clusters=2", "hpu.home=message"},
	{"hpu.costs=ri5cy"},
	{"tenants={a: {uid: 1, weight: 2}, b: {uid: 2, weight: 1}}", "hpu.arbiter=wfq"},
	{"hpu.costs.simd={access_bytes: 8}"},
	{"host.cache=8MiB", "host.cache_bandwidth=75GiB/s"},
}

// Every field of a profile, also one added later, is written to the content and
// read back. It is a difference from other profiles, and that difference as an
// override turns one into the other.
func TestEveryFieldGoesRound(t *testing.T) {
	const enough = 1 // values of a field; texts have more forms
	tried, texts := map[string]int{}, map[string]bool{}
	for _, set := range contexts {
		base, err := Load("spin-int", set...)
		require.NoError(t, err)
		p, err := Load("spin-int", set...)
		require.NoError(t, err)
		leaves(reflect.ValueOf(p).Elem(), "", func(path string, field reflect.Value) {
			tried[path] += 0
			old := reflect.ValueOf(field.Interface())
			for _, v := range others(field) {
				if tried[path] >= enough && field.Kind() != reflect.String {
					break
				}
				if field.Set(reflect.ValueOf(v)); !reflect.DeepEqual(v, old.Interface()) && !texts[fmt.Sprint(path, v)] && p.Validate() == nil {
					tried[path]++
					texts[fmt.Sprint(path, v)] = true
					goesRound(t, set, base, p, path)
				}
			}
			field.Set(old)
		})
	}
	for path, n := range tried {
		require.Positive(t, n, "%s: no other value was legal: add one to others, or a device to contexts", path)
	}
}

// goesRound checks p, which differs from base in the field at a path. set are
// the overrides of base.
func goesRound(t *testing.T, set []string, base, p *Profile, path string) {
	content, err := p.Content()
	require.NoError(t, err)
	var tree bytes.Buffer
	require.NoError(t, writeTree(&tree, reflect.ValueOf(p)), path)
	require.Equal(t, tree.String(), string(content), path)
	back, err := Parse("recorded", content)
	require.NoError(t, err, path)
	again, err := back.Content()
	require.NoError(t, err)
	require.Equal(t, string(content), string(again), path)

	list, err := Diff(base, p)
	require.NoError(t, err)
	if path == "name" || path == "description" {
		require.Empty(t, list)
		return
	}
	require.Len(t, list, 1, path)
	require.True(t, list[0].Path == path || strings.HasPrefix(path, list[0].Path+"."), "%s differs in %s", path, list[0].Path)
	made, err := Load("spin-int", append(slices.Clone(set), list[0].Path+"="+list[0].To)...)
	require.NoError(t, err, path)
	is, err := made.Content()
	require.NoError(t, err)
	require.Equal(t, string(content), string(is), path)
	require.NotEmpty(t, list[0].String())
}

// Parse accepts or refuses any text without a crash. An accepted text goes
// round.
func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		text, err := Source(name)
		require.NoError(f, err)
		f.Add(text)
		p, err := Load(name)
		require.NoError(f, err)
		text, err = p.Content()
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte("name: x\nhpu: {costs: a15, cores: 1.5}\nfabric: {topology: x.yaml, mtu: }\nlimits: 5\nhost: {cores: 1, cores: 2}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse("f", text)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\nprofile ") {
				require.Regexp(t, `^(profile )?f[: ]`, line)
			}
			return
		}
		content, err := p.Content()
		require.NoError(t, err)
		back, err := Parse("f", content)
		require.NoError(t, err)
		again, err := back.Content()
		require.NoError(t, err)
		require.Equal(t, string(content), string(again))
	})
}

// Load accepts or refuses any override without a crash. The differences of an
// accepted one, as overrides, give the same profile.
func FuzzOverride(f *testing.F) {
	for _, o := range []string{
		"hpu.cores=8", "fabric.mtu=2KiB", "hpu.costs=scalar", "hpu.costs.int_div=7", "dma={latency: 1us}", "host.cores=1e1", "fabric.buffer=[64KiB, 8KiB]",
		"fabric.faults.loss=1e-3", "hpu.costs.core.chain=loop", "nic.receive=serial", "description='x'", "fabric.rate=1000/3ps/B", "=", "a=&x [*x]", "pools={p: {kind: hardware, latency: 1ns, depth: 2}}", "serve.count.payload=hpu", "hpu.clock=1.5GHz",
	} {
		f.Add(o)
	}
	base, err := Load("spin-int")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, override string) {
		if strings.Contains(override, "topology") && !strings.Contains(override, "{") {
			return // the name of a file
		}
		p, err := Load("spin-int", override)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "profile spin-int: "), err.Error())
			return
		}
		list, err := Diff(base, p)
		require.NoError(t, err)
		overrides := make([]string, len(list))
		for i, d := range list {
			overrides[i] = d.Path + "=" + d.To
		}
		made, err := Load("spin-int", overrides...)
		require.NoError(t, err, strings.Join(overrides, "\n"))
		made.Name, made.Description = p.Name, p.Description
		want, err := p.Content()
		require.NoError(t, err)
		got, err := made.Content()
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}
