package host_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// paged is a device behind an SMMU, with an operating system that maps a
// faulting page a while later.
type paged struct {
	*device
	iommu  *host.IOMMU
	tables map[*host.AddressSpace]*smmutest.Tables
	id     sim.ID

	takes  sim.Time // time to bring in a page
	broken func(addr uint64) bool
	marks  map[uint64]bool // pages that will not come
	faults int
	taken  int // banks
	frames uint64
}

func newPaged(t require.TestingT, takes sim.Time, overrides ...string) *paged {
	spec, err := smmutest.Spec(overrides...)
	require.NoError(t, err)
	p := &paged{takes: takes, tables: map[*host.AddressSpace]*smmutest.Tables{}, marks: map[uint64]bool{}, frames: 1 << 30}
	memory := &host.Server{}
	p.device = newDevice(host.BusSpec{Latency: 100 * ns, FullDuplex: true, Charge: host.ChargeFull}, nil)
	p.iommu = host.NewIOMMU(&host.IOMMUConfig{Engine: p.engine, Spec: spec, Bus: &p.bus, Memory: memory, Latency: 150 * ns})
	p.id = p.engine.Add("driver", p)
	return p
}

// process adds a process with some absent memory.
func (p *paged) process(t require.TestingT, n int) (*host.AddressSpace, uint64) {
	space := host.NewAddressSpace(nil)
	addr := space.Alloc(n)
	p.tables[space] = smmutest.NewTables(39)
	require.NoError(t, p.iommu.Admit(space, p.tables[space]))
	return space, addr
}

const (
	kindBring sim.Kind = 1 + iota
	kindBind
)

// Interrupt implements host.IOMMUDriver.
func (p *paged) Interrupt(bank int) {
	s := p.iommu.SMMU()
	p.faults++
	write := uint64(0)
	if s.Bank(bank).Read(smmu.FSYNR)&uint64(smmu.FSYNRWNR) != 0 {
		write = 1
	}
	p.engine.Post(p.engine.Now()+p.takes, p.id, p.id, kindBring, s.Bank(bank).Read(smmu.FAR), write, p.iommu.At(bank))
	s.Write(bank, smmu.FSR, s.Bank(bank).Read(smmu.FSR))
}

// Unbound implements host.IOMMUDriver.
func (p *paged) Unbound(space *host.AddressSpace) {
	p.engine.Post(p.engine.Now()+p.takes, p.id, p.id, kindBind, 0, 0, space)
}

// Unresolvable implements host.IOMMUDriver.
func (p *paged) Unresolvable(_ *host.AddressSpace, addr uint64, _ bool) bool {
	gone := p.marks[addr>>12]
	delete(p.marks, addr>>12)
	return gone
}

// Handle implements sim.Actor.
func (p *paged) Handle(e *sim.Event) {
	space := e.P.(*host.AddressSpace)
	switch e.Kind {
	case kindBring:
		if p.broken != nil && p.broken(e.A) {
			p.marks[e.A>>12] = true
			return
		}
		if e, _ := p.tables[space].Find(e.A); e.Kind == smmu.Page {
			return // the page came because of another access
		}
		p.frames += 1 << 12
		p.tables[space].Map(e.A&^0xfff, 3, p.frames, true)
	case kindBind:
		if p.iommu.BankOf(space) >= 0 {
			return
		}
		victim := p.iommu.SMMU().Vacant()
		if victim < 0 {
			victim = p.iommu.Victim(2 * pause)
		}
		if victim < 0 {
			p.engine.Post(p.engine.Now()+pause, p.id, p.id, kindBind, 0, 0, space)
			return
		}
		p.iommu.Take(victim, space)
		p.taken++
	}
}

