package rnr

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// forged is a packet that the process of the other end makes up.
type forged struct {
	h          Header
	at         uint64 // remote offset
	left, size uint64 // header data, bytes
}

// forge has the process of an end send packets past its connection.
func forge(p *runtime.Proc, c *Conn, to uint32, packets ...forged) error {
	v := p.Alloc(4096)
	fill(v.Write(), 66)
	var pin host.Pin // it is no memory of a connection
	if err := p.OS().GetUserPages(p.Thread(), v.Addr(), uint64(v.Len()), true, &pin); err != nil {
		return err
	}
	md, err := c.NI().Objects().MDBind(&portals.MD{Start: v.Addr(), Length: uint64(v.Len())})
	if err != nil {
		return err
	}
	for _, f := range packets {
		if err := c.NI().Put(portals.Put{MD: md, Length: f.size, Target: portals.ID{NID: to}, MatchBits: f.h.Bits(), RemoteOffset: f.at, HdrData: f.left}); err != nil {
			return err
		}
	}
	return nil
}

// What no end of a connection sends breaks it, and changes no memory: the one
// of a receive that has ended is the program's.
func TestForgedPacketsBreakTheConnection(t *testing.T) {
	const size, mtu = 8192, 4096
	write := func(at, left, n uint64) forged { return forged{Header{Kind: KindWrite, PSN: 1}, at, left, n} }
	send := func(number uint32, flags uint32, at, left, n uint64) forged {
		return forged{Header{Kind: KindSend, PSN: 1, Number: number, Flags: flags}, at, left, n}
	}
	for name, f := range map[string]forged{ //lint:maporder each is a run by itself
		"to a receive that has ended":              send(0, WantAck|LastOne, 0, 16, 16),
		"a message that has less than it says":     send(1, WantAck|LastOne, 0, size, 8),
		"a last packet with more behind it":        send(1, LastOne, 0, size, mtu),
		"a message whose end wraps":                send(1, LastOne, 1<<48-1, 16, 16),
		"a write that has more than it says":       write(0, 8, 16),
		"a write behind all addresses":             write(1<<48-8, 16, 16),
		"a write of all addresses":                 write(0, 1<<63, mtu),
		"a read of all addresses":                  {Header{Kind: KindRead, PSN: 1}, 4096, ^uint64(0), 8},
		"a request to read with data":              {Header{Kind: KindRead, PSN: 1}, 0, 8, 16},
		"no kind":                                  {Header{PSN: 1}, 0, 8, 8},
		"broken for no reason":                     {Header{Kind: KindBroken}, 0, 0, 8},
		"broken for a reason that there is not":    {Header{Kind: KindBroken}, 0, 99, 8},
		"a response to nothing with too few bytes": {Header{Kind: KindResponse}, 0, 4096, 8},
	} {
		t.Run(name, func(t *testing.T) {
			r := pair{set: []string{fmt.Sprintf("fabric.mtu=%d", mtu)}}
			r.main = [2]func(p *runtime.Proc, c *Conn) error{
				func(p *runtime.Proc, c *Conn) error {
					v := p.Alloc(2 * size)
					var work [2]*Work
					for i := range work {
						var err error
						if work[i], err = c.PostReceive(v.Slice(i*size, (i+1)*size)); err != nil {
							return err
						}
					}
					if _, err := work[0].Wait(); err != nil {
						return err
					}
					_, err := work[1].Wait()
					require.ErrorIs(t, err, ErrInvalid)
					require.NoError(t, same(v.Slice(0, 100).Read(), 1))
					require.Equal(t, make([]byte, size), v.Slice(size, 2*size).Read())
					return nil
				},
				func(p *runtime.Proc, c *Conn) error {
					v := p.Alloc(100)
					fill(v.Raw(), 1)
					w, err := c.PostSend(v)
					if err != nil {
						return err
					}
					if _, err := w.Wait(); err != nil {
						return err
					}
					return forge(p, c, 0, f)
				},
			}
			r.run(t)
		})
	}
}

// An RNR NACK whose time is none that InfiniBand has holds a requester no
// longer than the longest of them, and a response that is not what was asked
// for breaks the connection.
func TestForgedAnswers(t *testing.T) {
	const size = 1 << 20
	answers := map[string]struct { //lint:maporder each is a run by itself
		f    forged
		read bool
		want error
	}{
		"a pause for ever":     {forged{Header{Kind: KindRNR}, 0, ^uint64(0), 8}, false, nil},
		"too short a response": {forged{Header{Kind: KindResponse}, 0, 16, 16}, true, ErrInvalid},
	}
	for name, c := range answers { //lint:maporder each is a run by itself
		t.Run(name, func(t *testing.T) {
			var r pair
			var to uint64
			r.main = [2]func(p *runtime.Proc, c *Conn) error{
				func(p *runtime.Proc, conn *Conn) error {
					v := p.Alloc(size)
					v.Raw()
					p.SleepUntil(sim.Millisecond)
					post := conn.PostWrite
					if c.read {
						post = conn.PostRead
					}
					w, err := post(to, v)
					if err != nil {
						return err
					}
					_, err = w.Wait()
					require.ErrorIs(t, err, c.want)
					require.Less(t, p.Now(), 700*sim.Millisecond)
					return nil
				},
				func(p *runtime.Proc, conn *Conn) error {
					v := p.Alloc(size)
					if to = v.Addr(); !c.read { // else it is absent: there is time
						v.Raw()
					}
					p.SleepUntil(sim.Millisecond + 5*sim.Microsecond)
					return forge(p, conn, 0, c.f)
				},
			}
			r.run(t)
		})
	}
}

// A device whose handlers may not have enough pending breaks connections, which
// says why: they do not wait for ever.
func TestNoRoomBreaksTheConnection(t *testing.T) {
	r := pair{set: []string{"nic.handler_commands=1"}}
	r.main = [2]func(p *runtime.Proc, c *Conn) error{
		func(p *runtime.Proc, c *Conn) error {
			v := p.Alloc(64 << 10)
			v.Raw()
			w, err := c.PostSend(v)
			if err != nil {
				return err
			}
			_, err = w.Wait()
			require.ErrorIs(t, err, ErrNoSpace)
			require.ErrorContains(t, err, "nic.handler_commands of a node are used up")
			return nil
		},
		func(p *runtime.Proc, c *Conn) error {
			w, err := c.PostReceive(p.Alloc(64 << 10))
			if err != nil {
				return err
			}
			_, err = w.Wait()
			require.ErrorIs(t, err, ErrNoSpace)
			return nil
		},
	}
	r.run(t)
}
