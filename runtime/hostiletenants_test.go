package runtime_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var (
	tenantsSeed = flag.Uint64("tenants.seed", 1, "seed of TestHostileTenants")
	tenantsFrom = flag.Int("tenants.from", 0, "the first of its runs")
	tenantsRuns = flag.Int("tenants.runs", 30, "how many of its runs; the promise is a million")
)

// The victim is a process of rank 0. Its handlers copy each packet to host memory
// and count; at a message's end they send the count, and the message's first bytes,
// to the sender on rank 1, and so does the program when it has checked all bytes.
// One or two villains are processes of rank 0, too: rank 2 sends to them.
const (
	victimUID    = 1
	victimMTU    = 256
	victimRounds = 6
	villainRound = 40
	replyBytes   = 64
)

// siege is a run.
type siege struct {
	*rand.Rand
	run     uint64
	prof    *profile.Profile
	c       *runtime.Cluster
	secret  [8]byte
	packets int // of a message of the victim
	slow    bool
	endless bool // sources of villains
	flow    portals.PTOptions

	memory   *nic.Memory
	host     runtime.View
	before   []byte // the victim's HPU memory
	inbox    runtime.View
	took     []sim.Time
	done     bool
	villains []*nic.Memory
	loot     []runtime.View // all host memory that villains can write
}

// newSiege begins a run. villains: 0 is the victim alone.
func newSiege(t *testing.T, seed uint64, run, villains int) *siege {
	k := drawSiege(t, seed, run)
	k.start(t, villains, k.victim, k.sender)
	return k
}

// drawSiege draws a device and tenants.
func drawSiege(t *testing.T, seed uint64, run int) *siege {
	k := &siege{Rand: rand.New(rand.NewPCG(seed, uint64(run))), run: uint64(run)}
	p, err := profile.Load([]string{"pspin", "spin-int", "exanest"}[k.IntN(3)])
	require.NoError(t, err)
	device := *p
	h := &device.HPU
	n := 1 + k.IntN(2)
	h.Clusters, h.Home, h.ClusterTasks = 1, "", 0
	h.Cores, h.Contexts = 1+k.IntN(4), 1+k.IntN(3)
	if h.Cores%2 == 0 && k.IntN(2) == 0 {
		h.Clusters, h.Home = 2, nic.HomeMessage
	} else {
		h.Copy = sim.Rate{}
	}
	slots := h.Cores * h.Contexts
	if h.Home != "" {
		slots = h.Cores
	}
	if slots == 1 {
		h.Contexts, slots = 2, 2
	}
	n = min(n, slots-1)
	h.Arbiter = nic.Arbiters()[1+k.IntN(3)]
	h.Fragment = []sim.Size{0, 64, 256}[k.IntN(3)]
	h.MaxCycles, h.MaxCyclesPerByte = 20_000, 0
	h.WaitingHandlers, h.DMABytes, h.DMAHandles, h.NodeMemory = 64, 64<<10, 4, 4<<20
	device.Fabric.MTU, device.NIC.PacketBuffer, device.NIC.HandlerCommands = victimMTU, 16<<10, 16
	device.NIC.EgressPackets = []int{2, 16, 1 << 20}[k.IntN(3)]
	device.Tenants = nic.Tenants{"victim": {UID: victimUID, Weight: 1 + k.IntN(4)}}
	for i := range n {
		has := 1 + k.IntN((slots-1)/n)
		device.Tenants[fmt.Sprintf("villain%d", i)] = nic.Tenant{
			UID: uint32(2 + i), Weight: 1 + k.IntN(4), Handlers: has, MaxCycles: int64(2000 + k.IntN(10_000)), WaitingHandlers: 1 + k.IntN(12),
			PacketBuffer: sim.Size(1+k.IntN(12)) * victimMTU, DMABytes: sim.Size(1 + k.IntN(8192)), HandlerCommands: 1 + k.IntN(6), NodeMemory: 1 << 18,
		}
	}
	binary.LittleEndian.PutUint64(k.secret[:], k.Uint64())
	k.packets, k.slow, k.prof = 1+k.IntN(8), k.IntN(2) == 0, &device
	if k.IntN(2) == 0 {
		k.flow = portals.OptPTFlowCtrl
	}
	return k
}

