package portalscript_test

import (
	"fmt"
	"os"

	"github.com/spinsim/spinsim/internal/portalscript"
)

// The second receive takes the header of a message that came earlier.
func ExampleRun() {
	err := portalscript.Run(`
procs 2
explain on
1: eq q 16
1: pt 0 eq=q
1: me small pt=0 bits=7 start=0x100 len=4 OP_PUT USE_ONCE NO_TRUNCATE EVENT_LINK_DISABLE
1: me over  pt=0 ignore=max start=0x200 len=64 OP_PUT list=overflow EVENT_LINK_DISABLE
0: md m len=64
0: put m len=8 to=1 bits=7
1: me large pt=0 bits=7 start=0x300 len=64 OP_PUT USE_ONCE
`, os.Stdout)
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	//   0   queued: put to 1/0
	//   1 put from 0/0: pt 0, bits 0x7, 8 bytes, offset 0
	//   1   priority entry small: does not fit
	//   1   overflow entry over: matches
	//   1   unexpected header queued: bits 0x7
	//   1   delivered into over at offset 0: 8 of 8 bytes
	//   1   event in q: PUT from=0/0 bits=0x7 start=0x200 length=8 overflow
	//   1   unexpected header taken: bits 0x7
	//   1   event in q: PUT_OVERFLOW from=0/0 bits=0x7 start=0x200 length=8 overflow
	//   1   event in q: AUTO_UNLINK
}