// Without an operating system all memory of a process is present. The SMMU
// costs a walk at the first access. Later accesses cost nothing and take no
// event.
func TestAnSMMUBeforeFlatTablesCostsItsWalks(t *testing.T) {
	times := func(on bool) (when []sim.Time, events uint64) {
		p := newPaged(t, 0)
		if !on {
			p.bus.Translate(nil)
		}
		space := host.NewAddressSpace(nil)
		addr := space.Alloc(3 * 4096)
		require.NoError(t, p.iommu.Admit(space, host.Flat{Space: space}))
		for i := range 4 {
			p.later(sim.Time(i)*10*sim.Microsecond, &use{kind: host.ToMemory, Access: host.Access{Space: space, Addr: addr + 64*uint64(i), Length: 64}})
		}
		far := p.later(50*sim.Microsecond, &use{kind: host.FromMemory, Access: host.Access{Space: space, Addr: addr + 8000, Length: 400}})
		require.NoError(t, p.engine.RunUntil(45*sim.Microsecond))
		events = p.engine.Handled()
		require.NoError(t, p.engine.Run())
		for _, u := range p.used {
			require.Len(t, u.when, 1)
			when = append(when, u.when[0])
		}
		require.Len(t, far.pieces, 1)
		return when, events
	}
	with, eventsWith := times(true)
	without, eventsWithout := times(false)
	cost := make([]sim.Time, len(with))
	for i := range with {
		cost[i] = with[i] - without[i]
	}
	// A cold walk of three levels; hits; the descriptors of the second and third
	// page by the walk cache, both at the same time.
	require.Equal(t, []sim.Time{600 * ns, 0, 0, 0, 220 * ns}, cost)
	require.Equal(t, uint64(5), eventsWith-eventsWithout, "one look-up in the second TLB, three descriptors, the answer; hits need none")
}

// Accesses outside all memory of a process are denied.
func TestBeyondFlatTablesAccessesAreDenied(t *testing.T) {
	for _, mode := range []string{"terminate", "stall"} {
		p := newPaged(t, 0, "on_fault="+mode)
		space := host.NewAddressSpace(nil)
		addr := space.Alloc(4096)
		require.NoError(t, p.iommu.Admit(space, host.Flat{Space: space}))
		beyond := p.later(0, &use{kind: host.ToMemory, Access: host.Access{Space: space, Addr: addr + 1<<30, Length: 8}})
		nobody := p.later(0, &use{kind: host.ToMemory, Access: host.Access{Space: host.NewAddressSpace(nil), Addr: addr, Length: 8}})
		inside := p.later(2*sim.Microsecond, &use{kind: host.ToMemory, Access: host.Access{Space: space, Addr: addr, Length: 8}})
		require.NoError(t, p.engine.Run())
		require.True(t, beyond.dropped)
		require.True(t, nobody.dropped)
		require.Len(t, inside.when, 1)
	}
	p := newPaged(t, 0, "banks=1")
	require.NoError(t, p.iommu.Admit(host.NewAddressSpace(nil), nil))
	require.EqualError(t, p.iommu.Admit(host.NewAddressSpace(nil), nil), "host: smmu.banks is 1: there is no bank for process 2 of the node, and no operating system (os.kind) that shares them")
}

