package smmu

// lines are the interrupt lines of the banks.
type lines struct {
	to     Interrupts
	rising []*Bank // Interrupts have not been told
	count  uint64  // told
}

// tell reports the lines that have risen. A report may lower lines, or raise
// others.
func (l *lines) tell() {
	for len(l.rising) > 0 {
		b := l.rising[0]
		l.rising = append(l.rising[:0], l.rising[1:]...)
		if b.asserted {
			l.count++
			l.to.Interrupt(int(b.index))
		}
	}
}

// changed updates the bank after a change that decides how transactions go on.
func (s *SMMU) changed(b *Bank) {
	s.l1.forget()
	b.plain = b.tables != nil && b.sctlr&SCTLRM != 0 && !b.blocked()
	up := b.fsr != 0 && b.sctlr&SCTLRCFIE != 0
	if up && !b.asserted {
		s.lines.rising = append(s.lines.rising, b)
	}
	b.asserted = up
}

// record notes a fault of a bank, and returns the result for the device.
func (s *SMMU) record(b *Bank, r *Request, va uint64, level int, kind Result) Result {
	first := b.record(r, va, level, kind)
	if kind == Permission {
		s.count.PermissionFaults++
	} else {
		s.count.Faults++
	}
	if first {
		s.count.Recorded++
	}
	s.changed(b)
	if s.watch != nil {
		s.watch.Faulted(FaultInfo{Bank: int(r.bank), PDID: r.PDID, Flow: r.Flow, Addr: va, Write: r.Write, Level: level, Kind: kind, Recorded: first, At: s.engine.Now()})
	}
	return b.report(kind)
}

// hold stalls a slot until the driver decides how it continues.
func (s *SMMU) hold(i int32, b *Bank, reason why) {
	s.count.Stalled++
	t := &s.slots.all[i]
	t.from, t.why = s.engine.Now(), reason
	s.slots.append(&b.held, i)
}

// wakeLater wakes the slots of a bank in an event of its own, because the
// driver may be in the middle of something.
func (s *SMMU) wakeLater(b *Bank) {
	if !b.waking && b.held.first >= 0 {
		b.waking = true
		s.engine.Post(s.engine.Now(), s.id, s.id, kindWake, uint64(b.index), 0, nil)
	}
}

// wake continues slots that a bank holds: slots that the driver has resumed, and
// the others if no fault blocks them.
func (s *SMMU) wake(bank int) {
	b := &s.banks[bank]
	held := b.held
	b.waking, b.held = false, none
	for held.first >= 0 {
		i := s.slots.pop(&held)
		t := &s.slots.all[i]
		old := t.gen != b.gen
		if !old && (t.why == faulted || t.why == behind && b.blocked()) {
			s.slots.append(&b.held, i)
			continue
		}
		if s.watch != nil {
			s.watch.Stalled(StallInfo{Bank: bank, PDID: t.r.PDID, Flow: t.r.Flow, Addr: t.va, From: t.from, To: s.engine.Now()})
		}
		switch {
		case old:
			s.finish(i, Denied)
		case t.why == ending:
			s.finish(i, b.terminate())
		default:
			s.enter(i)
		}
	}
}
