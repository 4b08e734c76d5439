package smmu_test

import (
	"strings"

	"github.com/spinsim/spinsim/internal/script"
	"github.com/spinsim/spinsim/smmu"
)

// bit is a bit of a register with a name.
type bit struct {
	name string
	mask uint32
}

var (
	sctlrBits = []bit{
		{"M", smmu.SCTLRM},
		{"TRE", smmu.SCTLRTRE},
		{"AFE", smmu.SCTLRAFE},
		{"CFRE", smmu.SCTLRCFRE},
		{"CFIE", smmu.SCTLRCFIE},
		{"CFCFG", smmu.SCTLRCFCFG},
		{"HUPCF", smmu.SCTLRHUPCF},
	}
	fsrBits = []bit{{"TF", smmu.FSRTF}, {"PF", smmu.FSRPF}, {"SS", smmu.FSRSS}, {"MULTI", smmu.FSRMULTI}}
)

var readable = map[string]smmu.Register{
	"SCTLR": smmu.SCTLR, "FSR": smmu.FSR, "FAR": smmu.FAR, "FAR_HIGH": smmu.FARHigh, "FSYNR": smmu.FSYNR, "TLBSTATUS": smmu.TLBSTATUS,
}

var writable = map[string]smmu.Register{
	"SCTLR": smmu.SCTLR, "FSR": smmu.FSR, "RESUME": smmu.RESUME, "TLBIVA": smmu.TLBIVA, "TLBIVAL": smmu.TLBIVAL, "TLBIASID": smmu.TLBIASID,
	"TLBSYNC": smmu.TLBSYNC,
}

// named is the bits of a register that are 1, by name.
func named(bits []bit, v uint64) string {
	var names []string
	for _, b := range bits {
		if uint32(v)&b.mask != 0 {
			names = append(names, b.name)
		}
	}
	if names == nil {
		return "0"
	}
	return strings.Join(names, "|")
}

func cmdGet(w *scriptWorld, c *command) error {
	bank, err := c.bank(w, c.Pos[0])
	if err != nil {
		return err
	}
	for _, name := range c.Pos[1:] {
		reg, known := readable[name]
		if !known {
			return c.Errorf("register %q, expected one of %s", name, words(readable))
		}
		switch v := w.node.SMMU.Bank(bank).Read(reg); reg {
		case smmu.SCTLR:
			w.printf("SCTLR %s", named(sctlrBits, v))
		case smmu.FSR:
			w.printf("FSR %s", named(fsrBits, v))
		case smmu.FSYNR:
			w.printf("FSYNR %s, level %d", named([]bit{{"WNR", smmu.FSYNRWNR}}, v), uint32(v)&smmu.FSYNRPLVL)
		default:
			w.printf("%s %#x", name, v)
		}
	}
	return nil
}

func cmdSet(w *scriptWorld, c *command) error {
	bank, err := c.bank(w, c.Pos[0])
	if err != nil {
		return err
	}
	for _, a := range c.Args {
		reg, known := writable[a.Key]
		if !known {
			return c.Errorf("register %q, expected one of %s", a.Key, words(writable))
		}
		v, err := w.value(c, bank, reg, a)
		if err != nil {
			return err
		}
		w.node.SMMU.Write(bank, reg, v)
	}
	return nil
}

// value reads what is written to a register: a number; for FSR all or names
// with |; for SCTLR changes such as +HUPCF,-CFIE.
func (w *scriptWorld) value(c *command, bank int, reg smmu.Register, a script.Arg) (uint64, error) {
	switch {
	case a.Value[0] >= '0' && a.Value[0] <= '9':
		return c.number(a.Key, a.Value, 64)
	case reg == smmu.FSR && a.Value == "all":
		return 1<<32 - 1, nil
	case reg == smmu.FSR:
		v := uint32(0)
		for name := range strings.SplitSeq(a.Value, "|") {
			mask, err := c.bit(a.Key, name, fsrBits)
			if err != nil {
				return 0, err
			}
			v |= mask
		}
		return uint64(v), nil
	case reg == smmu.SCTLR:
		v := uint32(w.node.SMMU.Bank(bank).Read(smmu.SCTLR))
		for change := range strings.SplitSeq(a.Value, ",") {
			if change == "" || change[0] != '+' && change[0] != '-' {
				return 0, c.Errorf("%s: %q, expected + or - and a bit", a.Key, change)
			}
			mask, err := c.bit(a.Key, change[1:], sctlrBits)
			if err != nil {
				return 0, err
			}
			v &^= mask
			if change[0] == '+' {
				v |= mask
			}
		}
		return uint64(v), nil
	}
	return 0, c.Errorf("%s: %q, expected a number", a.Key, a.Value)
}

func (c *command) bit(key, name string, bits []bit) (uint32, error) {
	var names []string
	for _, b := range bits {
		if b.name == name {
			return b.mask, nil
		}
		names = append(names, b.name)
	}
	return 0, c.Errorf("%s: bit %q, expected one of %s", key, name, strings.Join(names, ", "))
}