// The SMMU refuses an access because its process has no bank, while others are
// ahead of it. If the process has a bank when the answer comes, the access is
// retried once. Five processes, three banks, one walk at a time (found by the
// test below, in one of 10,000 draws).
func TestABankThatComesBeforeTheRefusal(t *testing.T) {
	p := newPaged(t, 0, "banks=3", "hit_under_fault=false", "l1_entries=2", "l2_entries=4", "walk_cache=4", "walks=1", "stale=poison")
	p.iommu.Drive(p)
	p.tries = 1 << 20
	var spaces [5]*host.AddressSpace
	var addrs [5]uint64
	for i := range spaces {
		spaces[i], addrs[i] = p.process(t, 8*4096)
	}
	to, from := host.Direction(0), host.Direction(1)
	for _, a := range []struct {
		process, length int
		kind            host.Direction
		stream          bool
		offset          uint64
		at              sim.Time
	}{
		{0, 0, to, false, 0, 0},
		{2, 1, to, true, 0, 0},
		{2, 1, to, true, 4096, 1},
		{0, 0, to, false, 0, 0},
		{0, 0, to, false, 0, 0},
		{0, 0, to, false, 0, 0},
		{1, 1, to, false, 12288, 0},
		{0, 0, to, false, 0, 0},
		{0, 0, to, false, 0, 0},
		{0, 0, to, false, 0, 0},
		{0, 0, to, false, 0, 0},
		{0, 0, to, false, 0, 0},
		{0, 0, to, false, 0, 0},
		{0, 1, to, false, 0, 0},
		{2, 4078, to, false, 19, 31},
		{1, 6126, from, false, 2067, 0},
		{1, 3602, to, false, 495, 0},
		{2, 1, to, false, 0, 0},
		{3, 1, to, false, 0, 0},
		{4, 1, to, false, 0, 0},
	} {
		access := host.Access{Space: spaces[a.process], Addr: addrs[a.process] + a.offset, Length: a.length, Piece: 4096}
		p.later(a.at*ns, &use{kind: a.kind, stream: a.stream, Access: access})
	}
	require.NoError(t, p.engine.RunUntil(50*sim.Millisecond))
	for _, u := range p.used {
		require.False(t, u.dropped, "access %d", u.number)
		require.Len(t, u.pieces, 1, "access %d", u.number)
	}
}

// An access to absent memory ends with FAULT, and succeeds when the memory is
// present, for any absent pages and any number of banks and processes. Every
// access that the SMMU has admitted is Done.
func TestAbsentPagesAreBroughtUntilEveryAccessHasSucceeded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPaged(rt, sim.Time(rapid.IntRange(0, 5000).Draw(rt, "takes"))*ns,
			fmt.Sprintf("banks=%d", rapid.IntRange(1, 4).Draw(rt, "banks")),
			fmt.Sprintf("hit_under_fault=%t", rapid.Bool().Draw(rt, "HUPCF")),
			"l1_entries=2", "l2_entries=4", "walk_cache=4", fmt.Sprintf("walks=%d", rapid.IntRange(1, 4).Draw(rt, "walks")), "stale=poison")
		p.iommu.Drive(p)
		p.tries = 1 << 20
		const size = 8 * 4096
		type process struct {
			space *host.AddressSpace
			addr  uint64
		}
		var processes []process
		for range rapid.IntRange(1, 5).Draw(rt, "processes") {
			space, addr := p.process(rt, size)
			processes = append(processes, process{space, addr})
		}
		for range rapid.IntRange(1, 30).Draw(rt, "accesses") {
			c := processes[rapid.IntRange(0, len(processes)-1).Draw(rt, "process")]
			length := rapid.IntRange(0, 3*4096).Draw(rt, "length")
			u := &use{kind: host.Direction(rapid.IntRange(0, 1).Draw(rt, "direction")), stream: rapid.Bool().Draw(rt, "stream")}
			u.Access = host.Access{Space: c.space, Addr: c.addr + uint64(rapid.IntRange(0, size-length).Draw(rt, "offset")), Length: length, Piece: 4096}
			if u.stream && length == 0 {
				u.stream = false
			}
			p.later(sim.Time(rapid.IntRange(0, 20_000).Draw(rt, "at"))*ns, u)
		}
		require.NoError(rt, p.engine.RunUntil(50*sim.Millisecond))
		for _, u := range p.used {
			pieces := 1
			if u.stream {
				pieces = (u.Length + u.Piece - 1) / u.Piece
			}
			require.Len(rt, u.pieces, pieces, "access %d", u.number)
			require.False(rt, u.dropped)
		}
		for _, c := range processes {
			if bank := p.iommu.BankOf(c.space); bank >= 0 {
				require.Zero(rt, p.iommu.SMMU().Bank(bank).InFlight())
			}
		}
		stale, n := p.iommu.Stale()
		require.Zero(rt, n, "%v", stale)
	})
}

