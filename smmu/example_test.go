package smmu_test

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// A device writes to a page that is not there. The driver reads the registers,
// brings the page and clears the registers; the device tries again.
func Example() {
	spec, err := smmutest.Spec()
	if err != nil {
		fmt.Println(err)
		return
	}
	node := smmutest.NewNode(spec, 150*sim.Nanosecond, nil)
	tables := smmutest.NewTables(spec.AddressBits)
	if err := node.SMMU.Assign(0, 7, tables); err != nil {
		fmt.Println(err)
		return
	}
	node.Lines.Told = func(bank int) {
		address := node.SMMU.Bank(bank).Read(smmu.FAR)
		fmt.Printf("%v: bank %d, FSR %#x, address %#x\n", node.Engine.Now(), bank, node.SMMU.Bank(bank).Read(smmu.FSR), address)
		tables.Map(address&^4095, 3, 0x5000, true)
		node.SMMU.Write(bank, smmu.FSR, node.SMMU.Bank(bank).Read(smmu.FSR))
	}

	first := node.Access(7, 0x2010, 256, true)
	fmt.Println(first.At, first.Result)
	second := node.Access(7, 0x2010, 256, true)
	fmt.Printf("%v %v, page %#x\n", second.At, second.Result, second.Frames[0])
	third := node.Access(7, 0x2110, 256, true)
	fmt.Println(third.At, third.Result)
	// Output:
	// 220 ns: bank 0, FSR 0x2, address 0x2010
	// 220 ns FAULT
	// 820 ns OK, page 0x5000
	// 820 ns OK
}
