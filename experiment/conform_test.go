package experiment

//go:generate go run ../internal/build/cmd -o testdata/slots/accumulate.target/accumulate.target.wasm testdata/slots/accumulate.target
//go:generate go run ../internal/build/cmd -o testdata/slots/bcast.store/bcast.store.wasm testdata/slots/bcast.store
//go:generate go run ../internal/build/cmd -o testdata/slots/bcast.stream/bcast.stream.wasm testdata/slots/bcast.stream
//go:generate go run ../internal/build/cmd -o testdata/slots/datatype.unpack/datatype.unpack.wasm testdata/slots/datatype.unpack
//go:generate go run ../internal/build/cmd -o testdata/slots/ftbcast.rank/ftbcast.rank.wasm testdata/slots/ftbcast.rank
//go:generate go run ../internal/build/cmd -o testdata/slots/mailbox.engine/mailbox.engine.wasm testdata/slots/mailbox.engine
//go:generate go run ../internal/build/cmd -o testdata/slots/matching.receiver/matching.receiver.wasm testdata/slots/matching.receiver
//go:generate go run ../internal/build/cmd -o testdata/slots/pingpong.stream/pingpong.stream.wasm testdata/slots/pingpong.stream
//go:generate go run ../internal/build/cmd -o testdata/slots/txlog.log/txlog.log.wasm testdata/slots/txlog.log

import (
	"context"
	"encoding/binary"
	"flag"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/pspin"
	"github.com/spinsim/spinsim/sim"
)

// The module of a library conforms to each of its slots, and each slot of each
// experiment is tried.
func TestLibrariesConform(t *testing.T) {
	reached := make(map[string]map[*handlers.Slot]bool)
	for _, slot := range usedSlots() {
		own := handlers.New("mine.wasm", slot.Library.Wasm)
		err := Conform(t.Context(), slot, own, sim.Limits{Events: 10_000_000}, func(x *Trial) {
			require.NoError(t, x.Err, "%s in %s", slot.Name, x.Point)
			name := x.Experiment
			if reached[name] == nil {
				reached[name] = make(map[*handlers.Slot]bool)
			}
			reached[name][slot] = true
		})
		require.NoError(t, err)
	}
	for _, e := range All() {
		for _, slot := range slotsOf(e) {
			require.True(t, reached[e.Name][slot], "no smoke point of %s has slot %s", e.Name, slot.Name)
		}
	}
}

var everyTrial = flag.Bool("conform.all", false, "modules that lack a manifest, or do nothing, have all trials; without it a slot's end with the first that shows the point")

// conformUntil is Conform that ends with a trial for which enough returns true,
// unless -conform.all is set.
func conformUntil(t *testing.T, slot *handlers.Slot, l *handlers.Library, limits sim.Limits, enough func(*Trial) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := false
	err := Conform(ctx, slot, l, limits, func(x *Trial) {
		if enough(x) && !*everyTrial {
			ended = true
			cancel()
		}
	})
	if !ended {
		require.NoError(t, err)
	}
}

// So do their modules without a manifest: the contract describes their state.
func TestModulesWithoutManifestConform(t *testing.T) {
	for _, slot := range usedSlots() {
		if _, err := handlers.Builtin(slot.Library.Name); err != nil {
			continue // no built-in library
		}
		conformUntil(t, slot, silent(t, slot.Library.Name), sim.Limits{}, func(x *Trial) bool {
			require.NoError(t, x.Err, "%s in %s", slot.Name, x.Point)
			return true
		})
	}
}

// A trial that is ended from outside is no failure of the module.
func TestEndedTrialsDoNotCount(t *testing.T) {
	slot := builtin("pingpong").Slots
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &Point{experiment: builtin("pingpong"), values: []any{ModeSpinStream}}
	at := slot(p)[0]
	err := Conform(ctx, at, at.Library, sim.Limits{}, func(*Trial) { t.Error("shown") })
	require.ErrorIs(t, err, context.Canceled)
}

