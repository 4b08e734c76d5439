package hpu_test

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/profile"
)

// silent is a device that does nothing of what handlers ask for.
type silent struct{}

func (silent) Act(*hpu.Context, *hpu.Action) (result int64, blocked bool) { return 0, false }

// A module is checked for a device, compiled, and instantiated for an owner; a
// context runs one of its handlers on a packet. The handler adds up its bytes,
// and every instruction is charged from the cost table of the device.
func ExampleContext() {
	device, err := profile.Load("spin-int", "hpu.costs=scalar")
	check(err)
	wasm, err := os.ReadFile("testdata/handlers.wasm")
	check(err)
	module, err := hpu.Load("adder", wasm, device.Device())
	check(err)
	engine, err := hpu.NewEngine("wazero")
	check(err)
	image, err := engine.Compile(module, 4096) // bytes of HPU memory
	check(err)
	program, err := image.Instantiate("the owner's name", silent{})
	check(err)
	sum, err := module.Export("sum")
	check(err)

	c, memory := program.Context(0), program.Memory()
	copy(memory[c.PacketAddr(4):], []byte{1, 2, 3, 4})
	binary.LittleEndian.PutUint32(memory[c.ArgsAddr():], c.PacketAddr(4))
	binary.LittleEndian.PutUint32(memory[c.ArgsAddr()+4:], 4)
	const budget = 1000 // cycles
	if c.Start(sum, c.ArgsAddr(), 0, budget) == hpu.Done {
		fmt.Println("sum", c.Outcome().Code, "error", c.Outcome().Err)
	}
	if c.Start(sum, c.ArgsAddr(), 0, 10) == hpu.Done {
		fmt.Println(c.Outcome().Err.Kind)
	}
	check(engine.Close())
	// Output:
	// sum 10 error <nil>
	// killed: budget exceeded
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
