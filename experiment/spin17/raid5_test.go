package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

func storage(t *testing.T, device string, v experiment.Values, set ...string) *experiment.Result {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	at, err := raid5Experiment.At(p, v)
	require.NoError(t, err)
	r, err := raid5Experiment.Measure(context.Background(), at)
	require.NoError(t, err, "%s %v", device, v)
	return r
}

// The published shape: small writes take about as long with handlers as with
// cores, large ones are several times faster (sPIN'17 §5.3). Triggered
// operations save the data server a look and a post for each of its answers.
func TestRaid5HasThePublishedShape(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		at := func(mode string, size int) sim.Time {
			return storage(t, device, experiment.Values{"mode": mode, "size": size}).Time(experiment.LatencyColumn)
		}
		for _, size := range []int{64, 512, 4096, 16384} {
			ratio := float64(at(experiment.ModeRDMA, size)) / float64(at(experiment.ModeSpin, size))
			require.Greater(t, ratio, 0.95, "%s %d", device, size)
			require.Less(t, ratio, 1.5, "%s %d", device, size)
			require.Less(t, at(experiment.ModeP4, size), at(experiment.ModeRDMA, size))
		}
		require.Greater(t, float64(at(experiment.ModeRDMA, 64<<10)), 2*float64(at(experiment.ModeSpin, 64<<10)))
		require.Greater(t, float64(at(experiment.ModeRDMA, 1<<20)), 3*float64(at(experiment.ModeSpin, 1<<20)))
	}
}

// A write of one packet, step by step, with handlers whose instructions take no
// time: new data to the data server, the difference to the parity server, and
// two empty messages back.
func TestRaid5IsTheSumOfItsParts(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		p, err := profile.Load(device)
		require.NoError(t, err)
		free := storage(t, device, experiment.Values{"mode": experiment.ModeSpin, "size": 4096}, "hpu.charge=nothing")
		way := 2*p.Fabric.Wire + p.Fabric.Switch + p.NIC.MatchHeader // of an empty message
		// of the client's NIC and of both handlers; none waits for its write
		read := 2*p.DMA.Latency + p.DMA.Bandwidth.Time(4096)
		expected := p.NIC.Overhead + read + 2*(p.Fabric.Rate.Time(4096)+way+read) + 2*way + p.DMA.Latency + p.Host.Poll
		require.Equal(t, expected, free.Time(experiment.LatencyColumn), device)
		require.Equal(t, p.NIC.Overhead+p.Host.Poll, free.Time("host_cpu"), "one put, one look: no server's core takes part")
		require.EqualValues(t, 5*4096, free.Values["host_memory"], "read at the client; read and written at two servers")
	}
}

// A degraded read of a lost unit by hosts: the NICs of four servers read a unit
// each, the client's NIC writes them, and its core reads them and writes the
// sum to its place. The row's word is swapped and swapped back: twice 8 B are
// read and written.
func TestRaid5DegradedReadOfHosts(t *testing.T) {
	r := storage(t, "spin-int", experiment.Values{"mode": experiment.ModeRDMA, "op": raid5DegradedRead, "size": 4096})
	require.EqualValues(t, (4+4+4+1)*4096+2*2*8, r.Values["host_memory"])
}

// A durable write takes longer than a write to memory, by a device's command
// and a message in each direction. The experiment compares the contents of
// devices. A durable read does not exist, nor does a durable write without a
// device.
func TestRaid5Durable(t *testing.T) {
	for _, mode := range []string{experiment.ModeRDMA, experiment.ModeP4, experiment.ModeSpin} {
		for _, op := range []string{raid5Write, raid5DegradedWrite, raid5Rebuild} {
			if mode == experiment.ModeP4 && op == raid5Rebuild {
				continue
			}
			v := experiment.Values{"mode": mode, "op": op, "size": 100_000}
			of := func(durable bool) sim.Time {
				v["durable"] = durable
				return storage(t, "../../docs/profiles/spin-dis-nvme.yaml", v).Time(experiment.LatencyColumn)
			}
			memory := of(false)
			delete(v, "durable")
			require.Equal(t, storage(t, "spin-dis", v).Time(experiment.LatencyColumn), memory, "a device that nobody uses takes no time")
			// the least that the busiest device gets of them
			bytes := sim.Time(32<<10) * sim.Second / 1_500_000_000
			require.Greater(t, of(true), memory+22*sim.Microsecond+bytes*3/4, "%s %s", mode, op)
		}
	}
	for device, op := range map[string]string{"../../docs/profiles/spin-int-nvme.yaml": raid5Read, "spin-int": raid5Write} {
		p, err := profile.Load(device)
		require.NoError(t, err)
		_, err = raid5Experiment.At(p, experiment.Values{"op": op, "durable": true})
		require.ErrorContains(t, err, "--durable")
	}
}

