package runtime_test

import (
	"context"
	"fmt"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// Two host programs in virtual time: one puts 8 bytes, the other waits for the
// event that says they are in its memory.
func ExampleCluster() {
	const index, bits, length = 0, 0xc0de, 8
	device, err := profile.Load("spin-int", "hpu.cores=8")
	check(err)
	cluster, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2, Seed: 1})
	check(err)
	check(cluster.Spawn(1, "receiver", func(p *runtime.Proc) error {
		ni, inbox := p.NI(), p.Alloc(length)
		queue, err := ni.Objects().EQAlloc(4)
		check(err)
		_, err = ni.Objects().PTAlloc(0, queue, index)
		check(err)
		_, err = ni.MEAppend(index, &portals.ME{
			Start: inbox.Addr(), Length: length, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: bits,
			Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
		}, portals.PriorityList, 0)
		check(err)
		event, err := ni.EQWait(queue)
		check(err)
		fmt.Printf("%v of %d bytes from node %d: %q\n", event.Type, event.MLength, event.Initiator.NID, inbox.Read())
		return nil
	}))
	check(cluster.Spawn(0, "sender", func(p *runtime.Proc) error {
		data := p.Alloc(length)
		copy(data.Write(), "spinsim!")
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: length})
		check(err)
		return p.NI().Put(portals.Put{MD: md, Length: length, Target: portals.PhysID(1, 0), PT: index, MatchBits: bits})
	}))
	check(cluster.Run(context.Background()))
	check(cluster.Close())
	// Output:
	// PUT of 8 bytes from node 0: "spinsim!"
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
