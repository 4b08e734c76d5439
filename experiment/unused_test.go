package experiment_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

var wholeUnused = flag.Bool("unused", false, "check the marks of every smoke point, not of a few")

// along are values that a field needs beside it to be admissible, by the
// beginning of its path.
var along = map[string][]string{
	"host.cache":         {"host.cache=8MiB", "host.cache_bandwidth=75GiB/s"},
	"host.library.runs":  {"host.library.vectors=once"},
	"hpu.home":           {"hpu.clusters=2"},
	"hpu.cluster_tasks":  {"hpu.clusters=2", "hpu.home=message"},
	"hpu.copy":           {"hpu.clusters=2", "hpu.home=message"},
	"fabric.faults.max_": {"fabric.faults.delay=0.25"},
	"storage.": {
		"storage={kind: nvme, read_latency: 80us, write_latency: 20us, bandwidth: 3GB/s, queue_depth: 32}",
		"storage={completion: 1us, swap: 1GiB}",
	},
}

// texts are values of fields that are neither numbers nor one of a few words.
var texts = map[string][]string{
	"fabric.dims": {"[4, 2]", "[2, 2, 1]"}, "fabric.buffer": {"1MiB"}, "fabric.exanest.order": {"zyx"}, "hpu.costs": {"ri5cy", "scalar", "a15"},
	"pools": {"{x: {kind: hardware, latency: 1ns, depth: 2}}"}, "fabric.faults.down": {"[{node: 0, from: 1us, to: 2us}]"},
	"hpu.cores": {"8"}, "hpu.clusters": {"2"},
}

var choices = regexp.MustCompile(`expected one of (.*)`)

// otherValues lists other values of a field, some of which may not be
// admissible.
func otherValues(p *profile.Profile, path string) (list []string) {
	if texts[path] != nil {
		return texts[path]
	}
	v := reflect.ValueOf(p).Elem()
	for name := range strings.SplitSeq(path, ".") {
		i := slices.IndexFunc(strictyaml.FieldsOf(v.Type()).List, func(f strictyaml.Field) bool { return f.Name == name })
		v = v.FieldByIndex(strictyaml.FieldsOf(v.Type()).List[i].Index)
	}
	switch x := v.Interface().(type) {
	case sim.Rate:
		return []string{sim.NewRate(2*x.Time(1000)+7, 1000).String(), "20ps/B", "10Gb/s"}
	case sim.Time:
		return []string{fmt.Sprintf("%dps", 2*x+1000), "3us", "30us"}
	case bool:
		return []string{fmt.Sprint(!x)}
	case string:
		_, err := profile.Load("spin-int", path+"=no such word")
		if err == nil {
			return nil
		}
		m := choices.FindStringSubmatch(err.Error())
		if m == nil {
			return nil
		}
		for word := range strings.FieldsFuncSeq(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if word != x && word != "or" {
				list = append(list, word)
			}
		}
		return list
	case float64:
		return []string{"0.25"}
	}
	if !v.CanInt() {
		return nil
	}
	for _, n := range []int64{2 * v.Int(), v.Int() / 2, v.Int() + 1, v.Int() - 1, 1, 4, 64} {
		if n != v.Int() {
			list = append(list, fmt.Sprint(n))
		}
	}
	return list
}

// marks is a smoke point with what happened there.
type marks struct {
	e      *experiment.Experiment
	device string
	at     experiment.Values
	result *experiment.Result
}

func (m *marks) String() string { return fmt.Sprint(m.e.Name, " ", m.device, " ", m.at) }

// point makes the point with overrides.
func (m *marks) point(set ...string) (*experiment.Point, error) {
	device, err := profile.Load(m.device, set...)
	if err != nil {
		return nil, err
	}
	return m.e.At(device, m.at)
}

// differs reports whether overrides change a value of the point, and how.
func (m *marks) differs(t require.TestingT, set ...string) string {
	p, err := m.point(set...)
	require.NoError(t, err)
	r, err := m.e.Measure(context.Background(), p)
	if err != nil {
		return err.Error()
	}
	for name, v := range m.result.Values {
		if !reflect.DeepEqual(v, r.Values[name]) {
			return fmt.Sprintf("%s: %v, was %v", name, r.Values[name], v)
		}
	}
	return ""
}