// usedSlots lists the slots of all experiments.
func usedSlots() (list []*handlers.Slot) {
	seen := make(map[*handlers.Slot]bool)
	for _, e := range All() {
		for _, slot := range slotsOf(e) {
			if !seen[slot] {
				seen[slot] = true
				list = append(list, slot)
			}
		}
	}
	return list
}

// Modules that were written from the contracts alone conform to their slots,
// which are the names of their folders.
func TestIndependentModulesConform(t *testing.T) {
	folders, err := filepath.Glob("testdata/slots/*")
	require.NoError(t, err)
	require.Greater(t, len(folders), 4)
	for _, folder := range folders {
		name := filepath.Base(folder)
		t.Run(name, func(t *testing.T) {
			slot, err := handlers.SlotNamed(Slots(), name)
			require.NoError(t, err)
			module, err := handlers.Open(filepath.Join(folder, name+".wasm"))
			require.NoError(t, err)
			passed := 0
			err = Conform(t.Context(), slot, module, sim.Limits{Events: 10_000_000}, func(x *Trial) {
				require.NoError(t, x.Err, "%s", x.Point)
				passed++
			})
			require.NoError(t, err)
			t.Logf("%d trials passed", passed)
		})
	}
}

// Handlers that do nothing keep to no contract, but for those that need not do
// anything, and the trial says so: it does not show a wrong table.
func TestIdleHandlersDoNotConform(t *testing.T) {
	var harmless []string
	for _, slot := range usedSlots() {
		idle := handlers.New("idle.wasm", idling(t, slot))
		passed, failed := 0, 0
		conformUntil(t, slot, idle, sim.Limits{Events: 1_000_000}, func(x *Trial) bool {
			if x.Err == nil {
				passed++
				return false
			}
			failed++
			require.ErrorContains(t, x.Err, slot.Name)
			return true
		})
		t.Logf("%s: %d passed, %d failed", slot.Name, passed, failed)
		if failed == 0 {
			harmless = append(harmless, slot.Name)
		}
	}
	// without a law one packet flies at a time, without a path choice all take one way
	require.Equal(t, []string{"empty.handler", "transport.law", "transport.way"}, harmless, "which need do nothing")
}

// idling is a module with the handlers of a slot, which do nothing. They have
// the library's manifest.
func idling(t *testing.T, slot *handlers.Slot) []byte {
	t.Helper()
	section := func(id byte, content []byte) []byte {
		return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
	}
	exports := append([]byte{byte(len(slot.Handlers) + 1)}, "\x06memory\x02\x00"...)
	funcs, codes := []byte{byte(len(slot.Handlers))}, []byte{byte(len(slot.Handlers))}
	for i, name := range slot.Handlers {
		exports = append(append(append(exports, byte(len(name))), name...), 0, byte(i))
		funcs = append(funcs, 0)
		codes = append(codes, 4, 0, 0x41, 0, 0x0B) // i32.const 0
	}
	wasm := []byte("\x00asm\x01\x00\x00\x00")
	for _, part := range [][]byte{section(1, []byte("\x01\x60\x02\x7f\x7f\x01\x7f")), section(3, funcs), section(5, []byte{1, 0, 1}), section(7, exports), section(10, codes)} {
		wasm = append(wasm, part...)
	}
	m := *slot.Library.Manifest()
	m.Handlers = slices.DeleteFunc(slices.Clone(m.Handlers), func(h manifest.Handler) bool { return !slices.Contains(slot.Handlers, h.Export) })
	wasm, err := manifest.Write(wasm, &m)
	require.NoError(t, err)
	return wasm
}

// No handler like PsPIN's examples passes for another one: what each leaves is
// compared, and that it leaves nothing else.
func TestExamplesDoNotPassForOthers(t *testing.T) {
	for _, name := range pspin.Names() {
		for _, other := range pspin.Names() {
			passed := 0
			err := Conform(t.Context(), pspin.Slot(name), pspin.Slot(other).Library, sim.Limits{Events: 100_000}, func(x *Trial) {
				if x.Err == nil {
					passed++
				}
			})
			require.NoError(t, err)
			require.Equal(t, name == other, passed > 0, "%s in the place of %s", other, name)
		}
	}
}