// start begins a run with programs for the victim and its sender.
func (k *siege) start(t *testing.T, villains int, victim, sender func(p *runtime.Proc) error) {
	var err error
	k.c, err = runtime.NewCluster(runtime.Config{Profile: k.prof, Nodes: 4, Engine: labEngine, Limits: sim.Limits{Events: 1_000_000}})
	require.NoError(t, err)
	require.NoError(t, k.c.Spawn(0, "victim", victim))
	require.NoError(t, k.c.Spawn(1, "sender", sender))
	for i := range min(villains, len(k.prof.Tenants)-1) {
		code := &villain{Rand: rand.New(rand.NewPCG(k.Uint64(), k.run))}
		require.NoError(t, k.c.SpawnService(0, fmt.Sprint("villain", i), func(p *runtime.Proc) error { return k.villain(p, code, uint32(2+i)) }))
		require.NoError(t, k.c.SpawnService(2, fmt.Sprint("source", i), func(p *runtime.Proc) error { return k.source(p, code.Rand, uint32(i)) }))
	}
}

// message is the bytes of a message of the victim: the secret, and where they are.
func (k *siege) message(round int) (b []byte) {
	for at := range k.packets * victimMTU / 16 {
		b = append(b, k.secret[:]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(round<<32|at))
	}
	return b
}

// count is what the victim's handlers have counted after a round.
func (k *siege) count(round int) uint64 {
	return uint64((round + 1) * k.packets * (k.packets + 1) / 2)
}

func (k *siege) victim(p *runtime.Proc) error {
	p.SetUID(victimUID)
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(256)
	if err != nil {
		return err
	}
	if _, err := ni.Objects().PTAlloc(k.flow, eq, 0); err != nil {
		return err
	}
	spin, err := k.handlers(p)
	if err != nil {
		return err
	}
	k.host = p.Alloc(k.packets * victimMTU)
	if _, err := ni.MEAppend(0, &portals.ME{
		Start: k.host.Addr(), Length: uint64(k.host.Len()), UID: victimUID, MatchID: portals.AnyID, MatchBits: 5, Spin: spin,
		Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0); err != nil {
		return err
	}
	reply := p.Alloc(8)
	md, err := ni.Objects().MDBind(&portals.MD{Start: reply.Addr(), Length: 8, EQ: portals.EQNone})
	if err != nil {
		return err
	}
	for round := range victimRounds {
		ev, err := ni.EQWait(eq)
		if err != nil {
			return err
		}
		if ev.Type != portals.EventPut || ev.Fail != portals.NIOK {
			return fmt.Errorf("round %d: event %+v", round, ev)
		}
		if !bytes.Equal(k.host.Read(), k.message(round)) {
			return fmt.Errorf("round %d: wrong bytes in host memory", round)
		}
		if err := k.checkMemory(round); err != nil {
			return err
		}
		if err := ni.Put(portals.Put{MD: md, Length: 8, Target: portals.PhysID(1, 0), RemoteOffset: 2 * replyBytes}); err != nil {
			return err
		}
	}
	return nil
}

// handlers are the victim's.
func (k *siege) handlers(p *runtime.Proc) (spin *portals.Spin, err error) {
	completion := []rec{do(hpu.OpPutFromDevice, opAt(0)), do(hpu.OpPutFromHost, opAt(1)), end(hpu.Success)}
	if spin, k.memory, err = scripts(p, nil, []rec{end(hpu.Success)}, completion); err != nil {
		return nil, err
	}
	writeScripts(k.memory, k.prof, nil, completion, func(packet int) []rec {
		at, off := uint64(scratch+packet*victimMTU), uint64(packet*victimMTU)
		s := []rec{also(opPayload, at, 0, victimMTU)}
		if k.slow {
			s = append(s, do(hpu.OpDMAToHostNB, 0, off, at, victimMTU), do(hpu.OpDMAWait, 0))
		} else {
			s = append(s, do(hpu.OpDMAToHost, 0, off, at, victimMTU))
		}
		return append(s, do(hpu.OpFAdd, scratch2, uint64(packet+1)), end(hpu.Success))
	})
	for i, d := range []hpu.Operation{
		{Local: scratch2, Length: 8, TargetNID: 1}, {Length: replyBytes, TargetNID: 1, RemoteOffset: replyBytes},
	} {
		writeOperation(k.memory.Bytes()[opAt(i)-hpuBase:], &d)
	}
	k.before = bytes.Clone(k.memory.Bytes())
	return spin, nil
}

// checkMemory compares the victim's HPU memory after a round with what it must be.
func (k *siege) checkMemory(round int) error {
	now, want := bytes.Clone(k.memory.Bytes()), bytes.Clone(k.before)
	copy(want[scratch-hpuBase:], k.message(round))
	binary.LittleEndian.PutUint64(want[scratch2-hpuBase:], k.count(round))
	results := func(at, lines int) error {
		for i := range lines {
			b := now[at-hpuBase+i*recordSize+8:][:8]
			if r := int64(binary.LittleEndian.Uint64(b)); r < 0 {
				return fmt.Errorf("round %d: line %d of script %#x of the victim failed with %d", round, i, at, r)
			}
			clear(b)
		}
		return nil
	}
	err := results(completionAt, 2)
	for packet := range k.packets {
		err = errors.Join(err, results(payloadAt+packet*scriptBytes, 5))
	}
	if i := firstDifference(now, want); err == nil && i >= 0 {
		return fmt.Errorf("round %d: the victim's HPU memory has %#x at %#x, expected %#x", round, now[i], hpuBase+i, want[i])
	}
	return err
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// sender sends to the victim and waits for its three answers, which it checks.
func (k *siege) sender(p *runtime.Proc) error {
	p.SetUID(victimUID)
	ni := p.NI()
	ct, err := ni.Objects().CTAlloc()
	if err != nil {
		return err
	}
	if _, err := ni.Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
		return err
	}
	k.inbox = p.Alloc(3 * replyBytes)
	if _, err := ni.MEAppend(0, &portals.ME{
		Start: k.inbox.Addr(), Length: uint64(k.inbox.Len()), UID: victimUID, MatchID: portals.AnyID, IgnoreBits: portals.SizeMax, CT: ct,
		Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable | portals.OptMEEventCTComm,
	}, portals.PriorityList, 0); err != nil {
		return err
	}
	data := p.Alloc(k.packets * victimMTU)
	md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: uint64(data.Len()), EQ: portals.EQNone})
	if err != nil {
		return err
	}
	p.Sleep(sim.Microsecond) // the entries are there
	for round := range victimRounds {
		data.CopyFrom(k.message(round))
		began := p.Now()
		if err := ni.Put(portals.Put{MD: md, Length: uint64(data.Len()), Ack: portals.NoAck, Target: portals.PhysID(0, 0), MatchBits: 5}); err != nil {
			return err
		}
		if _, err := ni.CTWait(ct, uint64(3*round+3)); err != nil {
			return err
		}
		k.took = append(k.took, p.Now()-began)
		b := k.inbox.Read()
		if got := binary.LittleEndian.Uint64(b); got != k.count(round) {
			return fmt.Errorf("round %d: the victim's handlers count %d, expected %d", round, got, k.count(round))
		}
		if !bytes.Equal(b[replyBytes:2*replyBytes], k.message(round)[:replyBytes]) {
			return fmt.Errorf("round %d: the victim's handlers sent wrong bytes", round)
		}
	}
	k.done = true
	return nil
}

