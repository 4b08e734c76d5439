package spintest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

type state struct {
	word, found uint64
	buffer      [16]byte
}

// within runs f as a handler.
func within(d *spintest.Device, s *state, f func(*state) spin.Code) spin.Code {
	return spintest.Run(d, func(_ *spin.Payload, s *state) spin.Code { return f(s) }, &spin.Payload{}, s)
}

func TestNonBlockingTakesEffectWhenWaitedFor(t *testing.T) {
	d := spintest.New(t, spintest.Config{HostMem: 32})
	copy(d.Host[8:], "abcd")
	s := &state{}
	code := within(d, s, func(s *state) spin.Code {
		read := spin.DMAFromHostNB(spin.MEHostMem, 8, s.buffer[:4])
		require.Equal(t, "\x00\x00\x00\x00", string(s.buffer[:4]), "a device need not have read yet")
		done, r := read.Test()
		require.False(t, done)
		require.Equal(t, spin.OK, r)
		done, r = read.Test()
		require.True(t, done)
		require.Equal(t, spin.OK, r)
		require.Equal(t, "abcd", string(s.buffer[:4]))
		require.Equal(t, spin.Invalid, read.Wait(), "the handle is free")
		swap := spin.DMACASNB(spin.MEHostMem, 16, 0, 7, &s.found)
		require.Equal(t, spin.Result(1), swap.Wait())
		spin.DMAToHostNB(spin.MEHostMem, 0, s.buffer[:4])
		require.Equal(t, "\x00\x00\x00\x00", string(d.Host[:4]))
		return spin.Success
	})
	require.Equal(t, spin.Success, code)
	require.Equal(t, "abcd", string(d.Host[:4]), "lands when the handler ends")
	require.Equal(t, byte(7), d.Host[16])
	require.Equal(t, []byte("abcd"), d.Named("dma_to_host_nb")[0].Data)
}

func TestResultsOfDMA(t *testing.T) {
	d := spintest.New(t, spintest.Config{HostMem: 24, HandlerHostMem: 8})
	within(d, &state{}, func(s *state) spin.Code {
		require.Equal(t, spin.OK, spin.DMAToHost(spin.MEHostMem, 8, s.buffer[:]))
		require.Equal(t, spin.Denied, spin.DMAToHost(spin.MEHostMem, 9, s.buffer[:]))
		require.Equal(t, spin.Denied, spin.DMAToHost(spin.MEHostMem, ^uint64(0), s.buffer[:]))
		require.Equal(t, spin.Denied, spin.DMAFromHost(2, 0, s.buffer[:1]))
		require.Equal(t, spin.OK, spin.DMAFromHost(spin.MEHostMem|spin.TellFaults, 0, s.buffer[:1]))
		require.Equal(t, spin.OK, spin.DMAFAdd(spin.HandlerHostMem|spin.TellFaults, 0, 0, &s.found))
		require.Equal(t, spin.OK, spin.DMAFAdd(spin.HandlerHostMem, 0, 5, &s.found))
		require.Equal(t, spin.OK, spin.DMAFAdd(spin.HandlerHostMem, 0, 5, &s.found))
		require.Equal(t, uint64(5), s.found)
		var found uint32
		require.Equal(t, spin.OK, spin.DMAFAdd32(spin.HandlerHostMem, 4, 1, &found))
		require.Equal(t, spin.OK, spin.DMAFAdd32NB(spin.HandlerHostMem, 4, 1<<31, &found).Wait())
		require.Equal(t, uint32(1), found)
		require.Equal(t, spin.Invalid, spin.DMAFAdd32(spin.HandlerHostMem, 2, 1, &found))
		require.Equal(t, spin.OK, spin.DMAFAdd(spin.HandlerHostMem, 0, 0, &s.found))
		require.Equal(t, uint64(10+(1+1<<31)<<32), s.found)
		require.Equal(t, spin.Result(0), spin.DMACAS(spin.HandlerHostMem, 0, 1, 2, &s.found))
		require.Equal(t, uint64(10+(1+1<<31)<<32), s.found)
		require.Equal(t, spin.Invalid, spin.DMAFAdd(spin.MEHostMem, 4, 1, &s.found), "not aligned")
		d.Fail("dma_from_host", spin.Fault, 2)
		for _, want := range []spin.Result{spin.Fault, spin.Fault, spin.OK} {
			require.Equal(t, want, spin.DMAFromHost(spin.MEHostMem, 0, s.buffer[:]))
		}
		return spin.Success
	})
}