// If the driver reports that a page will not come, the access ends with DENIED,
// and others are served.
func TestPagesThatWillNotComeEndTheirAccess(t *testing.T) {
	p := newPaged(t, sim.Microsecond)
	p.iommu.Drive(p)
	p.tries = 1000
	space, addr := p.process(t, 4*4096)
	p.broken = func(a uint64) bool { return a>>12 == addr>>12+1 }
	bad := p.later(0, &use{kind: host.ToMemory, Access: host.Access{Space: space, Addr: addr + 4000, Length: 200}})
	good := p.later(0, &use{kind: host.ToMemory, Access: host.Access{Space: space, Addr: addr + 2*4096, Length: 200}})
	require.NoError(t, p.engine.Run())
	require.True(t, bad.dropped)
	require.Empty(t, bad.when)
	require.Len(t, good.when, 1)
}

// With SCTLR.CFRE 0 a device gets no fault: its reads return zeros, and its
// writes are lost (smmu.Ignored).
func TestIgnoredAccessesReadZerosAndWriteNothing(t *testing.T) {
	for _, kind := range []host.Direction{host.ToMemory, host.FromMemory, host.AtMemory} {
		for _, stream := range []bool{false, true} {
			if stream && kind != host.FromMemory {
				continue
			}
			p := newPaged(t, 0)
			space, addr := p.process(t, 8192)
			s, bank := p.iommu.SMMU(), p.iommu.BankOf(space)
			s.Write(bank, smmu.SCTLR, s.Bank(bank).Read(smmu.SCTLR)&^uint64(smmu.SCTLRCFRE))
			memory, ok := space.Bytes(addr, 8192)
			require.True(t, ok)
			for i := range memory {
				memory[i] = 7
			}
			c := &mover{space: space}
			a := &host.Access{Space: space, Addr: addr + 4000, Length: 200, Piece: 4096, Client: c}
			switch {
			case stream:
				p.bus.Stream(a)
			case kind == host.ToMemory:
				p.bus.Write(a)
			case kind == host.FromMemory:
				p.bus.Read(a)
			default:
				p.bus.Atomic(a)
			}
			require.NoError(t, p.engine.Run())
			require.Equal(t, 1, c.ended)
			require.Equal(t, make([]byte, 200), c.saw, "direction %d", kind)
			for i := range memory {
				require.Equal(t, byte(7), memory[i], "direction %d, byte %d", kind, i)
			}
		}
	}
}

// mover is a client that records what it reads from memory, and writes there.
type mover struct {
	space *host.AddressSpace
	saw   []byte
	ended int
}

func (m *mover) move(a *host.Access) {
	b, _ := m.space.Bytes(a.Addr, uint64(a.Length))
	m.saw = append(m.saw, b...)
	if a.Direction() != host.FromMemory {
		clear(b)
	}
}

func (m *mover) Reached(a *host.Access) { m.move(a) }
func (m *mover) Begun(*host.Access)     {}

func (m *mover) Ended(a *host.Access, _ int, s host.Status) {
	m.ended++
	if s == host.OK && a.Direction() != host.AtMemory {
		m.move(a)
	}
}

