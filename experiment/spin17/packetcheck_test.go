package spin17

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// given is the step where a payload handler begins with some bytes of a
// message.
func given(at int, bytes ...byte) *nic.HandlerStep {
	memory := append(make([]byte, 32), bytes...)
	record := binary.LittleEndian.AppendUint32(nil, 32)
	record = binary.LittleEndian.AppendUint32(record, uint32(len(bytes)))
	return &nic.HandlerStep{What: nic.StepBegan, Handler: "payload", Record: binary.LittleEndian.AppendUint64(record, uint64(at)), Memory: memory}
}

func TestPacketCheck(t *testing.T) {
	for want, steps := range map[string][]*nic.HandlerStep{
		"": {given(2, 3, 4), given(0, 1, 2)},
		"packet 0: byte 1 of 2 is 0x09, 0x04 was sent":                                 {given(0, 1, 2), given(2, 3, 9)},
		"handlers were given all but 2 of 4 bytes":                                     {given(0, 1, 2)},
		"packet 0: the bytes at offset 0 came twice":                                   {given(0, 1, 2), given(0, 1, 2), given(2, 3, 4)},
		"packet 0 has 2 bytes for offset 3 of a message of 4 bytes":                    {given(3, 4, 5)},
		"packet 0 has 0 bytes for offset 0 of a message of 4 bytes":                    {given(0)},
		"packet 0 has 1 bytes for offset 18446744073709551615 of a message of 4 bytes": {given(-1, 1)},
	} {
		var k experiment.PacketCheck
		k.Expect([]byte{1, 2, 3, 4})
		for _, s := range steps {
			k.Watch(s)
		}
		if err := k.Complete(); want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
}

// The experiment checks the bytes: with another message it fails.
func TestHPUsCompareBytes(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	p, err := hpus.At(device, experiment.Values{"size": 64, "handler-time": "200ns"})
	require.NoError(t, err)
	_, err = hpus.Measure(t.Context(), p)
	require.NoError(t, err)
	_, err = newWork(p).Run(t.Context(), func(w *experiment.Bench) error {
		err := work(w)
		if err == nil {
			err = w.Spawn(0, "spoiler", func(p *runtime.Proc) error {
				p.Sleep(1) // the message is known by now
				w.Packets.Left++
				return nil
			})
		}
		return err
	})
	require.ErrorContains(t, err, "handlers were given all but 1 of ")
}
