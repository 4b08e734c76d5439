package spin

import "structs"

// Tenant is an owner of handlers as an arbiter sees it (docs/abi.md, Tenant
// record). Times are in picoseconds.
type Tenant struct {
	_        structs.HostLayout
	Number   uint32 // in the order of the names; 0: processes that no tenant has
	Weight   uint32
	Waiting  uint32 // its handlers that wait for an HPU
	Handlers uint32 // those under way
	Others   uint32 // the weights of all with handlers that wait, its own included
	HPUs     uint32 // of the device
	Now      uint64
	Had      uint64 // for how long its handlers had HPUs
	Wanted   uint64 // for how long they wanted any
	// result: the tenant with the least is next, the first in a tie; NotNow: none of
	// its handlers may begin
	Key uint64
}

// NotNow is the largest Key.
const NotNow = 1<<64 - 1
