package runtime_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// talker is a module with a header handler that asks for the time, logs "hi"
// and returns a code.
func talker(code byte) []byte {
	section := func(id byte, content string) string {
		return string(append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...))
	}
	body := "\x00\x10\x00\x1a\x41\x08\x41\x02\x10\x01\x41" + string([]byte{code}) + "\x0b"
	return []byte("\x00asm\x01\x00\x00\x00" +
		section(1, "\x03\x60\x02\x7f\x7f\x01\x7f\x60\x00\x01\x7e\x60\x02\x7f\x7f\x00") +
		section(2, "\x02\x04spin\x03now\x00\x01\x04spin\x03log\x00\x02") + section(3, "\x01\x00") + section(5, "\x01\x00\x01") +
		section(7, "\x02\x06memory\x02\x00\x06header\x00\x02") + section(10, "\x01"+string([]byte{byte(len(body))})+body) +
		section(11, "\x01\x00\x41\x08\x0b\x02hi"))
}

// Who watches handlers sees those of a kernel, too: each call, what it asks for
// and how it ends. Its cycles take their time at the kernel's clock.
func TestKernelHandlersAreWatched(t *testing.T) {
	device, err := profile.Load("exanest-qfdb", "os.handler_clock=1GHz")
	require.NoError(t, err)
	var seen []string
	c, err := runtime.NewCluster(runtime.Config{
		Profile: device, Nodes: 2,
		Log: func(rank int, _ sim.Time, program, line string) {
			seen = append(seen, fmt.Sprintf("%d %s %s", rank, program, line))
		},
		Watch: func(s *nic.HandlerStep) {
			require.Equal(t, "kernel", s.Pool)
			require.Equal(t, sim.Time(s.Cycles)*sim.Nanosecond, s.At)
			text := fmt.Sprintf("rank %d, %s %d: ", s.Rank, s.Handler, s.Number)
			switch s.What {
			case nic.StepBegan:
				text += fmt.Sprintf("began with %d", binary.LittleEndian.Uint32(s.Record[4:]))
			case nic.StepActed:
				text += s.Action.Op.String()
			case nic.StepEnded:
				text += fmt.Sprintf("%d, invalid %t", s.Code, s.Invalid)
			}
			seen = append(seen, text)
		},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	for _, x := range []struct {
		code  byte
		bytes int
		err   string
		seen  []string
	}{
		{6, 64, "", []string{"rank 1, header 1: began with 64", "rank 1, header 1: now", "1 talker hi", "rank 1, header 1: log", "rank 1, header 1: 6, invalid false"}},
		{0, 8, "returned 0, expected PROCEED", []string{"rank 1, header 1: began with 8", "rank 1, header 1: now", "1 talker hi", "rank 1, header 1: log", "rank 1, header 1: 0, invalid true"}},
		{6, hpu.ShortPacket + 1, fmt.Sprintf("a message of %d bytes to a kernel's handler, expected at most %d", hpu.ShortPacket+1, hpu.ShortPacket), nil},
	} {
		m, err := hpu.Load("talker", talker(x.code), device.Device())
		require.NoError(t, err)
		k, err := c.Node(1).KernelHandlers(m, 64)
		require.NoError(t, err)
		f, err := m.Export("header")
		require.NoError(t, err)
		seen = nil
		took, err := k.Header(f, make([]byte, x.bytes))
		if x.err == "" {
			require.NoError(t, err)
			require.Positive(t, took)
		} else {
			require.ErrorContains(t, err, x.err)
		}
		require.Equal(t, x.seen, seen)
	}
}
