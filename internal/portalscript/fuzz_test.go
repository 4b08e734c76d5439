package portalscript

import (
	"errors"
	"io"
	"testing"
)

// FuzzRun feeds the script language with anything: the answer is always a
// return code, an event or one *Error, never a panic. The seeds are a few
// scripts of the conformance suite.
func FuzzRun(f *testing.F) {
	for _, seed := range []string{
		"procs 2\n1: eq q 4\n1: pt 0 eq=q FLOWCTRL\n1: me a pt=0 len=64 OP_PUT USE_ONCE\n0: md m len=64\n0: put m len=4 to=1 ack=ACK\n1: events q",
		"procs 2\n1: pt 0\n1: me o pt=0 len=8 OP_PUT OP_GET MANAGE_LOCAL minfree=4 list=overflow\n0: md m len=max\n0: put m off=-1 len=1 to=1\n0: fetch m get=m len=8 to=1 op=SUM type=INT64_T\n1: search delete pt=0",
		"procs 1\n0: ct a\n0: ct b\n0: ctinc b success=1 trig=a threshold=max\n0: ctset a success=max\n0: ctfree a\n0: counter a b",
		"procs 2 NO_MATCHING LOGICAL\n1: pt 0\n1: le a pt=0 iov=0:3,9:9 IOVEC OP_PUT\nmanual\n0: md m len=9\n0: put m len=9 to=1\n0: send late=o\n1: receive d\n1: nifini\n1: land d\n1: finish d\n0: sent o\nrun",
		"procs 2\n1: eq q 1\n1: pt 0 eq=q\n1: me a pt=0 start=0xffff len=9 OP_PUT hh=1\nexplain on\nmanual\n0: md m len=9\n0: swap m get=m len=4 to=1 op=CSWAP type=FLOAT operand=1\n0: send\n1: receive d\n1: finish d pending=1\n1: finish d\n0: fini\nrun\n1: get1 q",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		err := Run(text, io.Discard)
		var mistake *Error
		if err != nil && !errors.As(err, &mistake) {
			t.Fatalf("%T is no *Error: %v", err, err)
		}
	})
}