func TestMessages(t *testing.T) {
	d := spintest.New(t, spintest.Config{HostMem: 8, MTU: 8})
	copy(d.Host, "hostdata")
	d.Counters[4] = &spintest.Count{Success: 1}
	d.Remote = func(c *spintest.Call) []byte { return []byte("reply567")[:c.Op.Length] }
	within(d, &state{}, func(s *state) spin.Code {
		copy(s.buffer[:], "devdata")
		op := spin.Op{Local: spin.Addr(s.buffer[:7]), Length: 7, UserHdr: spin.AddrOf(&s.word), UserHdrLen: 1, TargetNID: 9}
		require.Equal(t, spin.OK, spin.PutFromDevice(&op))
		op.UserHdrLen = 2
		require.Equal(t, spin.Invalid, spin.PutFromDevice(&op), "more than a packet holds")
		require.Equal(t, spin.NotSupported, spin.GetFromDevice(&op), "a get has no user header")
		require.Equal(t, spin.OK, spin.PutFromHost(&spin.Op{Offset: 4, Length: 4}))
		require.Equal(t, spin.Denied, spin.PutFromHost(&spin.Op{Offset: 5, Length: 4}))
		require.Equal(t, spin.OK, spin.GetFromDevice(&spin.Op{Local: op.Local, Length: 7}))
		require.Equal(t, "reply56", string(s.buffer[:7]))
		require.Equal(t, spin.OK, spin.AtomicFromHost(&spin.Op{Length: 8}))
		require.Equal(t, "hostdata", string(d.Host), "nothing fetched")
		require.Equal(t, spin.OK, spin.FetchAtomicFromHost(&spin.Op{Length: 8}))
		require.Equal(t, "reply567", string(d.Host))
		require.Equal(t, spin.OK, spin.Counter(4).Inc(2, 1))
		success, failure, _ := spin.Counter(4).Get()
		require.Equal(t, []uint64{3, 1}, []uint64{success, failure})
		require.Equal(t, spin.Invalid, spin.Counter(5).Inc(1, 0))
		require.Equal(t, spin.OK, spin.Acknowledge(0))
		require.Equal(t, spin.Invalid, spin.Acknowledge(0), "once per message")
		return spin.Success
	})
	require.Equal(t, "devdata", string(d.Puts()[0].Data))
	require.Equal(t, []byte{0}, d.Puts()[0].UserHdr)
	require.Equal(t, "data", string(d.Puts()[2].Data))
	require.Equal(t, uint32(9), d.Puts()[0].Op.TargetNID)
}

func TestAccessOutsideMemoryTraps(t *testing.T) {
	d := spintest.New(t, spintest.Config{})
	for name, f := range map[string]func(*state) spin.Code{
		"past the end": func(s *state) spin.Code {
			spin.PutFromDevice(&spin.Op{Local: spin.Addr(s.buffer[:]), Length: 17})
			return spin.Success
		},
		"no address": func(*state) spin.Code { return spin.Code(spin.Ptr(1).Bytes(1)[0]) },
		"go panic":   func(s *state) spin.Code { return spin.Code(s.buffer[int(s.word)+16]) },
	} {
		require.Equal(t, spin.Segv, within(d, &state{}, f), name)
	}
	require.Equal(t, spin.Success, within(d, &state{}, func(*state) spin.Code { return spin.Success }), "the device is free again")
}

