package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// The device offers the features it has; the interface of a process has those
// that catch no mistake. Whoever desires TARGET_BIND_INACCESSIBLE may append an
// entry whose memory does not exist, and its messages fail, at both sides.
func TestFeaturesOfTheDevice(t *testing.T) {
	onOneNode(t, func(p *runtime.Proc) error {
		const nowhere = 1 << 40
		own := p.NI()
		require.Equal(t, portals.FeatureCoherentAtomics, own.Objects().Limits().Features)
		_, err := own.Objects().PTAlloc(0, portals.EQNone, 0)
		require.NoError(t, err)
		_, err = own.MEAppend(0, &portals.ME{Start: nowhere, Length: 8, UID: portals.UIDAny, MatchID: portals.AnyID}, portals.PriorityList, 0)
		require.ErrorIs(t, err, portals.ErrArgInvalid)
		require.ErrorContains(t, err, "memory of 8 bytes at 0x10000000000 is not accessible")

		desired := own.Objects().Limits()
		desired.Features = ^portals.Features(0)
		ni, err := p.NIInit(portals.OptNINoMatching|portals.OptNIPhysical, &desired)
		require.NoError(t, err)
		require.Equal(t, portals.FeatureTargetBindInaccessible|portals.FeatureCoherentAtomics, ni.Objects().Limits().Features)
		eq, err := ni.Objects().EQAlloc(16)
		require.NoError(t, err)
		_, err = ni.Objects().PTAlloc(0, eq, 0)
		require.NoError(t, err)
		_, err = ni.LEAppend(0, &portals.LE{
			Start: nowhere, Length: 8, UID: portals.UIDAny,
			Options: portals.OptLEOpPut | portals.OptLEOpGet | portals.OptLEEventLinkDisable,
		}, portals.PriorityList, 0)
		require.NoError(t, err)
		data := p.Alloc(8)
		copy(data.Raw(), "unharmed")
		md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: 8, EQ: eq, Options: portals.OptMDEventSendDisable})
		require.NoError(t, err)
		require.NoError(t, ni.Put(portals.Put{MD: md, Length: 8, Ack: portals.Ack, Target: portals.PhysID(0, 0)}))
		require.NoError(t, ni.Get(portals.Get{MD: md, Length: 8, Target: portals.PhysID(0, 0)}))
		seen := map[portals.EventType]portals.FailType{}
		for range 4 {
			ev, err := ni.EQWait(eq)
			require.NoError(t, err)
			seen[ev.Type] = ev.Fail
		}
		const segv = portals.NISegv
		require.Equal(t, map[portals.EventType]portals.FailType{
			portals.EventPut: segv, portals.EventAck: segv, portals.EventGet: segv, portals.EventReply: segv,
		}, seen)
		require.Equal(t, "unharmed", string(data.Read()), "the reply carried bytes of nowhere")
		return nil
	})
}
