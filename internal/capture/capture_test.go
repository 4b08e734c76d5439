package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/trace"
)

// observed is a packet as a tap sees it.
type observed struct {
	src, dst, bytes int32
	at              sim.Time
}

// observer notes the packets that nodes send, and the arrival of their last
// bytes.
type observer struct{ sent, arrived []observed }

func (o *observer) Sent(at sim.Time, p fabric.Packet) {
	o.sent = append(o.sent, observed{p.Src, p.Dst, p.Bytes, at})
}

func (o *observer) Arrived(at sim.Time, p fabric.Packet, _ bool) {
	o.arrived = append(o.arrived, observed{p.Src, p.Dst, p.Bytes, at})
}

// A capture over its limit keeps no packet and calls full once. Another run
// starts again.
func TestLimit(t *testing.T) {
	f, err := fabric.New(sim.New(1), profileOf(t).Fabric, 2)
	require.NoError(t, err)
	c := New(Places{})
	require.NoError(t, c.Attach(f))
	told := 0
	c.Limit(3*(HeaderBytes+overhead), func() { told++ })
	one := func() { c.see(&fabric.Line{}, fabric.Packet{}, 0, 0) }
	for range 3 {
		one()
	}
	require.Equal(t, 3, c.Packets())
	one()
	one()
	require.Zero(t, c.Packets())
	require.Equal(t, 1, told)
	require.NoError(t, c.Attach(f))
	one()
	require.Equal(t, 1, c.Packets())
}

func profileOf(t *testing.T) *profile.Profile {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	return p
}

// exchange sends puts from rank 0 to rank 1 and captures them.
func exchange(t *testing.T, where []string, overrides ...string) (file []byte, seen *observer, links []fabric.LinkStats, err error) {
	t.Helper()
	p, err := profile.Load("spin-int", overrides...)
	require.NoError(t, err)
	places, err := ParsePlaces(where)
	require.NoError(t, err)
	seen = &observer{}
	c := New(places)
	cluster, err := runtime.NewCluster(runtime.Config{
		Profile: p, Nodes: 2, Seed: 1, Capture: c.Attach, Links: func(l []fabric.LinkStats, _ sim.Time) { links = l },
		Fabric: func(eng *sim.Engine, spec fabric.Spec, nodes int) (fabric.Fabric, error) {
			f, err := fabric.New(eng, spec, nodes)
			if err != nil {
				return nil, err
			}
			return fabric.Tap(eng, f, seen), nil
		},
	})
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { require.NoError(t, cluster.Close()) }()
	data := make([]byte, 10_000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	require.NoError(t, cluster.Spawn(0, "sender", func(p *runtime.Proc) error { return send(p, data) }))
	require.NoError(t, cluster.Spawn(1, "receiver", func(p *runtime.Proc) error { return receive(p, len(data)) }))
	err = cluster.Run(context.Background())
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, c.Write(trace.NewPcapng(&out, "test", "a capture")))
	return out.Bytes(), seen, links, nil
}

// send puts data to rank 1 and asks for an acknowledgement.
func send(p *runtime.Proc, content []byte) error {
	ni, data := p.NI(), p.Alloc(len(content))
	copy(data.Write(), content)
	queue, err := ni.Objects().EQAlloc(4)
	if err != nil {
		return err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: uint64(len(content)), EQ: queue})
	if err != nil {
		return err
	}
	if err := ni.Put(portals.Put{MD: md, Length: uint64(len(content)), Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 0x1234}); err != nil {
		return err
	}
	for range 2 { // sent, acknowledged
		if _, err := ni.EQWait(queue); err != nil {
			return err
		}
	}
	return nil
}

// receive takes one message.
func receive(p *runtime.Proc, length int) error {
	ni, inbox := p.NI(), p.Alloc(length)
	queue, err := ni.Objects().EQAlloc(4)
	if err != nil {
		return err
	}
	if _, err = ni.Objects().PTAlloc(0, queue, 0); err != nil {
		return err
	}
	if _, err = ni.MEAppend(0, &portals.ME{
		Start: inbox.Addr(), Length: uint64(length), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: 0x1234,
		Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0); err != nil {
		return err
	}
	_, err = ni.EQWait(queue)
	return err
}

// read reads a file with a library that is not ours.
func read(t *testing.T, file []byte) (names []string, packets []packet) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	require.NoError(t, err)
	require.Equal(t, "test", r.SectionInfo().Application)
	require.Equal(t, "a capture", r.SectionInfo().Comment)
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		packets = append(packets, packet{info.InterfaceIndex, info.Timestamp, data})
	}
	for i := range r.NInterfaces() {
		one, err := r.Interface(i)
		require.NoError(t, err)
		require.Equal(t, layers.LinkType(trace.LinkUser0), one.LinkType)
		require.Equal(t, pcapgo.NgResolution(9), one.TimestampResolution)
		names = append(names, one.Name)
	}
	return names, packets
}

