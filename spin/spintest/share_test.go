package spintest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// locks is the state of a handler that takes them all.
type locks struct {
	Lock, RW uint64
	Word     uint32
}

// A handler that waits for a lock yields until the other has given it back.
// Readers share; a writer is alone.
func TestLocks(t *testing.T) {
	d := spintest.New(t, spintest.Config{MTU: 64})
	s := &locks{Lock: 1, RW: 1 << 63}
	yields := 0
	d.OnYield = func() {
		switch yields++; yields {
		case 1:
			spin.Unlock(&s.Lock)
		case 2: // the other was a writer
			spin.WUnlock(&s.RW)
		case 3: // three readers: this one, and two that came meanwhile
			require.Equal(t, uint64(2), s.RW)
			spin.RUnlock(&s.RW)
			spin.RUnlock(&s.RW)
		}
	}
	handler := func(_ *spin.Payload, s *locks) spin.Code {
		spin.Lock(&s.Lock)
		if spin.Trylock(&s.Lock) {
			return spin.Fail
		}
		spin.Unlock(&s.Lock)
		spin.RLock(&s.RW)
		spin.RLock(&s.RW)
		spin.RLock(&s.RW)
		spin.RUnlock(&s.RW)
		spin.WLock(&s.RW)
		readers := s.RW
		spin.WUnlock(&s.RW)
		if readers != 1<<63 || s.RW != 0 {
			return spin.Fail
		}
		if spin.FAdd32(&s.Word, 5) != 0 || spin.CAS32(&s.Word, 4, 1) || !spin.CAS32(&s.Word, 5, 7) || spin.Apply32(spin.MinU32, &s.Word, 6) != 7 {
			return spin.Fail
		}
		return spin.Success
	}
	out := spintest.Deliver(d, spintest.Handlers[locks]{Payload: handler}, s, spintest.Message{Data: make([]byte, 8)})
	require.Equal(t, []spin.Code{spin.Success}, out.Payloads)
	require.Equal(t, 3, yields)
	require.Equal(t, uint32(6), s.Word)
}

// These are the options of an entry that show whole packets. TestWholePackets
// of package handlerlab tests them on a device.
func TestWholePackets(t *testing.T) {
	data := []byte("0123456789abcdefXYZ")
	for _, c := range []struct {
		length      int
		lost        []int
		first, last string
	}{{0, nil, "", ""}, {8, nil, "01234567", "01234567"}, {19, nil, "01234567", "XYZ"}, {16, nil, "01234567", "89abcdef"}, {19, []int{2}, "01234567", ""}} {
		var first, last string
		h := spintest.Handlers[struct{}]{
			Header:     func(h *spin.Header, _ *struct{}) spin.Code { first = string(h.PacketBytes()); return spin.ProcessData },
			Payload:    func(*spin.Payload, *struct{}) spin.Code { return spin.Success },
			Completion: func(c *spin.Completion, _ *struct{}) spin.Code { last = string(c.PacketBytes()); return spin.Success },
		}
		d := spintest.New(t, spintest.Config{MTU: 8})
		spintest.Deliver(d, h, &struct{}{}, spintest.Message{Data: data[:c.length], UserHdrLen: 2, Lost: c.lost, FirstPacket: true, LastPacket: true})
		require.Equal(t, [2]string{c.first, c.last}, [2]string{first, last}, "%+v", c)
	}
}
