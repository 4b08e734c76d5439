package scenario

import (
	"strings"

	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
)

// EngineName is a WebAssembly engine.
type EngineName string

// Choices lists the names.
func (EngineName) Choices() []string { return []string{"wazero", "wasmtime"} }

// ListName is one of the two lists of a portal table entry.
type ListName string

// Choices lists the names.
func (ListName) Choices() []string { return []string{"priority", "overflow"} }

// EntryOption is an option of a match list entry: the C name without PTL_ME_,
// in lower case.
type EntryOption string

// ownOptions are set by this package and not by the user. Memory is contiguous,
// and the counting options depend on how programs wait for the entry.
const ownOptions = portals.OptMEIOVec | portals.OptMEHandlerIOVec | portals.OptMEEventCTComm | portals.OptMEEventCTBytes

// Choices lists the names.
func (EntryOption) Choices() []string {
	var list []string
	for i, name := range portals.EntryNames {
		if ownOptions&(1<<i) == 0 {
			list = append(list, strings.ToLower(name))
		}
	}
	return list
}

// PTOption is an option of a portal table entry: the C name without PTL_PT_, in
// lower case.
type PTOption string

// Choices lists the names.
func (PTOption) Choices() []string { return lower(portals.PTNames) }

// AckName is an acknowledgement request.
type AckName string

// Choices lists the names.
func (AckName) Choices() []string { return []string{"none", "ack", "ct_ack", "oc_ack"} }

// AtomicName is an atomic operation: the C name without PTL_, in lower case.
type AtomicName string

// Choices lists the names.
func (AtomicName) Choices() []string { return lower(portals.AtomicOpNames) }

// TypeName is a datatype of atomic operations: the C name without PTL_ and _T,
// in lower case.
type TypeName string

// Choices lists the names.
func (TypeName) Choices() []string {
	list := lower(portals.DatatypeNames)
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], "_t")
	}
	return list
}

// EventName is a type of full events: the C name without PTL_EVENT_, in lower
// case.
type EventName string

// Choices lists the names.
func (EventName) Choices() []string { return lower(portals.EventNames) }

// FormatName is a format of tables.
type FormatName string

// Choices lists the names.
func (FormatName) Choices() []string {
	var list []string
	for _, f := range report.Formats {
		if f != report.ParquetFormat { // Parquet is chosen by the option that names the output file
			list = append(list, string(f))
		}
	}
	return list
}

// StatName is a counter of a rank.
type StatName string

// Choices lists the names.
func (StatName) Choices() []string {
	list := make([]string, len(stats))
	for i := range stats {
		list[i] = stats[i].name
	}
	return list
}

func lower(names []string) []string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = strings.ToLower(n)
	}
	return list
}

// indexOf returns the place of name in the choice. The decoder has checked the
// name. The default is the first.
func indexOf[T interface {
	~string
	strictyaml.Choice
}](name T) int {
	for i, n := range name.Choices() {
		if n == string(name) {
			return i
		}
	}
	return 0
}

// optionBits combines options. The names in all are in the order of the bits.
func optionBits[T ~string](options []T, all []string) (bits uint32) {
	for _, o := range options {
		for i, n := range all {
			if strings.EqualFold(n, string(o)) {
				bits |= 1 << i
			}
		}
	}
	return bits
}
