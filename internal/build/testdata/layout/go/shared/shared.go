// Package shared has a state of the same name, and a handler of its own.
package shared

import (
	"structs"

	"github.com/spinsim/spinsim/spin"
)

// State is that of headers.
type State struct {
	_    structs.HostLayout
	Seen uint64 // headers
}

// Late ends a message.
//
//go:wasmexport late
func Late(_ *spin.Completion, s *State) spin.Code {
	s.Seen++
	return spin.Success
}
