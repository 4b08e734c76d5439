package ip

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Idle is the behaviour of an idle service (TR-488 §5.3, §6).
type Idle string

// Behaviours of an idle service.
const (
	Polling  Idle = "polling"  // it polls, and takes a core
	Sleeping Idle = "sleeping" // it sleeps for longer and longer times (Spec.Sleep)
)

// Idles lists the behaviours. The first is the default.
func Idles() []Idle { return []Idle{Polling, Sleeping} }

// Options configure a network.
type Options struct {
	Spec  *Spec // nil: the defaults
	Idle  Idle
	Nodes []int // nodes with a service, each once; nil: all
	// Device makes the device of a node; nil: a simulated TUN.
	Device func(node int) Device
	// Channels configures the RDMA pages of services.
	Channels rdma.Options
}

// Network is IP over ExaNet on a cluster, with the management Ethernet beside
// it.
type Network struct {
	o        Options
	spec     *Spec
	system   *exanet.System
	rdma     *rdma.Engine
	ethernet *ethernet
	nodes    []int
	services []*service // by node; nil: none
	kernels  []*kernel  // by node
}

// Addresses of nodes: 22 bits for the node, in one of two networks.
const (
	networkByte    = 10
	managementByte = 128
	nodeMask       = exanet.Nodes - 1
)

func addr(network byte, node int) (a inet.Addr) {
	binary.BigEndian.PutUint32(a[:], networkByte<<24|uint32(network)<<16|uint32(node+1)&nodeMask)
	return a
}

// AddrOf returns the address of a node on ExaNet.
func AddrOf(node int) inet.Addr { return addr(0, node) }

// ManagementAddrOf returns the address of a node on the management Ethernet.
func ManagementAddrOf(node int) inet.Addr { return addr(managementByte, node) }

// networks are the networks that an address can belong to.
type networks uint8

const (
	nowhere networks = iota
	overExaNet
	management
)

// nodeOf returns the node of an address, and the network that leads to it.
func nodeOf(a inet.Addr) (node int, by networks) {
	v := binary.BigEndian.Uint32(a[:])
	switch node = int(v-1) & nodeMask; {
	case a[0] != networkByte:
		return node, nowhere
	case a[1]&managementByte != 0:
		return node, management
	}
	return node, overExaNet
}

// New makes the network and starts its services, which run until Stop.
func New(c *runtime.Cluster, o Options) (*Network, error) {
	n := &Network{o: o, spec: o.Spec, services: make([]*service, c.Nodes()), kernels: make([]*kernel, c.Nodes())}
	var err error
	if n.spec == nil {
		if n.spec, err = Load(); err != nil {
			return nil, err
		}
	}
	if err := n.spec.Validate(); err != nil {
		return nil, fmt.Errorf("ip: %w", err)
	}
	if o.Idle == "" {
		n.o.Idle = Polling
	} else if !slices.Contains(Idles(), o.Idle) {
		return nil, fmt.Errorf("ip: idle: %q, expected one of %v", o.Idle, Idles())
	}
	if n.system, err = exanet.Load(c); err != nil {
		return nil, fmt.Errorf("ip: %w", err)
	}
	if n.rdma, err = rdma.Load(c); err != nil {
		return nil, fmt.Errorf("ip: %w", err)
	}
	if n.ethernet, err = newEthernet(c, &n.spec.Management); err != nil {
		return nil, err
	}
	if n.nodes = slices.Clone(o.Nodes); n.nodes == nil {
		for i := range c.Nodes() {
			n.nodes = append(n.nodes, i)
		}
	}
	for _, node := range n.nodes {
		if node < 0 || node >= c.Nodes() || n.services[node] != nil {
			return nil, fmt.Errorf("ip: service of node %d, expected each of 0 to %d at most once", node, c.Nodes()-1)
		}
		if err := n.start(c, node); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// start makes the kernel and the processes of a node.
func (n *Network) start(c *runtime.Cluster, node int) error {
	k := &kernel{net: n, node: node, tun: &TUN{most: n.spec.Queue}, conns: map[connID]*Conn{}, listeners: map[uint16]*Sockets{}, datagrams: map[uint16]*UDP{}, port: firstPort}
	k.tun.in, k.tun.room = k.in, k.resume
	n.ethernet.nodes[node].room = k.resume
	n.kernels[node] = k
	s := &service{net: n, spec: n.spec, node: node, device: k.tun, pid: uint32(c.Processes(node))}
	if n.o.Device != nil {
		s.device = n.o.Device(node)
	}
	n.services[node] = s
	if err := c.Spawn(node, "ip service", s.run); err != nil {
		return err
	}
	return c.SpawnService(node, "ethernet driver", func(p *runtime.Proc) error { return k.driver(p) })
}

// Stop ends the service of a node at its next look. It has no effect on a node
// without one. A program of that node must call it.
func (n *Network) Stop(node int) {
	s := n.service(node)
	if s == nil {
		return
	}
	s.stop = true
	if s.ni != nil {
		s.ring(s.heardCT)
	}
}

// Counts returns the statistics of a node's service, zero if it has none.
func (n *Network) Counts(node int) Counts {
	s := n.service(node)
	if s == nil {
		return Counts{}
	}
	c := s.counts
	c.Queued = n.kernels[node].tun.Dropped
	return c
}

// Up reports whether packets between two nodes now go over ExaNet.
func (n *Network) Up(node, to int) bool {
	if s := n.service(node); s != nil {
		p := s.peer(to)
		return p != nil && p.up
	}
	return false
}

// Unplug disconnects a node from the management Ethernet, or reconnects it. A
// disconnected node neither sends nor receives heartbeats.
func (n *Network) Unplug(node int, off bool) {
	if node >= 0 && node < len(n.ethernet.nodes) {
		n.ethernet.nodes[node].down = off
	}
}

// service returns the service of a node, or nil.
func (n *Network) service(node int) *service {
	if node < 0 || node >= len(n.services) {
		return nil
	}
	return n.services[node]
}

// join gives a service its interfaces.
func (n *Network) join(p *runtime.Proc) (*exanet.Interface, *rdma.Page, error) {
	if err := n.system.Admit(p, exanet.DefaultPDID); err != nil {
		return nil, nil, err
	}
	page, err := n.system.Open(p, exanet.Options{})
	if err != nil {
		return nil, nil, err
	}
	o := n.o.Channels
	o.PDID = uint16(exanet.DefaultPDID)
	if peers := rdma.Writes * len(n.nodes); o.State["peers"] == nil && peers > defaultPeers {
		state := map[string]any{"peers": peers}
		maps.Copy(state, n.o.Channels.State)
		o.State = state
		// State and contexts are smaller than the default peers.
		o.Memory += int64(peers+defaultPeers) * rdma.PeerSize
	}
	page2, err := n.rdma.Open(p, o)
	return page, page2, err
}

// defaultPeers is the default maximum number of channels of peers on a page.
const defaultPeers = 1 << 16

// ring adds to a counter of the service, which wakes it.
func (s *service) ring(ct portals.Handle) {
	if err := s.ni.Objects().CTInc(ct, portals.CTEvent{Success: 1}); err != nil {
		s.stop = true // its interface is closed: the service has ended
	}
}