// An access that hits the first TLB allocates nothing. Nor does an access that
// walks, once as many have been in flight.
func TestAccessesBehindAnSMMUAllocateNothing(t *testing.T) {
	p := newPaged(t, 0, "l1_entries=1", "l2_entries=1", "l2_ways=1", "walk_cache=0")
	space := host.NewAddressSpace(nil)
	addr := space.Alloc(1 << 20)
	require.NoError(t, p.iommu.Admit(space, host.Flat{Space: space}))
	c := &counter{}
	write, stream := new(host.Access), new(host.Access)
	i := uint64(0)
	once := func() {
		i += 4096
		*write = host.Access{Space: space, Addr: addr + i%(1<<19), Length: 64, Client: c}
		*stream = host.Access{Space: space, Addr: addr + i%(1<<19), Length: 3 * 4096, Piece: 4096, Client: c}
		p.bus.Write(write)
		p.bus.Stream(stream)
		require.NoError(t, p.engine.RunUntil(p.engine.Now()+sim.Millisecond))
	}
	once()
	require.Zero(t, testing.AllocsPerRun(200, once))
	require.Equal(t, 4*202, c.ends)
	require.Positive(t, p.iommu.SMMU().Counters().Walks)
}

// counter is a client that counts ends.
type counter struct{ ends int }

func (c *counter) Reached(*host.Access) {}
func (c *counter) Begun(*host.Access)   {}

func (c *counter) Ended(*host.Access, int, host.Status) { c.ends++ }

// A missing invalidation is noticed: with poison the access is denied, and the
// IOMMU reports rank, address and both entries.
func TestAForgottenInvalidationIsSeen(t *testing.T) {
	for _, invalidate := range []bool{true, false} {
		p := newPaged(t, 0, "stale=poison")
		space, addr := p.process(t, 4096)
		p.tables[space].Map(addr&^0xfff, 3, 0x40000000, true)
		first := p.later(0, &use{kind: host.ToMemory, Access: host.Access{Space: space, Addr: addr, Length: 8}})
		second := p.later(2*sim.Microsecond, &use{kind: host.ToMemory, Access: host.Access{Space: space, Addr: addr, Length: 8}})
		require.NoError(t, p.engine.RunUntil(sim.Microsecond))
		p.tables[space].Map(addr&^0xfff, 3, 0x50000000, true)
		if invalidate {
			p.iommu.SMMU().Invalidate(p.iommu.BankOf(space), addr, true)
		}
		require.NoError(t, p.engine.Run())
		require.Len(t, first.when, 1)
		stale, n := p.iommu.Stale()
		require.Equal(t, invalidate, len(second.when) == 1)
		require.Equal(t, !invalidate, second.dropped)
		if !invalidate {
			require.Equal(t, 1, n)
			require.EqualError(t, stale[0], fmt.Sprintf("rank 0 at 2 µs: the SMMU used a stale translation of %#x of PDID 1 (bank 0): it had 0x40000000 (writable), the tables have 0x50000000 (writable); nobody has invalidated it", addr))
		}
	}
}

// A translator may use an IOMMU behind it. The IOMMU keeps an admitted access
// until Done, whether it was a hit or not.
func TestAnIOMMUBehindAnotherTranslator(t *testing.T) {
	p := newPaged(t, pause)
	space, addr := p.process(t, 2*4096)
	p.tables[space].Map(addr, 3, 1<<20, true)
	p.tables[space].Map(addr+4096, 3, 2<<20, true)
	r := &hosttest.Recorder{Engine: p.engine, Then: p.iommu}
	p.bus.Translate(r)
	c := &counter{}
	for range 3 {
		for _, x := range []struct {
			addr uint64
			n    int
		}{{addr, 64}, {addr + 4096 - 8, 64}} {
			p.bus.Write(&host.Access{Space: space, Addr: x.addr, Length: x.n, Client: c})
			p.bus.Read(&host.Access{Space: space, Addr: x.addr, Length: x.n, Client: c})
			p.bus.Stream(&host.Access{Space: space, Addr: x.addr, Length: x.n, Piece: 32, Client: c})
		}
		require.NoError(t, p.engine.RunUntil(p.engine.Now()+sim.Millisecond))
		require.Zero(t, p.iommu.SMMU().Bank(0).InFlight())
	}
	require.Equal(t, 3*2*4, c.ends)
	require.Len(t, r.Passed, c.ends)
	require.Positive(t, p.iommu.SMMU().Counters().L1Hits)
}
