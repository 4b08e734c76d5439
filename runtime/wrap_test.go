package runtime_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// TestInterfaceWraps checks that the interface of a process embeds nothing, and
// has every call of portals.NI that may take time, with the same signature: all
// but those of Objects, and the waits, which take a time-out. It must have no
// call of the transport.
func TestInterfaceWraps(t *testing.T) {
	ni := reflect.TypeFor[*runtime.NI]()
	for i := range ni.Elem().NumField() {
		require.False(t, ni.Elem().Field(i).Anonymous, "%s is embedded", ni.Elem().Field(i).Name)
	}
	elsewhere := map[string]string{"Port": "the NIC's", "Process": "Proc", "PTIdle": "PTDisable waits", "SetCause": "the caller's flow"}
	waits := map[string]bool{"EQPoll": true, "CTPoll": true}
	core, objects := reflect.TypeFor[*portals.NI](), reflect.TypeFor[*portals.Objects]()
	for m := range core.Methods() {
		if _, ok := objects.MethodByName(m.Name); ok {
			continue
		}
		got, ok := ni.MethodByName(m.Name)
		require.NotEqual(t, ok, elsewhere[m.Name] != "", "%s", m.Name)
		if !ok || waits[m.Name] {
			continue
		}
		require.Equal(t, signature(m.Type), signature(got.Type), "%s", m.Name)
	}
	for m := range reflect.TypeFor[*portals.Port]().Methods() {
		if _, program := core.MethodByName(m.Name); !program {
			_, ok := ni.MethodByName(m.Name)
			require.False(t, ok, "%s is for the transport", m.Name)
		}
	}
}

// The objects of an interface cannot start a transfer: it would take no time.
func TestObjectsTransferNothing(t *testing.T) {
	objects := reflect.TypeFor[*portals.Objects]()
	for _, name := range []string{"Put", "Get", "Atomic", "FetchAtomic", "Swap", "MEAppend", "LEAppend", "TriggeredMEAppend", "PTDisable", "SetMap"} {
		_, ok := objects.MethodByName(name)
		require.False(t, ok, name)
		_, ok = reflect.TypeFor[*runtime.NI]().MethodByName(name)
		require.True(t, ok, name)
	}
}

// signature is the parameters and results of a method without its receiver.
func signature(m reflect.Type) (s []string) {
	for i := 1; i < m.NumIn(); i++ {
		s = append(s, m.In(i).String())
	}
	s = append(s, "->")
	for i := range m.NumOut() {
		s = append(s, m.Out(i).String())
	}
	return s
}