// Each additional parity server reads and writes the changed bytes once more.
// With handlers no host does anything else; three of them are still faster than
// a core. A packet costs a data server's handlers the product of its bytes:
// five loads for four, on a core with one load in a cycle.
func TestRaid5Codes(t *testing.T) {
	const size = 64 << 10
	cpu := storage(t, "spin-int", experiment.Values{"mode": experiment.ModeSpin, "size": size}).Values["host_cpu"]
	var needed []float64
	for parity := 1; parity <= 4; parity++ {
		r := storage(t, "spin-int", experiment.Values{"mode": experiment.ModeSpin, "size": size, "parity": parity})
		require.EqualValues(t, (3+2*parity)*size, r.Values["host_memory"], "read at the client, read and written at data and parity servers")
		require.Equal(t, cpu, r.Values["host_cpu"])
		require.Less(t, r.Time(experiment.LatencyColumn), storage(t, "spin-int", experiment.Values{"mode": experiment.ModeRDMA, "size": size, "parity": parity}).Time(experiment.LatencyColumn))
		needed = append(needed, r.Float("hpus_needed"))
	}
	// From the third on, data servers are the busiest. With four, their links
	// carry three packets where they carry two with three.
	multiply := float64(4096*5/4) / 2.5 // ns
	packet := 4096 * 1e9 / 50e9         // at the link, about
	for i := 2; i < 4; i++ {
		work := needed[i]*float64(i+1)*packet - needed[i-1]*float64(i)*packet
		require.InEpsilon(t, multiply, work, 0.15, "a further multiplication for each packet that comes")
	}
	_, err := raid5Experiment.At(mustLoad(t, "spin-int"), experiment.Values{"parity": 8, "servers": 25})
	require.ErrorContains(t, err, "33 servers in all, expected at most 32")
}

func mustLoad(t *testing.T, name string) *profile.Profile {
	p, err := profile.Load(name)
	require.NoError(t, err)
	return p
}

// Every access gives the same bytes in every mode. The experiment compares
// them.
func TestRaid5OfAnySize(t *testing.T) {
	for _, op := range raid5Ops() {
		for _, mode := range []string{experiment.ModeRDMA, experiment.ModeP4, experiment.ModeSpin} {
			for i, size := range []int{1, 4097, 100_003} {
				v := experiment.Values{"mode": mode, "op": op, "size": size, "servers": []int{3, 1, 5}[i], "cores": 1 + i, "unit": []int{512, 4096, 1000}[i], "parity": 1}
				p, err := profile.Load("spin-dis")
				require.NoError(t, err)
				at, err := raid5Experiment.At(p, v)
				if mode == experiment.ModeP4 && err != nil {
					continue // there is no such point
				}
				require.NoError(t, err)
				_, err = raid5Experiment.Measure(context.Background(), at)
				require.NoError(t, err, "%s %v", op, v)
				if v["parity"] = 3; i == 1 && mode != experiment.ModeP4 {
					storage(t, "spin-dis", v)
				}
			}
		}
	}
}

// On a network that loses packets the transport repeats them. Nothing else
// changes: no difference is applied twice.
func TestRaid5OnANetworkWithFaults(t *testing.T) {
	for _, mode := range []string{experiment.ModeRDMA, experiment.ModeSpin} {
		r := storage(t, "spin-int", experiment.Values{"mode": mode, "size": 300_000}, "transport.kind=reliable", "fabric.faults={loss: 0.02, duplicate: 0.02, delay: 0.1, max_delay: 5us}")
		require.Positive(t, r.Values["retransmitted"])
	}
}

// More cores help without handlers, and change nothing with handlers. Four data
// servers are no faster than one, since one server has the parity.
func TestRaid5Scales(t *testing.T) {
	at := func(mode, axis string, n int) float64 {
		return storage(t, "spin-int", experiment.Values{"mode": mode, axis: n, "size": 4 << 20}).Float("throughput")
	}
	require.Greater(t, at(experiment.ModeRDMA, "cores", 4), 2.5*at(experiment.ModeRDMA, "cores", 1))
	require.InDelta(t, at(experiment.ModeSpin, "cores", 4), at(experiment.ModeSpin, "cores", 1), 1e-9)
	require.InEpsilon(t, at(experiment.ModeSpin, "servers", 8), at(experiment.ModeSpin, "servers", 4), 0.1)
}
