package host

import (
	"errors"
	"slices"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/smmu"
)

// SMMUDriver is the kernel's driver of an IOMMU. It assigns banks to processes,
// reports changes of their tables to the SMMU, and serves its faults. A
// FaultHandler decides what to do about a fault.
type SMMUDriver struct {
	kernel  *Kernel
	iommu   *IOMMU
	spec    *OSSpec
	handler FaultHandler
	pageIn  pageIn
	early   bool // clear FSR before the page is present
	line    *IRQ // shared by all banks
	risen   []int
	unbound []*AddressSpace // processes that wait for a bank, in order of arrival
	binder  *Tasklet
	refused map[refusal]struct{}
	stats   DriverStats
}

// DriverStats counts the work of a driver.
type DriverStats struct {
	Faults        int64 // recorded by the SMMU and served; others had the same cause, or recur
	Multiple      int64 // faults with FSR.MULTI: more faults came
	Unresolvable  int64
	Invalidations int64 // ranges
	Rebound       int64 // banks taken from another process
}

// DeviceFault is a fault of a device, read from the registers of its bank (T
// §3.2.1).
type DeviceFault struct {
	Process    *Process
	Bank       int
	Addr       uint64 // FAR: exact address of the access
	Write      bool   // FSYNR.WNR
	Permission bool   // FSR.PF: the page is present but not writable
	Multiple   bool   // FSR.MULTI: more faults came since
	Stalled    bool   // FSR.SS: the access waits for Resolved or Refuse
	Flow       uint64 // of the access, for timelines
}

// FaultHandler handles the faults of a node's devices. The driver's interrupt
// handler calls it, so it must not wait: it schedules a tasklet.
type FaultHandler interface {
	Fault(t *Thread, f DeviceFault)
}

// refusal is a page that a process cannot have.
type refusal struct {
	space *AddressSpace
	page  uint64
	write bool
}

// NewSMMUDriver makes a kernel serve an IOMMU. Until Serve is called, a fault
// brings in the page in the registers and no other. FSR is cleared when the
// page is present. Otherwise a NIC that retries on its own would interrupt the
// core endlessly.
func NewSMMUDriver(k *Kernel, m *IOMMU) *SMMUDriver {
	d := &SMMUDriver{kernel: k, iommu: m, spec: k.spec, refused: map[refusal]struct{}{}}
	d.line = k.cpu.RequestIRQ(k.spec.InterruptCore, "SMMU", d.contextFaults)
	d.binder = k.cpu.NewTasklet("SMMU banks", d.bind)
	d.pageIn.driver = d
	d.handler = &d.pageIn
	m.Drive(d)
	return d
}

// Serve makes h handle the faults of devices. OSSpec.ClearFault selects when
// FSR is cleared.
func (d *SMMUDriver) Serve(h FaultHandler) { d.handler, d.early = h, d.spec.ClearFault == ClearEarly }

// PageIn is for a FaultHandler that does not want a fault: it brings in the
// page, as on a node without a FaultHandler.
func (d *SMMUDriver) PageIn(t *Thread, f DeviceFault) { d.pageIn.Fault(t, f) }

// Stats returns the driver's counts.
func (d *SMMUDriver) Stats() DriverStats { return d.stats }

// Admit gives devices access to the memory of a process.
func (d *SMMUDriver) Admit(p *Process) error {
	if err := d.iommu.Admit(p.space, p.Tables()); err != nil {
		return err
	}
	p.Tables().Register(&watch{driver: d, space: p.space})
	return nil
}

// Interrupt implements IOMMUDriver.
func (d *SMMUDriver) Interrupt(bank int) {
	d.risen = append(d.risen, bank)
	d.line.Raise()
}

// contextFaults is the interrupt handler. It reads the registers of each bank
// with a fault and clears FSR, as the Linux driver does
// (arm_smmu_context_fault).
func (d *SMMUDriver) contextFaults(t *Thread) {
	s := &d.iommu.smmu
	if len(d.risen) > 0 {
		t.Follow(s.Bank(d.risen[0]).Flow())
	}
	d.kernel.cpu.Use(used.SMMUInterrupt)
	t.Run(d.spec.FaultInterrupt, "SMMU fault")
	for len(d.risen) > 0 {
		bank := d.risen[0]
		d.risen = append(d.risen[:0], d.risen[1:]...)
		fsr := uint32(s.Bank(bank).Read(smmu.FSR))
		space := d.iommu.banks[bank]
		if fsr == 0 || space == nil {
			continue
		}
		f := DeviceFault{
			Process: space.process, Bank: bank, Addr: s.Bank(bank).Read(smmu.FAR), Write: s.Bank(bank).Read(smmu.FSYNR)&uint64(smmu.FSYNRWNR) != 0,
			Permission: fsr&smmu.FSRPF != 0, Multiple: fsr&smmu.FSRMULTI != 0, Stalled: fsr&smmu.FSRSS != 0,
			Flow: s.Bank(bank).Flow(),
		}
		d.stats.Faults++
		if f.Multiple {
			d.stats.Multiple++
		}
		if d.early {
			d.Clear(bank)
		}
		d.handler.Fault(t, f)
	}
}

// Clear clears FSR of a bank. With HUPCF 0 the bank processes its other
// accesses from then on.
func (d *SMMUDriver) Clear(bank int) {
	s := &d.iommu.smmu
	s.Write(bank, smmu.FSR, s.Bank(bank).Read(smmu.FSR))
}

// Resolved reports that the page of a fault is present: the bank retries
// stalled accesses.
func (d *SMMUDriver) Resolved(f *DeviceFault) { d.resume(f, 0) }

