package spin17

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// extreme is a field of a profile with the smallest and the largest value that
// is valid there.
type extreme struct {
	path  string
	field func(p *profile.Profile) reflect.Value
	ends  []reflect.Value
}

// extremesOf finds the extremes of every field with Validate.
func extremesOf(t *testing.T, base *profile.Profile) (all []extreme) {
	var walk func(typ reflect.Type, path string, at func(p *profile.Profile) reflect.Value)
	walk = func(typ reflect.Type, path string, at func(p *profile.Profile) reflect.Value) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			get := func(p *profile.Profile) reflect.Value { return at(p).Field(i) }
			x := extreme{path: path + name, field: get}
			switch {
			case name == "-":
				continue
			case f.Type == reflect.TypeFor[sim.Rate]():
				x.ends = []reflect.Value{reflect.ValueOf(sim.NewRate(sim.Millisecond, 1)), reflect.ValueOf(sim.NewRate(1, 1<<20))}
			case f.Type == reflect.TypeFor[nic.Delay]():
				x.field = func(p *profile.Profile) reflect.Value { return get(p).FieldByName("Fixed") }
				x.ends = ends(base, x.field)
			case f.Type.Kind() == reflect.Struct:
				walk(f.Type, path+name+".", get)
				continue
			case f.Type.Kind() == reflect.Bool:
				x.ends = []reflect.Value{reflect.ValueOf(false), reflect.ValueOf(true)}
			case f.Type.Kind() >= reflect.Int && f.Type.Kind() <= reflect.Int64:
				x.ends = ends(base, get)
			default:
				continue
			}
			require.NotEmpty(t, x.ends, x.path)
			all = append(all, x)
		}
	}
	walk(reflect.TypeFor[profile.Profile](), "", func(p *profile.Profile) reflect.Value { return reflect.ValueOf(p).Elem() })
	return all
}

// ends finds the smallest and the largest valid number of a field. The other
// fields keep their values.
func ends(base *profile.Profile, get func(*profile.Profile) reflect.Value) []reflect.Value {
	valid := func(v int64) bool {
		p := *base
		f := get(&p)
		if f.OverflowInt(v) {
			return false
		}
		f.SetInt(v)
		return p.Validate() == nil
	}
	start := get(base).Int()
	far := func(most int64) int64 {
		good, bad := start, most // the distance may exceed an int64
		for good/2 != bad/2 || good+1 != bad && good-1 != bad {
			mid := good/2 + bad/2 + (good%2+bad%2)/2
			if mid == good || mid == bad {
				break
			}
			if valid(mid) {
				good = mid
			} else if valid(mid&^1) && mid&^1 != good { // even numbers only, for example switch ports
				good = mid &^ 1
			} else {
				bad = mid
			}
		}
		return good
	}
	typ := get(base).Type()
	var list []reflect.Value
	for _, v := range []int64{far(math.MinInt64), far(math.MaxInt64)} {
		list = append(list, reflect.ValueOf(v).Convert(typ))
	}
	return list
}

// memoryOf is how many bytes the contexts of a profile's HPUs need.
func memoryOf(p *profile.Profile) int64 {
	return int64(p.HPU.Cores) * int64(p.HPU.Contexts) * int64(p.HPU.StackBytes+int(p.Fabric.MTU)+256)
}

// With any valid profile a run ends, with a plausible time or with an error
// that gives the reason. It never panics, and no sum of times wraps around.
func TestProfilesAtTheirExtremes(t *testing.T) {
	base, err := profile.Load("spin-int")
	require.NoError(t, err)
	fields := extremesOf(t, base)
	require.Greater(t, len(fields), 60)
	finished := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		p := *base
		changed := ""
		for range rapid.IntRange(1, 6).Draw(t, "fields") {
			x := rapid.SampledFrom(fields).Draw(t, "field")
			v := rapid.SampledFrom(x.ends).Draw(t, "value")
			x.field(&p).Set(v)
			changed += fmt.Sprintf("%s=%v ", x.path, v)
		}
		if p.Validate() != nil || memoryOf(&p) > 1<<26 {
			return // extremes that exclude each other, or too much memory for a test
		}
		e := rapid.SampledFrom([]*experiment.Experiment{pingpong, accumulate, bcast}).Draw(t, "experiment")
		values := experiment.Values{
			"mode": rapid.SampledFrom(e.Axis("mode").Of).Draw(t, "mode"), "size": rapid.SampledFrom([]int{16, 4096, 1 << 16}).Draw(t, "bytes"),
		}
		if e == bcast {
			values["ranks"] = 5
		}
		point, err := e.At(&p, values)
		if err != nil {
			require.ErrorContains(t, err, "fabric.mtu") // no multiple of accumulate's elements
			return
		}
		r, err := e.Measure(context.Background(), point)
		if err != nil {
			require.NotContains(t, err.Error(), "panic", changed)
			return
		}
		finished[e.Name]++
		// of half a round trip, in both directions at once
		least := p.Fabric.Wire + p.Fabric.Rate.Time(int64(point.Int("size")))/2
		require.GreaterOrEqual(t, r.Time("latency"), least, changed)
		require.LessOrEqual(t, r.Time("latency"), sim.Horizon, changed)
	})
	for _, e := range []*experiment.Experiment{pingpong, accumulate, bcast} {
		require.Positive(t, finished[e.Name], "%s never finished", e.Name)
	}
}
