package trace

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/sim"
)

// Timelines and captures are sealed at their end. Readers read them as before.
// Every flipped bit and every missing end is noticed.
func TestFilesAreSealed(t *testing.T) {
	m := seal.Mark{Program: "devel", Cut: `limit of "x"`}
	sealed := func(w *Writer) {
		pingMessage(w)
		w.Seal(m.Program, m.Record, m.Cut)
	}
	var packets bytes.Buffer
	w := NewPcapng(&packets, "test", "")
	n := w.Interface("a", LinkUser0)
	w.Packet(n, sim.Nanosecond, Inbound, []byte("payload"))
	w.Seal(m.Program, m.Record, m.Cut)
	require.NoError(t, w.Close())
	for kind, data := range map[seal.Kind][]byte{
		seal.Chrome: encode(t, ChromeJSON, Options{}, sealed), seal.Perfetto: encode(t, Perfetto, Options{}, sealed), seal.Capture: packets.Bytes(),
	} {
		check := func(data []byte) *seal.Verdict {
			v, err := seal.Check(bytes.NewReader(data))
			require.NoError(t, err)
			return v
		}
		require.Equal(t, &seal.Verdict{Mark: seal.Mark{Kind: kind, Program: "devel", Cut: "limit of ?x?"}, State: seal.Cut}, check(data))
		rapid.Check(t, func(t *rapid.T) {
			is, at := bytes.Clone(data), rapid.IntRange(0, len(data)-1).Draw(t, "at")
			is[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			require.Contains(t, []seal.State{seal.Unsealed, seal.Changed}, check(is).State)
			require.Contains(t, []seal.State{seal.Unsealed, seal.Changed}, check(data[:at]).State)
		})
		switch kind {
		case seal.Chrome:
			require.True(t, json.Valid(data))
		case seal.Perfetto:
			require.Equal(t, decode(t, encode(t, Perfetto, Options{}, pingMessage)), decode(t, data))
		case seal.Capture:
			r, err := pcapgo.NewNgReader(bytes.NewReader(data), pcapgo.DefaultNgReaderOptions)
			require.NoError(t, err)
			payload, _, err := r.ReadPacketData()
			require.NoError(t, err)
			require.Equal(t, "payload", string(payload))
			_, _, err = r.ReadPacketData()
			require.ErrorIs(t, err, io.EOF)
		}
	}
}
