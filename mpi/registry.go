package mpi

import (
	"fmt"
	"sort"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// registry is the memory of a rank that the NIC reaches.
type registry struct {
	p       *runtime.Proc
	rank    int
	eq      portals.Handle // of the descriptors
	regions []region       // by address
	latest  int            // the region found last
}

// region is memory for the NIC, with its descriptor.
type region struct {
	addr, length uint64
	md           portals.Handle
}

func (s *registry) alloc(n int) (runtime.View, error) { return s.register(n, 0) }

func (s *registry) adopt(addr, n uint64) error { return s.bind(addr, n, 0) }

func (s *registry) own(v runtime.View) error {
	_, err := s.region(v.Addr(), v.Len())
	return err
}

func (s *registry) register(n int, o portals.MDOptions) (runtime.View, error) {
	v := s.p.Alloc(n)
	if err := s.bind(v.Addr(), uint64(n), o); err != nil {
		return runtime.View{}, err
	}
	return v, nil
}

func (s *registry) bind(addr, n uint64, o portals.MDOptions) error {
	md, err := s.p.NI().Objects().MDBind(&portals.MD{Start: addr, Length: n, EQ: s.eq, Options: o})
	if err == nil {
		s.regions = append(s.regions, region{addr, n, md}) // addresses ascend
	}
	return err
}

// region returns the registered region with the n bytes at addr.
func (s *registry) region(addr uint64, n int) (*region, error) {
	if s.latest >= len(s.regions) || !s.regions[s.latest].holds(addr, n) {
		s.latest = max(0, sort.Search(len(s.regions), func(i int) bool { return s.regions[i].addr > addr })-1)
	}
	if s.latest < len(s.regions) && s.regions[s.latest].holds(addr, n) {
		return &s.regions[s.latest], nil
	}
	return nil, fmt.Errorf("mpi: rank %d: %d B at %#x are no memory that Alloc has returned", s.rank, n, addr)
}

func (m *region) holds(addr uint64, n int) bool {
	return addr >= m.addr && addr-m.addr <= m.length && uint64(n) <= m.length-(addr-m.addr)
}