func TestAddresses(t *testing.T) {
	d := spintest.New(t, spintest.Config{})
	s := spintest.NewState[state](d, 100)
	within(d, s, func(s *state) spin.Code {
		at := spin.AddrOf(s)
		require.Equal(t, at+16, spin.Addr(s.buffer[:]), "a part lies within the whole")
		require.Equal(t, at+32, spin.After(s))
		spin.After(s).Bytes(100)[99] = 1
		*spin.At[uint64](at + 8) = 77
		require.Equal(t, uint64(77), s.found)
		other := new(state) // of its own
		require.NotEqual(t, at, spin.AddrOf(other))
		require.Same(t, other, spin.At[state](spin.AddrOf(other)))
		return spin.Success
	})
}

func TestDeliver(t *testing.T) {
	type S struct {
		log []uint64
	}
	d := spintest.New(t, spintest.Config{HostMem: 64, MTU: 8, HPUs: 3, NID: 5})
	h := spintest.Handlers[S]{
		Header: func(h *spin.Header, _ *S) spin.Code {
			require.Equal(t, "hd", string(h.UserHeader()))
			require.Equal(t, []uint64{21, 20, 5}, []uint64{h.Length, h.MLength, uint64(h.TargetNID)})
			return spin.ProcessDataPending
		},
		Payload: func(p *spin.Payload, s *S) spin.Code {
			s.log = append(s.log, p.Offset)
			require.Equal(t, p.Offset+3, p.HostOffset)
			switch p.Offset {
			case 6:
				return spin.Drop
			case 14:
				return spin.Fail
			}
			return spin.Success
		},
		Completion: func(c *spin.Completion, _ *S) spin.Code {
			require.Equal(t, uint64(12), c.DroppedBytes)
			require.Equal(t, uint32(1), c.Failed)
			return spin.Drop // not for a completion handler
		},
	}
	// Packets of 8, 8 and 4 bytes; the first loses 2 to the user header.
	s := &S{}
	out := spintest.Deliver(d, h, s, spintest.Message{
		Data: []byte("hd0123456789abcdefghi"), UserHdrLen: 2, MLength: 20, Offset: 3, Order: []int{2, 0, 1},
	})
	require.Equal(t, []uint64{14, 0, 6}, s.log)
	require.Equal(t, spintest.Outcome{
		Header: spin.ProcessDataPending, Payloads: []spin.Code{spin.Success, spin.Drop, spin.Fail},
		Completion: spin.Fail, Pending: true, Failed: true, Dropped: 12,
	}, out)

	out = spintest.Deliver(d, spintest.Handlers[S]{}, s, spintest.Message{Data: []byte("0123456789"), Offset: 1, Lost: []int{1}})
	require.True(t, out.Deposited)
	require.Equal(t, uint64(2), out.Dropped)
	require.Equal(t, "\x0001234567\x00", string(d.Host[:10]))

	h.Header = func(*spin.Header, *S) spin.Code { return spin.Proceed }
	out = spintest.Deliver(d, h, s, spintest.Message{Data: []byte("hdxy"), UserHdrLen: 2})
	require.True(t, out.Deposited)
	require.Equal(t, "hdxy", string(d.Host[:4]), "the user header too")

	h.Header = func(*spin.Header, *S) spin.Code { return spin.Drop }
	out = spintest.Deliver(d, h, s, spintest.Message{Data: []byte("ZZ"), UserHdrLen: 2})
	require.Equal(t, spintest.Outcome{Header: spin.Drop, Dropped: 2}, out)
}

func TestLogValue(t *testing.T) {
	d := spintest.New(t, spintest.Config{})
	within(d, &state{}, func(*state) spin.Code {
		spin.LogValue("zero", 0)
		spin.LogValue("max", ^uint64(0))
		spin.LogValue("a label of more than forty bytes is cut to them", 0x10)
		return spin.Success
	})
	require.Equal(t, []string{
		"zero 0x0", "max 0xffffffffffffffff", "a label of more than forty bytes is cut  0x10",
	}, d.Lines())
}