// behind are the facts behind everything that overrides set.
func behind(set []string) (all used.Set) {
	for _, one := range set {
		path, _, _ := strings.Cut(one, "=")
		facts, _ := profile.Facts(path)
		all.Join(facts)
	}
	return all
}

// admissible gives a field its other value number i, on top of other overrides;
// nil: there is none.
func (m *marks) admissible(p *profile.Profile, path string, i int, before []string) []string {
	list := otherValues(p, path)
	for k := range list {
		one := path + "=" + list[(i+k)%len(list)]
		for _, more := range [][]string{{one}, append(slices.Clone(alongside(path)), one)} {
			if _, err := profile.Load(m.device, append(slices.Clone(before), more...)...); err == nil && !behind(more).Meets(m.result.Used()) {
				return more
			}
		}
	}
	return nil
}

func alongside(path string) []string {
	for prefix, more := range along {
		if strings.HasPrefix(path, prefix) {
			return more
		}
	}
	return nil
}

// check changes all fields at once that do not count at the point. If a value
// of it differs, it looks for the field.
func (m *marks) check(t *testing.T, i int) (changed int) {
	base, err := profile.Load(m.device)
	require.NoError(t, err)
	var set []string
	for _, path := range profile.Fields() {
		if facts, _ := profile.Facts(path); facts.Meets(m.result.Used()) || path == "name" || path == "description" {
			continue
		}
		if more := m.admissible(base, path, i, set); more != nil {
			set = append(set, more...)
			changed++
		}
	}
	m.blame(t, set)
	return changed
}

// blame fails if overrides change a value of the point, and names few of them
// that do.
func (m *marks) blame(t *testing.T, set []string) {
	if _, err := m.point(set...); err != nil { // the experiment measures no such device, and says so
		if len(set) > 1 {
			m.blame(t, set[:len(set)/2])
			m.blame(t, set[len(set)/2:])
		}
		return
	}
	why := m.differs(t, set...)
	if why == "" {
		return
	}
	for more := true; more && len(set) > 1; {
		more = false
		for _, half := range [][]string{set[:len(set)/2], set[len(set)/2:]} {
			if _, err := m.point(half...); err == nil && m.differs(t, half...) != "" {
				set, more = half, true
				break
			}
		}
	}
	t.Errorf("%v: %v counts without its facts: %s\nfacts: %v", m, set, why, m.result.Used().Facts())
}

// smoke measures a smoke point.
func smoke(t require.TestingT, e *experiment.Experiment, device string, at experiment.Values) *marks {
	m := &marks{e: e, device: device, at: at}
	p, err := m.point()
	require.NoError(t, err)
	m.result, err = e.Measure(context.Background(), p)
	require.NoError(t, err)
	return m
}

func withDevice() (list []*experiment.Experiment) {
	return slices.DeleteFunc(experiment.All(), func(e *experiment.Experiment) bool { return e.Deviceless || len(e.Smoke) == 0 })
}

// A field whose facts have not happened at a point changes no value of it.
func TestWhatDoesNotCountChangesNothing(t *testing.T) {
	if *wholeUnused {
		for _, e := range withDevice() {
			t.Run(e.Name, func(t *testing.T) {
				for _, at := range e.Smoke {
					for _, device := range e.DefaultProfiles() {
						begin := time.Now()
						m := smoke(t, e, device, at)
						for i := range 3 {
							n := m.check(t, i)
							t.Logf("%v: %d fields do not count, %v", m, n, time.Since(begin))
						}
					}
				}
			})
		}
		return
	}
	for range 4 {
		e := pick(withDevice())
		m := smoke(t, e, pick(e.DefaultProfiles()), pick(e.Smoke))
		t.Logf("%v: %d fields do not count", m, m.check(t, rand.IntN(3)))
	}
}

func pick[T any](list []T) T { return list[rand.IntN(len(list))] }
