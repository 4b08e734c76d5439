package main

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/rules"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// The native handlers and the module do the same.
func TestRules(t *testing.T) {
	names := wasmtest.Names{Header: rules.Header, Payload: rules.Payload, Completion: rules.Completion}
	for name, handlers := range map[string]func(*spintest.Device) spintest.Handlers[rules.State]{
		"native": func(*spintest.Device) spintest.Handlers[rules.State] {
			return spintest.Handlers[rules.State]{Header: header, Payload: payload, Completion: completion}
		},
		"tinygo": func(d *spintest.Device) spintest.Handlers[rules.State] {
			return wasmtest.Handlers[rules.State](t, d, rules.Library.Wasm, names, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := spintest.New(t, spintest.Config{HostMem: 256, MTU: 64})
			h := handlers(d)
			data := make([]byte, 192)
			for i := range data {
				data[i] = byte(i + 1)
			}
			m := spintest.Message{Data: data, UserHdrLen: rules.UserHeader, SourceNID: 3, SourcePID: 4}
			deliver := func(s rules.State) spintest.Outcome {
				clear(d.Host)
				d.Calls = nil
				return spintest.Deliver(d, h, &s, m)
			}
			out := deliver(rules.State{Header: int32(spin.ProcessData), Action: rules.Deposit})
			require.Len(t, out.Payloads, 3)
			require.Equal(t, data[rules.UserHeader:], d.Host[:176])
			for _, code := range []spin.Code{spin.Drop, spin.Proceed} {
				out = deliver(rules.State{Header: int32(code)})
				require.Empty(t, out.Payloads)
				require.Equal(t, code == spin.Proceed, out.Deposited)
			}
			for action, put := range map[uint64]string{rules.Device: "put_from_device", rules.Host: "put_from_host"} {
				out = deliver(rules.State{Header: int32(spin.ProcessData), Action: action, Puts: 2, Length: 32, MatchBits: 7, PT: 5})
				require.False(t, out.Failed)
				calls := d.Puts()
				require.Len(t, calls, 6)
				require.Equal(t, put, calls[0].Name)
				require.Equal(t, []uint64{32, 7, 3, 4, 5}, []uint64{calls[0].Op.Length, calls[0].Op.MatchBits, uint64(calls[0].Op.TargetNID), uint64(calls[0].Op.TargetPID), uint64(calls[0].Op.PTIndex)})
				d.Fail(put, spin.NoSpace, 1)
				require.True(t, deliver(rules.State{Header: int32(spin.ProcessData), Action: action, Puts: 2, Length: 32}).Failed)
			}
			deliver(rules.State{Header: int32(spin.ProcessData), Action: rules.Add})
			require.EqualValues(t, 3, binary.LittleEndian.Uint64(d.Host))
		})
	}
}
