// Package pspin has handlers like those that PsPIN's and FPsPIN's repositories
// publish as examples: they compute the same, in our words, over the header that
// lets theirs compile (docs/porting.md).
package pspin

import (
	"embed"
	"regexp"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../build/cmd -o empty.wasm empty
//go:generate go run ../build/cmd -o ping_pong.wasm ping_pong
//go:generate go run ../build/cmd -o copy_to_host.wasm copy_to_host
//go:generate go run ../build/cmd -o filtering.wasm filtering
//go:generate go run ../build/cmd -o aggregate.wasm aggregate
//go:generate go run ../build/cmd -o icmp_ping.wasm icmp_ping
//go:generate go run ../build/cmd -o icmp_ping_fast.wasm icmp_ping_fast
//go:generate go run ../build/cmd -o udp_ping.wasm udp_ping

var (
	//go:embed empty.wasm
	empty []byte
	//go:embed ping_pong.wasm
	pingPong []byte
	//go:embed copy_to_host.wasm
	copyToHost []byte
	//go:embed filtering.wasm
	filtering []byte
	//go:embed aggregate.wasm
	aggregate []byte
	//go:embed icmp_ping.wasm
	icmpPing []byte
	//go:embed icmp_ping_fast.wasm
	icmpPingFast []byte
	//go:embed udp_ping.wasm
	udpPing []byte

	//go:embed */*.c
	sources embed.FS
)

// Names are the names of the handlers, as PsPIN has them.
func Names() []string {
	return []string{"empty", "ping_pong", "copy_to_host", "filtering", "aggregate"}
}

// Names of the handlers that answer a packet.
const (
	ICMPPing     = "icmp_ping"
	ICMPPingFast = "icmp_ping_fast" // with a checksum that is folded once
	UDPPing      = "udp_ping"
)

// PingNames are the names of handlers like FPsPIN's examples.
func PingNames() []string { return []string{ICMPPing, ICMPPingFast, UDPPing} }

// slots are the slots of the handlers, by name.
var slots = make(map[string]*handlers.Slot)

func init() {
	for name, wasm := range map[string][]byte{ //lint:maporder a map is made of a map
		"empty": empty, "ping_pong": pingPong, "copy_to_host": copyToHost, "filtering": filtering, "aggregate": aggregate,
		ICMPPing: icmpPing, ICMPPingFast: icmpPingFast, UDPPing: udpPing,
	} {
		l := handlers.New(name, wasm)
		l.C = map[string][]byte{name + ".c": source(name)}
		slots[name] = l.Slot(handlers.Slot{
			Name: "handler", Short: "a payload handler in the place of the example " + name,
			Handlers: []string{"payload"}, More: true, Fields: []string{},
			May: []string{"send_pt", "send_bits"},
		})
	}
}

// included is a line with another handler's source.
var included = regexp.MustCompile(`(?m)^#include "\.\./(.*)/.*$`)

// source is the source of a handler, in one file.
func source(name string) []byte {
	b, err := sources.ReadFile(name + "/" + name + ".c")
	if err != nil {
		panic(err) // a programmer's mistake
	}
	return included.ReplaceAllFunc(b, func(line []byte) []byte { return source(string(included.FindSubmatch(line)[1])) })
}

// Slot returns the slot of the handler with one of Names or PingNames.
func Slot(name string) *handlers.Slot { return slots[name] }
