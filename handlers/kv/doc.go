//go:build !tinygo

package kv

import (
	"errors"
	"fmt"
)

// Mode selects who serves.
type Mode int

// Modes.
const (
	Handlers Mode = iota // handlers; the host does the rest
	Host                 // the host
	OneSided             // clients read the server's memory by RDMA; the host serves writes
)

// String returns the mode's name in commands.
func (m Mode) String() string {
	if m < Handlers || m > OneSided {
		return fmt.Sprintf("mode %d", int(m))
	}
	return [...]string{"spin", "host", "rdma"}[m]
}

// Options are the options of servers and clients of one store; zero means the
// default.
type Options struct {
	Mode     Mode
	Memory   int // of a server, for items and tables, bytes: at least 64 KiB; default 16 MiB
	MaxKey   int // longest key, bytes; default and most 65,535
	MaxValue int // longest value, bytes; default 64 KiB, most kv.MaxValue
	Clients  int // that may have a request under way; default 64
	Stripes  int // of a table, a power of 2; default 256
	Buckets  int // initial number for each stripe, a power of 2; default 16
	Steps    int // items of a bucket that a handler reads; default 8
	Load     int // items for each bucket, above which a stripe grows; default 1
	Limit    int // requests that handlers may have handed over at a time; default 64
	Depth    int // room for blocks of each class in HPU memory, even; default 64
	Slots    int // requests of more than 256 bytes that may arrive at a time; default 64
	PT       int // first of the three portal table entries that a server uses; default 40
}

// Errors of clients. [Client.Swap] returns them in a [ChangedError].
var (
	ErrNotFound = errors.New("kv: there is no such key")
	ErrFull     = errors.New("kv: the server has no memory for the item")
	ErrBusy     = errors.New("kv: the server has had no time for the request, as often as it was asked")
	ErrIllegal  = errors.New("kv: the server says that the message is no request")
)

// ChangedError reports that a key has another version than expected.
type ChangedError struct {
	Version uint64 // the present one; 0: there is no such key
}

// Error names the version.
func (e *ChangedError) Error() string {
	if e.Version == 0 {
		return "kv: the key is not there"
	}
	return fmt.Sprintf("kv: the key has version %d", e.Version)
}

// withDefaults fills in defaults and checks the options.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	number := func(name string, v *int, standard, least, most int) {
		if *v == 0 {
			*v = standard
		}
		if *v < least || *v > most {
			errs = append(errs, fmt.Errorf("kv: %s %d, expected %d to %d", name, *v, least, most))
		}
	}
	number("Memory", &o.Memory, 16<<20, 64<<10, 1<<32)
	number("MaxKey", &o.MaxKey, MaxKey, 0, MaxKey)
	number("MaxValue", &o.MaxValue, 64<<10, 0, MaxValue)
	number("Clients", &o.Clients, 64, 1, 1<<16)
	number("Stripes", &o.Stripes, 256, 1, 1<<16)
	number("Buckets", &o.Buckets, 16, 1, 1<<17)
	number("Steps", &o.Steps, 8, 1, 1<<16)
	number("Load", &o.Load, 1, 1, 1<<16)
	number("Limit", &o.Limit, 64, 1, 1<<12)
	number("Depth", &o.Depth, 64, 4, 1<<12)
	number("Slots", &o.Slots, 64, 1, 1<<12)
	number("PT", &o.PT, 40, 0, 253)
	for name, v := range map[string]int{"Stripes": o.Stripes, "Buckets": o.Buckets} { //lint:maporder errors are joined below, at most two
		if v&(v-1) != 0 {
			errs = append(errs, fmt.Errorf("kv: %s %d, expected a power of 2", name, v))
		}
	}
	if o.Mode < Handlers || o.Mode > OneSided {
		errs = append(errs, fmt.Errorf("kv: %v, expected %v, %v or %v", o.Mode, Handlers, Host, OneSided))
	}
	return o, errors.Join(errs...)
}

// Address is the process of a server.
type Address struct{ NID, PID uint32 }
