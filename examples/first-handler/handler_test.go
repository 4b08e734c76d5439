package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/lab/handlerlab"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// The source, as native Go: no simulator, no compiler of handlers.
func TestFilter(t *testing.T) {
	d := spintest.New(t, spintest.Config{HostMem: 64, MTU: 8})
	s := State{Wanted: 7}
	data := make([]byte, 18) // packets of 8, 8 and 2 bytes
	binary.LittleEndian.PutUint32(data, 7)
	binary.LittleEndian.PutUint32(data[8:], 8)
	data[16] = 7 // too short for a number

	out := spintest.Deliver(d, spintest.Handlers[State]{Payload: payload}, &s, spintest.Message{Data: data, Order: []int{1, 2, 0}})

	require.Equal(t, []spin.Code{spin.Success, spin.Drop, spin.Drop}, out.Payloads)
	require.Equal(t, State{Passed: 1, Dropped: 2, Wanted: 7}, s)
	require.Equal(t, data[:8], d.Host[:8])
	require.Equal(t, make([]byte, 56), d.Host[8:])
}

func TestFailureOfDMA(t *testing.T) {
	d := spintest.New(t, spintest.Config{HostMem: 64})
	d.Fail("dma_to_host", spin.Denied, 1)
	out := spintest.Deliver(d, spintest.Handlers[State]{Payload: payload}, &State{}, spintest.Message{Data: make([]byte, 8)})
	require.True(t, out.Failed)
}

// The module, on a simulated device: what the README shows.
func TestModule(t *testing.T) {
	module, err := handlers.Open("first-handler.wasm")
	require.NoError(t, err)
	device, err := profile.Load("spin-dis")
	require.NoError(t, err)
	text, err := os.ReadFile("packets.txt")
	require.NoError(t, err)
	messages, err := handlerlab.ParsePackets("packets.txt", text)
	require.NoError(t, err)
	run := &handlerlab.Config{
		Module: module, Profile: device, Messages: messages, Host: make([]byte, 64<<10), Watched: runtime.Config{Limits: sim.Limits{Until: sim.Millisecond}},
	}
	require.NoError(t, run.SetState("wanted=7"))
	report, err := handlerlab.Run(t.Context(), run)
	require.NoError(t, err)
	require.NoError(t, report.Err())
	require.NoError(t, handlerlab.CompareFile("expected.txt", report, handlerlab.Text{Plain: true}))

	// What the README quotes is what a reader sees.
	var output bytes.Buffer
	require.NoError(t, handlerlab.Text{}.Write(&output, report))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	quotes := regexp.MustCompile("(?s)```\nmessage (.*?)```").FindAllSubmatch(readme, -1)
	require.Len(t, quotes, 1)
	require.Contains(t, output.String(), string(quotes[0][1]))
}
