package nic_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// distinct gives every number of a struct a value of its own, from 100 on, and
// every other field nothing.
func distinct(v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Field(i); f.CanInt() {
			f.SetInt(int64(100 + i))
		} else if f.CanUint() {
			f.SetUint(uint64(100 + i))
		}
	}
}

// Every limit of a profile is one of the interface, under the same name; what
// remains of the interface's follows from network and HPUs.
func TestEveryLimitArrives(t *testing.T) {
	var spec nic.LimitsSpec
	distinct(reflect.ValueOf(&spec).Elem())
	const mtu = 4096
	hpus := nic.HPUSpec{MaxHPUMemory: 7, MaxCyclesPerByte: 9}
	got := reflect.ValueOf(spec.Limits(mtu, &hpus))
	given := reflect.ValueOf(spec)
	for i := range given.NumField() {
		name := given.Type().Field(i).Name
		field := got.FieldByName(name)
		require.True(t, field.IsValid(), name)
		require.Equal(t, given.Field(i).Int(), field.Convert(reflect.TypeFor[int64]()).Int(), name)
	}
	rest := map[string]uint64{
		"MaxPayloadSize": mtu, "MaxHandlerMem": 7, "MinFragmentationLimit": 8, "MaxCyclesPerByte": 9,
		"Features": uint64(portals.FeatureTargetBindInaccessible | portals.FeatureCoherentAtomics),
	}
	for i := range got.NumField() {
		name := got.Type().Field(i).Name
		if want, follows := rest[name]; follows {
			require.Equal(t, want, got.Field(i).Convert(reflect.TypeFor[uint64]()).Uint(), name)
		} else {
			require.True(t, given.FieldByName(name).IsValid(), "%s: nobody says what it is", name)
		}
	}
	spec.MaxUserHdrSize = mtu + 1
	require.Equal(t, uint64(mtu), spec.Limits(mtu, &hpus).MaxUserHdrSize, "a user header is within a packet")
}

// The loader of modules gets every field that it knows from the profile.
func TestDeviceOfTheLoader(t *testing.T) {
	var spec nic.HPUSpec
	distinct(reflect.ValueOf(&spec).Elem())
	spec.Costs.Int = 5
	got := reflect.ValueOf(*spec.Device(4096))
	of := map[string]string{"MaxHPUMemoryBytes": "MaxHPUMemory"}
	for i := range got.NumField() {
		name := got.Type().Field(i).Name
		from := name
		if other, is := of[name]; is {
			from = other
		}
		switch name {
		case "PacketBytes":
			require.Equal(t, int64(4096), got.Field(i).Int())
		case "Others": // section pools says them
		case "Watch": // of tools, not of devices
		case "Costs":
			require.Equal(t, spec.Costs, got.Field(i).Interface())
		default:
			require.Equal(t, reflect.ValueOf(spec).FieldByName(from).Int(), got.Field(i).Int(), name)
		}
	}
}

// A handler's time follows from its cycles and the clock. It is zero if cycles
// are not charged.
func TestTimeOfCycles(t *testing.T) {
	s := nic.HPUSpec{Clock: 2_500_000_000, Charge: nic.ChargeCycles}
	require.Equal(t, 400*sim.Picosecond, s.Time(1))
	require.Equal(t, sim.Microsecond, s.Time(2500))
	s.Charge = nic.ChargeNothing
	require.Zero(t, s.Time(2500))
}

// Whatever the budget for a handler and for each byte of its packet, no legal
// pair lets a handler of a whole packet run for more than 10^9 cycles, and the
// most that is left for a byte is legal.
func TestBudgetOfAPacketIsBounded(t *testing.T) {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		s := p.HPU
		mtu := rapid.Int32Range(nic.MinMTU, 1<<16).Draw(t, "mtu")
		s.MaxCycles = rapid.Int64Range(1, 1e9).Draw(t, "cycles")
		s.MaxCyclesPerByte = (1e9 - s.MaxCycles) / int64(mtu)
		require.NoError(t, s.Validate(mtu))
		s.MaxCyclesPerByte++
		require.Greater(t, s.MaxCycles+s.MaxCyclesPerByte*int64(mtu), int64(1e9))
		require.ErrorContains(t, s.Validate(mtu), "max_cycles_per_byte: ")
		s.MaxCyclesPerByte = math.MaxInt64
		require.ErrorContains(t, s.Validate(mtu), "max_cycles_per_byte: ")
	})
}

// Every violation is said, by the names of a profile, one a line; a packet
// buffer holds a packet at least.
func TestSpecsSayEverythingAtOnce(t *testing.T) {
	for _, of := range []struct {
		err    error
		fields string
	}{
		{new(nic.Spec).Validate(1), "packet_buffer egress_packets handler_commands receive"},
		{new(nic.TransportSpec).Validate(64), "kind timeout window"},
		{new(nic.LimitsSpec).Validate(), "max_entries max_unexpected_headers max_mds max_eqs max_cts max_iovecs max_list_size max_triggered_ops " +
			"max_pt_index max_msg_size max_waw_ordered_size max_war_ordered_size"},
		{new(nic.HPUSpec).Validate(64), "clock max_cycles waiting_handlers dma_handles dma_bytes node_memory dma_write charge cores contexts max_code_bytes " +
			"max_functions max_call_depth costs.branch costs.call costs.call_indirect costs.bulk_bytes_per_cycle costs.spill"},
	} {
		var got []string
		for line := range strings.SplitSeq(of.err.Error(), "\n") {
			field, _, _ := strings.Cut(line, ": ")
			got = append(got, field)
		}
		require.Equal(t, of.fields, strings.Join(got, " "))
	}
	s := nic.Spec{PacketBuffer: 4095, EgressPackets: 1, HandlerCommands: 1, Receive: nic.Serial}
	require.EqualError(t, s.Validate(4096), "packet_buffer: 4095, expected 4096 to 1099511627776")
	require.NoError(t, s.Validate(4095))
}
