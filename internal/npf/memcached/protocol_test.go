package memcached_test

import (
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/npf/memcached"
	"github.com/spinsim/spinsim/sim"
)

var reference = flag.String("memcached", "", "a memcached whose answers the scripts of testdata/protocol are compared with")

// peer is a server under test. An exchange sends bytes and returns all bytes
// that come back.
type peer interface {
	exchange(t *testing.T, send string) (answer string, closed bool)
	wait(d sim.Time)
}

// ours is a session.
type ours struct {
	x   *memcached.Session
	now sim.Time
}

func newStore(t testing.TB, c memcached.Config) *memcached.Store {
	s, err := memcached.NewStore(new(memcached.Flat), c)
	require.NoError(t, err)
	return s
}

func (o *ours) exchange(_ *testing.T, send string) (answer string, closed bool) {
	o.x.Feed([]byte(send))
	for o.x.Step(o.now) {
	}
	answer = string(o.x.Output())
	o.x.Sent(len(answer))
	return answer, o.x.Closed()
}

func (o *ours) wait(d sim.Time) { o.now = o.now.Later(d) }

// theirs is a connection to memcached.
type theirs struct{ c net.Conn }

func (o *theirs) exchange(t *testing.T, send string) (answer string, closed bool) {
	_, err := io.WriteString(o.c, send)
	require.NoError(t, err)
	var all strings.Builder
	buf := make([]byte, 1<<16)
	for {
		require.NoError(t, o.c.SetReadDeadline(time.Now().Add(150*time.Millisecond)))
		n, err := o.c.Read(buf)
		all.Write(buf[:n])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return all.String(), false
		case err != nil:
			return all.String(), true
		}
	}
}

func (o *theirs) wait(d sim.Time) { time.Sleep(time.Duration(d / sim.Nanosecond)) } //lint:clock a real memcached has a clock

// start runs a separate memcached for a script.
func start(t *testing.T) *theirs {
	socket := filepath.Join(t.TempDir(), "s")
	cmd := exec.Command(*reference, "-s", socket, "-m", "64", "-u", "root")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 100 {
		if c, err := net.Dial("unix", socket); err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return &theirs{c}
		}
		time.Sleep(20 * time.Millisecond) //lint:clock it is another program that begins to listen
	}
	t.Fatal("memcached does not listen")
	return nil
}

// The scripts are exchanges from protocol.txt and likely inputs of users. With
// -memcached PATH they run against that memcached, which also wrote them
// ("-rewrite"). Lines end as in the protocol; "raw" sends Go's text.
func TestProtocol(t *testing.T) {
	datadriven.Walk(t, "testdata/protocol", func(t *testing.T, path string) {
		var p peer = &ours{x: memcached.NewSession(newStore(t, memcached.Config{}))}
		if *reference != "" {
			p = start(t)
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			send := ""
			switch d.Cmd {
			case "send":
				send = strings.ReplaceAll(d.Input, "\n", "\r\n") + "\r\n"
			case "raw":
				for _, line := range strings.Split(d.Input, "\n") {
					text, times, _ := strings.Cut(line, " * ")
					part, err := strconv.Unquote(text)
					require.NoError(t, err, "%s: %s", d.Pos, line)
					n := 1
					if times != "" {
						n, err = strconv.Atoi(times)
						require.NoError(t, err)
					}
					send += strings.Repeat(part, n)
				}
			case "wait":
				var seconds int
				d.ScanArgs(t, "seconds", &seconds)
				p.wait(sim.Time(seconds) * sim.Second)
				return ""
			default:
				d.Fatalf(t, "%s, expected send, raw or wait", d.Cmd)
			}
			answer, closed := p.exchange(t, send)
			answer = strings.ReplaceAll(answer, "\r\n", "\n")
			if closed {
				answer += "(closed)\n"
			}
			if answer == "" {
				answer = "(nothing)\n"
			}
			return answer
		})
	})
}
