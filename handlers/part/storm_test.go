package part

import (
	"flag"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/internal/rdmatest"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/runtime"
)

var (
	stormTransfers = flag.Int("storm.transfers", 1200, "transfers of TestStorm")
	stormSeed      = flag.Uint64("storm.seed", 2, "seed of the first network of TestStorm")
	stormHUPCF     = flag.String("storm.hupcf", "drawn", "HUPCF of the networks of TestStorm: on, off or drawn")
)

// hupcf is smmu.hit_under_fault of the next network. It is drawn in any case:
// else a seed would have another network by the flag.
func hupcf(t *testing.T, s *rdmatest.Storm) string {
	drawn := any1(s, "true", "true", "false")
	is, known := map[string]string{"drawn": drawn, "on": "true", "off": "false"}[*stormHUPCF]
	require.True(t, known, "-storm.hupcf %q, expected on, off or drawn", *stormHUPCF)
	return is
}

// early is a policy that asks for a block when its own page is there, and
// brings in some behind it then.
func early(f Fault) Plan {
	return Plan{First: Range{Start: f.Page, End: f.Page + host.PageBytes}, Then: Range{Start: f.Page, End: f.Page + 9*host.PageBytes}}
}

// some is driver.PIA for nodes that have less memory than transfers have bytes:
// what it brought in first would be gone when the last has come.
func some(f Fault) Plan {
	return Plan{First: Range{Start: f.Page, End: min(f.Page+64*host.PageBytes, f.Mapping.End)}}
}

func any1[T any](s *rdmatest.Storm, of ...T) T { return of[s.Rand.IntN(len(of))] }

// sum adds what a network has counted.
func sum(of, to map[string]int64) {
	for name, n := range of { //lint:maporder sums
		to[name] += n
	}
}

func numbers(prefix string, s any) map[string]int64 {
	all := map[string]int64{}
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int64:
			all[prefix+v.Type().Field(i).Name] = f.Int()
		case reflect.Uint64:
			all[prefix+v.Type().Field(i).Name] = int64(f.Uint())
		default:
		}
	}
	return all
}

// Random transfers, among nodes that have too little memory for what runs
// there, so that any page may be elsewhere at any time; on networks that lose,
// damage, double and delay cells, with all policies and methods, ways of the
// SMMU, and sizes of the FIFO.
func TestStorm(t *testing.T) {
	met := map[string]int64{}
	for done, seed := 0, *stormSeed; done < *stormTransfers; seed++ {
		done += network(t, seed, met)
	}
	t.Log(met)
	metAll(t, met)
}

// Networks that have found something: a send tasklet which never had its turn.
func TestStormsThatFound(t *testing.T) {
	for _, seed := range []uint64{300170161} {
		network(t, seed, map[string]int64{})
	}
}

// network is the network of a seed. It adds what it has counted, and returns
// how many transfers it had.
func network(t *testing.T, seed uint64, met map[string]int64) int {
	var parts *Part
	memory := 0 // MiB
	s := rdmatest.New(t, seed, &rdmatest.Kind{
		Library: "part", Prefix: "rdma.", Hog: func(s *rdmatest.Storm) int { return memory<<20 - any1(s, 1, 2, 3)<<19 },
		Load: func(s *rdmatest.Storm, c *runtime.Cluster) (_ rdmatest.Opener, err error) {
			all := PIA
			if memory < 16 {
				all = some
			}
			parts, err = Load(c, Options{
				Policy: any1(s, PIO, PI4, all, early), Method: any1(s, GetUserPages, GetUserPages, Touch, InKernel),
			})
			return parts.Open, err
		},
		Profile: func(s *rdmatest.Storm) []string {
			memory = any1(s, 4, 4, 6, 8, 32)
			return []string{
				fmt.Sprintf("os.memory=%dMiB", memory), "os.watermark_min=128KiB", "os.watermark_low=256KiB", "os.watermark_high=512KiB",
				"os.huge_pages=" + any1(s, "never", "never", "always"), "os.collapse_delay=1ms",
				"os.clear_fault=" + any1(s, "handler", "tasklet"), "smmu.on_fault=" + any1(s, "terminate", "terminate", "terminate", "stall"),
				"smmu.hit_under_fault=" + hupcf(t, s), "os.netlink_queue=" + any1(s, "256", "256", "1"), "smmu.stale=poison",
				"smmu.banks=" + any1(s, "16", "16", "2"), "os.bank_hold=" + any1(s, "100us", "10us"),
				"nic.packet_buffer=64MiB", // cells that wait behind one that is stalled
			}
		},
		State: func(s *rdmatest.Storm) map[string]any {
			return map[string]any{"nto": uint64(s.Rand.IntN(2)), "guard": uint64(3000000), "depth": uint64(any1(s, 512, 512, 2))}
		},
	})
	s.Run()
	for i, g := range s.Pages {
		require.NoError(t, g.NI().Proc().Node().Kernel().Audit(), "seed %d", seed)
		sum(numbers("kernel ", g.NI().Proc().Node().Kernel().Stats()), met)
		sum(numbers("sent ", g.Counts().Sent), met)
		var f Faults
		for _, field := range []string{"Pushed", "Merged", "Full", "Paused", "Resumed", "Outdated", "Foreign"} {
			reflect.ValueOf(&f).Elem().FieldByName(field).SetUint(must(g.Number("faults." + string(field[0]+32) + field[1:])).(uint64))
		}
		sum(numbers("engine ", f), met)
		if n := g.NI().Proc().Rank(); n == i {
			sum(numbers("driver ", parts.Driver(n).Stats()), met)
			sum(numbers("smmu ", s.C.Node(n).IOMMU().SMMU().Counters()), met)
		}
	}
	require.NoError(t, s.C.Close())
	return len(s.Moves)
}

// metAll looks whether what was counted has everything that a storm is about.
func metAll(t *testing.T, met map[string]int64) {
	wanted := []string{
		"driver Receives", "driver Sends", "driver Skipped", "driver Late", "driver Dropped", "driver Requests", "engine Merged", "engine Full", "engine Outdated",
		"kernel Major", "kernel SwappedOut", "kernel Zero", "sent Timeouts", "sent Retransmitted",
	}
	if *stormHUPCF != "on" {
		// accesses to pages that are there, while another's fault is open
		wanted = append(wanted, "smmu Terminated")
	}
	for _, name := range wanted {
		require.Positive(t, met[name], "the test meets everything: %s", name)
	}
}