// Refuse reports that the page of a fault will not come. The access ends with
// DENIED: at once if it is stalled, else at its next try.
func (d *SMMUDriver) Refuse(f *DeviceFault) {
	d.Deny(f.Process, f.Addr, f.Write)
	d.resume(f, 1)
}

// Deny makes accesses to a page that a process cannot have end with DENIED,
// until it may have the page.
func (d *SMMUDriver) Deny(p *Process, addr uint64, write bool) {
	d.stats.Unresolvable++
	d.refused[refusal{p.space, pageOf(addr), write}] = struct{}{}
}

func (d *SMMUDriver) resume(f *DeviceFault, how uint64) {
	if d.iommu.banks[f.Bank] != f.Process.space {
		return // another process has the bank now
	}
	// while an access is stalled (FSR.SS), further faults only set FSR.MULTI, and
	// retry with it
	if !d.early || f.Stalled {
		d.Clear(f.Bank)
	}
	s := &d.iommu.smmu
	if f.Stalled || uint32(s.Bank(f.Bank).Read(smmu.FSR))&smmu.FSRSS != 0 {
		s.Write(f.Bank, smmu.RESUME, how)
	}
}

// Unresolvable implements IOMMUDriver. A refusal holds until the process may
// have the page.
func (d *SMMUDriver) Unresolvable(space *AddressSpace, addr uint64, write bool) bool {
	r := refusal{space, pageOf(addr), write}
	if _, known := d.refused[r]; !known {
		return false
	}
	if m := space.process.pager.mappings.find(addr); m != nil && m.allows(write) {
		delete(d.refused, r)
		return false
	}
	return true
}

// Unbound implements IOMMUDriver.
func (d *SMMUDriver) Unbound(space *AddressSpace) {
	if slices.Contains(d.unbound, space) {
		return
	}
	d.unbound = append(d.unbound, space)
	d.kernel.cpu.Use(used.BankHold)
	d.binder.Schedule(d.spec.InterruptCore)
}

// bind is the tasklet that gives banks to processes without one. It takes them
// from the processes that have been idle for longest (ours: T and P have no
// more processes than banks).
func (d *SMMUDriver) bind(t *Thread) {
	for len(d.unbound) > 0 {
		bank := d.iommu.smmu.Vacant()
		if bank < 0 {
			bank = d.iommu.Victim(d.spec.BankHold)
		}
		if bank < 0 {
			t.WaitUntil("a bank of the SMMU", t.Now()+d.spec.BankHold)
			continue
		}
		space := d.unbound[0]
		d.unbound = append(d.unbound[:0], d.unbound[1:]...)
		d.iommu.Take(bank, space)
		d.stats.Rebound++
		run(t, d.spec.Invalidate+d.spec.Acknowledge, "SMMU bank")
	}
}

// pageIn is the default FaultHandler: it brings in the page in the registers.
type pageIn struct {
	driver *SMMUDriver
	queue  []DeviceFault
	work   *Tasklet
}

// Fault implements FaultHandler.
func (h *pageIn) Fault(t *Thread, f DeviceFault) {
	if h.work == nil {
		h.work = t.CPU().NewTasklet("SMMU page-in", h.serve)
	}
	h.queue = append(h.queue, f)
	h.work.Schedule(t.Core())
}

func (h *pageIn) serve(t *Thread) {
	var pin Pin
	h.driver.kernel.cpu.Use(used.SMMUServed)
	for left := h.driver.spec.Batch(); len(h.queue) > 0; left-- {
		if left == 0 {
			h.work.Schedule(t.Core())
			return
		}
		f := h.queue[0]
		h.queue = append(h.queue[:0], h.queue[1:]...)
		t.Follow(f.Flow)
		err := f.Process.GetUserPages(t, pageOf(f.Addr), PageBytes, f.Write, &pin)
		if err == nil || errors.Is(err, ErrNoMemory) { // memory may be free when the device asks again
			h.driver.Resolved(&f)
		} else {
			h.driver.Refuse(&f)
		}
		pin.Put(t)
	}
}

// watch is the Notifier of a process: it keeps the SMMU from using old
// translations.
type watch struct {
	driver *SMMUDriver
	space  *AddressSpace
}

// InvalidateRange implements Notifier. For a range with more pages than the
// first TLB has entries, it invalidates the whole bank instead of sending one
// command per page.
func (w *watch) InvalidateRange(start, end uint64, tables bool) {
	d := w.driver
	bank := d.iommu.BankOf(w.space)
	if bank < 0 {
		return // a process that gets a bank is invalidated then
	}
	d.stats.Invalidations++
	d.kernel.cpu.Use(used.Invalidation)
	s := &d.iommu.smmu
	if (end-start)/PageBytes > uint64(d.spec.InvalidatePages) {
		s.InvalidateBank(bank)
		return
	}
	for va := pageOf(start); va < end; va += PageBytes {
		s.Invalidate(bank, va, !tables)
	}
}

// Sync implements Notifier.
func (w *watch) Sync(t *Thread) {
	d := w.driver
	bank := d.iommu.BankOf(w.space)
	if bank < 0 {
		return // no access was in flight when the bank was taken
	}
	y := &smmu.Sync{Client: synced{}, Ref: t}
	if d.iommu.smmu.Bank(bank).Sync(y) {
		return
	}
	for y.Ref != nil {
		t.Wait("accesses of devices")
	}
}

// synced is the client of a Sync. Its Ref is the waiting thread.
type synced struct{}

// Synced implements smmu.SyncClient.
func (synced) Synced(y *smmu.Sync) {
	t := y.Ref.(*Thread)
	y.Ref = nil
	t.Wake()
}
