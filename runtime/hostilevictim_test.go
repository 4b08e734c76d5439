package runtime_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The programs of a siege's victim: it and its sender check all that they see.

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
	module, err := k.actions()
	if err != nil {
		return nil, err
	}
	if spin, k.memory, err = scriptsOf(p, module, nil, []rec{end(hpu.Success)}, completion); err != nil {
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
	siegeMemory = append(siegeMemory[:0], k.memory.Bytes()...)
	k.before = siegeMemory
	return spin, nil
}

// siegeMemory is the memory of siege.before, for one run after the other.
var siegeMemory []byte

// siegeActions is testdata/actions for the devices of sieges, by what differs.
var siegeActions = map[string]*hpu.Module{}

func (k *siege) actions() (m *hpu.Module, err error) {
	h := &k.prof.HPU
	key := fmt.Sprint(k.prof.Name, h.Cores, h.Contexts, h.Clusters)
	if m = siegeActions[key]; m != nil {
		return m, nil
	}
	binary, err := readModule("actions/actions.wasm")
	if err != nil {
		return nil, err
	}
	m, err = k.c.LoadModule("actions", binary)
	siegeActions[key] = m
	return m, err
}

// checkMemory compares the victim's HPU memory after a round with what it must be.
func (k *siege) checkMemory(round int) error {
	now, want := k.memory.Bytes(), k.before
	copy(want[scratch-hpuBase:], k.message(round))
	binary.LittleEndian.PutUint64(want[scratch2-hpuBase:], k.count(round))
	results := func(at, lines int) error {
		for i := range lines {
			off := at - hpuBase + i*recordSize + 8
			if r := int64(binary.LittleEndian.Uint64(now[off:])); r < 0 {
				return fmt.Errorf("round %d: line %d of script %#x of the victim failed with %d", round, i, at, r)
			}
			copy(want[off:][:8], now[off:])
		}
		return nil
	}
	err := results(completionAt, 2)
	for packet := range k.packets {
		err = errors.Join(err, results(payloadAt+packet*scriptBytes, 5))
	}
	if err != nil || bytes.Equal(now, want) {
		return err
	}
	if i := firstDifference(now, want); i >= 0 {
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
		for round == aloneRounds && !k.besieged {
			p.Sleep(sim.Microsecond)
		}
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
	return nil
}

// scriptsOf is scripts with testdata/actions as it was loaded for the device.
func scriptsOf(p *runtime.Proc, module *hpu.Module, header, payload, completion []rec) (*portals.Spin, *nic.Memory, error) {
	memory, err := p.HPUAllocMem(module, hpuBytes)
	if err != nil {
		return nil, nil, err
	}
	names := [3]string{"header", "payload", "completion"}
	for i, s := range [][]rec{header, payload, completion} {
		if s == nil {
			names[i] = ""
		}
	}
	writeScripts(memory, p.Cluster().Profile(), header, completion, func(int) []rec { return payload })
	spin, err := memory.Spin(names[0], names[1], names[2])
	return spin, memory, err
}
