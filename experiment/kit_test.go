package experiment

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// kit is an experiment that a user could write: bytes from one rank to another.
func kit(slots func(*Point) []*handlers.Slot, check func(in *Inbox) error) *Experiment {
	return &Experiment{
		Name:    "kit",
		Axes:    []Axis{{Name: "size", Kind: report.Size, Default: "8"}},
		Columns: append(ClusterColumns(), report.Column{Name: "latency", Unit: "ns", Kind: report.Duration}),
		Slots:   slots,
		Run: func(ctx context.Context, p *Point) (Values, error) {
			message := make([]byte, p.Int("size"))
			Pattern(message, p.Seed)
			var latency sim.Time
			stats, err := p.Simulate(ctx, func(proc *runtime.Proc) error {
				return Send(proc, 1, message)
			}, func(proc *runtime.Proc) error {
				in, err := p.Receive(proc, len(message))
				if err != nil {
					return err
				}
				latency, err = in.Wait()
				if err == nil && slots == nil { // handlers may leave other bytes
					err = SameBytes("message", in.Memory().Read(), message)
				}
				if err == nil && check != nil {
					err = check(in)
				}
				return err
			})
			v := ClusterValues(&stats)
			v["latency"] = latency
			return v, err
		},
	}
}

// Receive gets the message of Send, with any length, at the time of the model
// of a put. If there are handlers, they run instead.
func TestSendAndReceive(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	q := load(t, "spin-int")
	for _, slots := range []func(*Point) []*handlers.Slot{nil, Always(count.TargetSlot)} {
		e := kit(slots, nil)
		for _, bytes := range []int{0, 1, 4096, 3 * 4096} {
			p, err := e.At(device, Values{"size": bytes})
			require.NoError(t, err)
			r, err := e.Measure(t.Context(), p)
			require.NoError(t, err, "%d B", bytes)
			packets := max(1, bytes/q.mtu)
			if slots == nil {
				require.Zero(t, r.Values["handler_calls"])
				if bytes > 0 {
					require.Equal(t, q.o+q.delivered(bytes/packets, packets)+q.poll, r.Time("latency"), "%d B", bytes)
				}
				continue
			}
			require.NotZero(t, r.Values["handler_calls"], "%d B", bytes)
		}
	}
}

// Receive installs handlers in the usual way: with the state of the module,
// whose numbers have names, and with the host memory and options that the
// module needs.
func TestReceiveInstallsLibraries(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	for _, slot := range []*handlers.Slot{count.TargetSlot, accumulate.TargetSlot} {
		library := slot.Library.Name
		seen := false
		e := kit(Always(slot), func(in *Inbox) error {
			seen = true
			h := in.Handlers()
			require.NotNil(t, h.State, library)
			wanted, err := h.Initial(nil, handlers.DeviceOf(device, 1, 2))
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(h.HPU.Bytes()), len(wanted))
			require.Equal(t, h.UserHeader, int64(h.Spin.UserHdrLen))
			if library == "count" {
				n, err := h.Number("packets")
				require.NoError(t, err)
				require.EqualValues(t, 3, n)
			}
			return nil
		})
		p, err := e.At(device, Values{"size": 3 * 4096})
		require.NoError(t, err)
		_, err = e.Measure(t.Context(), p)
		require.NoError(t, err, library)
		require.True(t, seen, library)
	}
	e := kit(nil, func(in *Inbox) error { require.Nil(t, in.Handlers()); return nil })
	p, err := e.At(device, nil)
	require.NoError(t, err)
	_, err = e.Measure(t.Context(), p)
	require.NoError(t, err)
}

// A failure in a program or handler is the error of the point, and the error
// names the point.
func TestErrorsOfPrograms(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	measure := func(e *Experiment) error {
		p, err := e.At(device, nil)
		require.NoError(t, err)
		_, err = e.Measure(t.Context(), p)
		return err
	}
	wrong := errors.New("not what I want")
	err = measure(kit(nil, func(*Inbox) error { return wrong }))
	require.ErrorIs(t, err, wrong)
	require.ErrorContains(t, err, "kit, profile spin-int, 8 B: ")
	require.ErrorContains(t, measure(kit(Always(handlers.New("bad", []byte("no module")).Slot(handlers.Slot{Name: "here", Handlers: []string{"payload"}})), nil)), "bad")

	waits := kit(nil, nil)
	waits.Run = func(ctx context.Context, p *Point) (Values, error) {
		_, err := p.Simulate(ctx, func(proc *runtime.Proc) error {
			in, err := p.Receive(proc, 8)
			if err == nil {
				_, err = in.Wait() // for a message that nobody sends
			}
			return err
		})
		return nil, err
	}
	require.ErrorContains(t, measure(waits), "rank 0 kit waits")
}

// A program that panics on what a user's handlers have left is an error of the
// point, which names the module; without one the panic goes on.
func TestProgramsMistrustModules(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	e := kit(Always(count.TargetSlot), func(*Inbox) error { panic("no such place") })
	p, err := e.At(device, nil)
	require.NoError(t, err)
	require.Panics(t, func() { _, _ = e.Measure(t.Context(), p) })
	p.Handlers = map[string]*handlers.Library{count.TargetSlot.Name: handlers.New("mine.wasm", count.Library.Wasm)}
	_, err = e.Measure(t.Context(), p)
	require.ErrorContains(t, err, "kit, profile spin-int, 8 B: the program of a host fails on what handlers have left: no such place\nmine.wasm runs in slot count.target, whose rules are:\n  ")
}