// villain installs a hostile module.
func (k *siege) villain(p *runtime.Proc, g *villain, uid uint32) error {
	p.SetUID(uid)
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(64)
	if err != nil {
		return err
	}
	options := portals.PTOptions(0)
	if g.IntN(2) == 0 {
		options = portals.OptPTFlowCtrl
	}
	if _, err := ni.Objects().PTAlloc(options, eq, 0); err != nil {
		return err
	}
	ct, err := ni.Objects().CTAlloc()
	if err != nil {
		return err
	}
	host, extra := p.Alloc(hostBytes), p.Alloc(extraBytes)
	k.loot = append(k.loot, host, extra)
	g.victims = []uint64{uint64(ct), uint64(eq), k.host.Addr(), k.host.Addr() - host.Addr(), k.host.Addr() - extra.Addr(), scratch, scratch2, completionAt + 16}
	module, err := k.c.LoadModule(fmt.Sprint("villain", uid), g.module())
	if err != nil {
		return err
	}
	memory, err := p.HPUAllocMem(module, hpuBytes)
	if err != nil {
		return err
	}
	k.villains = append(k.villains, memory)
	for i := range villainOps {
		d := g.record()
		writeOperation(memory.Bytes()[opAt(i)-hpuBase:], &d)
	}
	names := [3]string{"header", "payload", "completion"}
	for i, without := 0, g.IntN(7); i < 3; i++ {
		if without>>i&1 != 0 {
			names[i] = ""
		}
	}
	spin, err := memory.Spin(names[0], names[1], names[2])
	if err != nil {
		return err
	}
	spin.HostMem = portals.Region{Start: extra.Addr(), Length: extraBytes}
	if _, err := ni.MEAppend(0, &portals.ME{
		Start: host.Addr(), Length: hostBytes, UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: portals.SizeMax, Spin: spin,
		Options: portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0); err != nil {
		return err
	}
	return enable(ni, eq)
}

// enable enables a villain's entry again, whatever has disabled it, until the end of
// the run.
func enable(ni *runtime.NI, eq portals.Handle) error {
	for {
		ev, err := ni.EQWait(eq)
		if err == nil && ev.Type == portals.EventPTDisabled {
			err = ni.Objects().PTEnable(0)
		}
		if err != nil && !errors.Is(err, portals.ErrEQDropped) {
			return err
		}
	}
}

// source sends to a villain without end of patience, and takes what villains send.
func (k *siege) source(p *runtime.Proc, g *rand.Rand, number uint32) error {
	p.SetUID(2 + number)
	ni := p.NI()
	if _, err := ni.Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
		return err
	}
	inbox := p.Alloc(hostBytes)
	k.loot = append(k.loot, inbox)
	if _, err := ni.MEAppend(0, &portals.ME{
		Start: inbox.Addr(), Length: hostBytes, UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: portals.SizeMax,
		Options: portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0); err != nil {
		return err
	}
	data := p.Alloc(8 * victimMTU)
	md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: uint64(data.Len()), EQ: portals.EQNone})
	if err != nil {
		return err
	}
	p.Sleep(sim.Microsecond)
	most := 1 + g.IntN(2000)
	for round := 0; k.endless || round < villainRound; round++ {
		if err := ni.Put(portals.Put{MD: md, Length: uint64(g.IntN(data.Len() + 1)), Target: portals.PhysID(0, 1+number)}); err != nil {
			return err
		}
		p.Sleep(max(1, sim.Time(g.IntN(most))) * sim.Nanosecond)
	}
	return nil
}