type packet struct {
	number int
	at     time.Time
	data   []byte
}

// Packets of a capture agree with a tap and with the statistics of the links,
// whatever program reads them.
func TestCaptureSaysWhatTheSimulatorSays(t *testing.T) {
	for _, overrides := range [][]string{nil, {"fabric.buffer=16KiB"}, {"transport.kind=reliable"}, {"fabric.kind=crossbar"}} {
		file, seen, links, err := exchange(t, []string{"all"}, overrides...)
		require.NoError(t, err)
		names, packets := read(t, file)
		be := binary.BigEndian
		sent := map[string][]observed{}
		payload := make([]byte, 10_000)
		for _, p := range packets {
			h := p.data
			require.Equal(t, uint16(Magic), be.Uint16(h))
			require.Equal(t, byte(Version), h[2])
			from, to, n := int64(be.Uint64(h[16:])), int64(be.Uint64(h[24:])), int32(be.Uint32(h[32:]))
			require.Equal(t, from/1000, p.at.UnixNano(), "nanoseconds of the exact time")
			require.LessOrEqual(t, from, to)
			name := names[p.number]
			sent[name] = append(sent[name], observed{int32(be.Uint32(h[4:])), int32(be.Uint32(h[8:])), n, sim.Time(from)})
			if h[3] == KindMessage && portals.OpKind(h[64]) == portals.OpPut {
				require.Equal(t, uint64(0x1234), be.Uint64(h[80:]))
				require.Equal(t, uint64(10_000), be.Uint64(h[96:]))
				require.Equal(t, int(n), len(h)-HeaderBytes)
				copy(payload[be.Uint64(h[120:]):], h[HeaderBytes:])
				require.Equal(t, be.Uint64(h[120:]) == 0, h[13]&FlagFirst != 0)
				require.Equal(t, be.Uint64(h[120:])+uint64(n) == 10_000, h[13]&FlagLast != 0)
			}
			require.Equal(t, slices.Contains(overrides, "transport.kind=reliable"), h[13]&FlagReliable != 0)
		}
		for i, b := range payload {
			require.Equal(t, byte(i*7), b)
		}
		own := slices.Concat(sent["Node[0].Tx"], sent["Node[1].Tx"])
		require.Len(t, own, len(seen.sent))
		// the tap has the time at which the node handed the packet over; the
		// link is free then or later
		for _, o := range seen.sent {
			at := slices.IndexFunc(own, func(c observed) bool { return c.src == o.src && c.dst == o.dst && c.bytes == o.bytes && c.at >= o.at })
			require.GreaterOrEqual(t, at, 0)
			own = slices.Delete(own, at, at+1)
		}
		for _, l := range links {
			require.Len(t, sent[l.Name], int(l.Packets), l.Name)
			sum := int64(0)
			for _, o := range sent[l.Name] {
				sum += int64(o.bytes)
			}
			require.Equal(t, l.Bytes, sum, l.Name)
		}
		require.Len(t, links, len(names))
	}
}

// A place that the network lacks is an error. Without a place every packet is
// there once.
func TestPlaces(t *testing.T) {
	file, seen, _, err := exchange(t, nil)
	require.NoError(t, err)
	names, packets := read(t, file)
	require.Equal(t, []string{"Node[0].Tx", "Node[1].Tx"}, names)
	require.Len(t, packets, len(seen.sent))
	file, _, _, err = exchange(t, []string{"node=1"}, "fabric.kind=crossbar")
	require.NoError(t, err)
	names, packets = read(t, file)
	require.Equal(t, []string{"Switch[0][0].Down[1]", "Node[1].Tx"}, names)
	require.Len(t, packets, len(seen.arrived))
	for _, where := range []string{"node=2", "link=Node[0].Rx"} {
		_, _, _, err := exchange(t, []string{where})
		var wrong *PlaceError
		require.ErrorAs(t, err, &wrong)
		require.EqualError(t, wrong, where+": the network has no such link")
	}
	for _, text := range []string{"", "node", "node=", "node=-1", "node=x", "link=", "port=3"} {
		_, err := ParsePlaces([]string{text})
		require.ErrorContains(t, err, "expected ", text)
	}
}

// A payload is IP only if it has an IPv4 header with a correct checksum.
func TestIP(t *testing.T) {
	header := []byte{0x45, 0, 0, 24, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4, 5}
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum&0xffff+sum>>16))
	require.Equal(t, header[:24], ip(header), "without what is behind it")
	for n := range header[:24] {
		require.Nil(t, ip(header[:n]))
	}
	header[19]++
	require.Nil(t, ip(header))
	require.Nil(t, ip(nil))
	var w nic.WirePacket
	require.Nil(t, w.Data())
}