// play runs until the victim has had its messages, or a time has come.
func (k *siege) play(until sim.Time) error {
	for at := sim.Time(0); !k.done; {
		if at += 5 * sim.Microsecond; at > until {
			return fmt.Errorf("the victim has had %d of %d messages after %v", len(k.took), victimRounds, until)
		}
		if err := k.c.RunUntil(at); err != nil {
			return err
		}
	}
	return nil
}

// bound is how long a message of the victim may take: eight times as long as alone,
// and for each of its handlers the time of the handlers of others that may go first.
func (k *siege) bound(alone sim.Time) sim.Time {
	longest, heavier := int64(0), 0
	victim := k.prof.Tenants["victim"].Weight
	for name, o := range k.prof.Tenants {
		if name != "victim" {
			longest, heavier = max(longest, o.MaxCycles), heavier+1+(o.Weight+victim-1)/victim
		}
	}
	return 8*alone + sim.Time((k.packets+2)*heavier*k.prof.HPU.Contexts)*k.prof.HPU.Time(longest)
}

// besiege is a run of the test: the victim alone, and beside the villains.
func besiege(t *testing.T, seed uint64, run int) error {
	alone := newSiege(t, seed, run, 0)
	defer func() { require.NoError(t, alone.c.Close()) }()
	if err := alone.play(sim.Millisecond); err != nil {
		return fmt.Errorf("alone: %w", err)
	}
	k := newSiege(t, seed, run, 2)
	defer func() { require.NoError(t, k.c.Close()) }()
	bound := k.bound(slices.Max(alone.took))
	if err := k.play(victimRounds * bound); err != nil {
		return err
	}
	for round, took := range k.took {
		if took > bound {
			return fmt.Errorf("round %d took %v, alone %v, expected at most %v", round, took, slices.Max(alone.took), bound)
		}
	}
	if err := k.c.RunUntil(k.c.Engine().Now() + 20*sim.Microsecond); err != nil {
		return err
	}
	if !bytes.Equal(k.host.Snapshot(), k.message(victimRounds-1)) {
		return errors.New("the victim's host memory has changed behind its last message")
	}
	if err := k.checkMemory(victimRounds - 1); err != nil {
		return fmt.Errorf("later: %w", err)
	}
	return k.read()
}

// read looks for the victim's bytes where villains could have brought them.
func (k *siege) read() error {
	for i, m := range k.villains {
		if at := bytes.Index(m.Program().Present(), k.secret[:]); at >= 0 {
			return fmt.Errorf("villain %d has the victim's secret in its HPU memory, at %#x", i, at)
		}
	}
	for i, v := range k.loot {
		if at := bytes.Index(v.Snapshot(), k.secret[:]); at >= 0 {
			return fmt.Errorf("villains have the victim's secret in memory %d, at %#x", i, at)
		}
	}
	return nil
}

// breaches are runs, by seed, that have found a hole.
var breaches = [][2]int{
	{4, 6416}, // 60 KB of a put from host memory were on the wire before a victim's packet
	{2, 57},   // a message that matched nothing disabled the victim's portal table entry
	{1, 236},  // timers of 5 ns kept the bus busy with records of messages to self
}

// Hostile modules of other tenants of a device read no byte of a victim, change none,
// lose none, and delay it by their own handlers' time at most.
func TestHostileTenants(t *testing.T) {
	for _, b := range breaches {
		require.NoError(t, besiege(t, uint64(b[0]), b[1]), b)
	}
	for run := *tenantsFrom; run < *tenantsFrom+*tenantsRuns; run++ {
		if err := besiege(t, *tenantsSeed, run); err != nil {
			t.Errorf("-tenants.seed=%d -tenants.from=%d -tenants.runs=1: %v", *tenantsSeed, run, err)
		}
	}
}
