package netstack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/inetscript"
	"github.com/spinsim/spinsim/sim"
)

// sent is a segment that an end has sent, and its time.
type sent struct {
	at   sim.Time
	text string
}

// outputs returns the segments of a transcript, without the parts that the RFCs
// leave open: windows, PSH, and the options of the SYN.
func outputs(t *testing.T, transcript string) (all []sent) {
	at := sim.Time(0)
	for _, l := range strings.Split(transcript, "\n") {
		words := strings.Fields(l)
		if len(words) < 2 || words[0][0] != '+' {
			continue
		}
		if words[0] != "+0" {
			d, err := sim.ParseTime(words[0][1:])
			require.NoError(t, err)
			at += d
		}
		if words[1] != ">" {
			continue
		}
		kept := []string{strings.ReplaceAll(words[2], "P", "")}
		for i := 3; i < len(words) && (words[i][0] != '<' || words[i] == "<sack"); i++ {
			if words[i] == "win" {
				i++
				continue
			}
			kept = append(kept, words[i])
		}
		all = append(all, sent{at, strings.Join(kept, " ")})
	}
	return all
}

// exact is the largest difference between the times of the two. gVisor's times
// are seen at steps. Which segment of a window is measured (RFC 6298 §3) is
// open; it moves time-outs by the differences of the round trips of a window.
const exact = 4 * step

// difference runs a script on both up to a time. It returns the first
// difference between their segments or times, "" if there is none, and the
// number n of segments compared.
func difference(t *testing.T, text string, until limit) (says string, n int) {
	mine, err := inetscript.Run(text)
	require.NoError(t, err)
	other, err := inetscript.RunOn(text, func(c inet.Config, iss uint32) inetscript.End { return newEnd(t, c, iss) })
	require.NoError(t, err)
	a := until.cut(outputs(t, mine))
	b := outputs(t, other)
	if until.at != inet.Never {
		b = b[:min(len(a), len(b))]
	}
	for i := range max(len(a), len(b)) {
		if i < min(len(a), len(b)) && i == len(a)-1 && until.early {
			b[i].at = max(b[i].at, a[i].at)
		}
		if i >= len(a) || i >= len(b) || a[i].text != b[i].text || max(a[i].at-b[i].at, b[i].at-a[i].at) > exact {
			return fmt.Sprintf("segment %d:\n inet   %v\n gVisor %v\n\ninet:\n%s\ngVisor:\n%s", i, a[min(i, len(a)):min(i+3, len(a))], b[min(i, len(b)):min(i+3, len(b))], mine, other), i
		}
	}
	return "", len(a)
}

// limit is how far the two compare: up to a time, with or without the first
// segment from then on.
type limit struct {
	at    sim.Time
	first bool
	early bool // gVisor's may be earlier
}

func (l limit) cut(all []sent) []sent {
	for i := range all {
		switch {
		case all[i].at >= l.at && l.first:
			return all[:i+1]
		case all[i].at >= l.at:
			return all[:i]
		}
	}
	return all
}

// parameters are the parameters with which gVisor can agree.
const parameters = "set rfc mss=1000 initial_window=10 initial_window_bytes=10000B rto_least=200ms rto_most=120s nagle=false limited_transmit=false challenge=true retries=15 sack=false"

// gVisor behaves like each script of package script that opens actively, with
// the same parameters, except for the scripts in differs.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("../../../internal/inetscript/testdata/*/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	compared := 0
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "../../../internal/inetscript/testdata/"), ".txt")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := strings.Split(strings.ReplaceAll(string(text), "<mss 1000,sackOK>\n", "<mss 1036,sackOK>\n"), "\n")
		if !strings.Contains(string(text), " dial\n") || strings.HasPrefix(name, "limits/") || strings.HasPrefix(name, "rfc8985/") || name == "rfc9293/refused" || name == "rfc9293/closed" || name == "rfc9293/fin-beyond-window" {
			// gVisor has its own limits and buffers. RACK and its probes are off, since
			// they would change everything about SACK. It does not report resets
			// that it ignores.
			continue
		}
		for i := range lines {
			if strings.HasPrefix(lines[i], "set ") {
				lines[i] = parameters
				if strings.Contains(string(text), "sackOK>\n+0     > .") {
					lines[i] = strings.Replace(parameters, "sack=false", "sack=true", 1)
				}
			}
		}
		t.Run(name, func(t *testing.T) {
			says, n := difference(t, strings.Join(lines, "\n"), limit{at: inet.Never})
			if why := differs[name]; why != "" {
				require.NotEmpty(t, says, "it does not differ: %s", why)
				return
			}
			if says != "" {
				require.Fail(t, says)
			}
			compared += n
		})
	}
	t.Logf("%d segments", compared)
}

// differs is the rules in which gVisor differs, and why.
var differs = map[string]string{
	"rfc5681/congestion-avoidance":       wholeSegments,
	"rfc5681/slow-start":                 wholeSegments,
	"rfc5681/duplicates":                 acksAtOnce,
	"rfc5681/fast-retransmit":            notFirst,
	"rfc5681/limited-transmit":           notFirst,
	"rfc6582/partial":                    notFirst,
	"rfc6675/duplicates":                 notFirst,
	"rfc6675/fin":                        notFirst,
	"rfc6675/holes-not-lost":             notFirst,
	"rfc6675/lost-bytes":                 notFirst,
	"rfc6675/lost-ranges":                notFirst,
	"rfc6675/recovery":                   notFirst,
	"rfc6675/rescue":                     notFirst,
	"rfc6675/rescue-keeps-place":         notFirst,
	"rfc5961/ack":                        "bytes of a segment that acknowledges what was not sent are taken (RFC 9293 §3.10.7.4, fifth: drop)",
	"rfc9293/acks":                       "bytes and window of a segment that acknowledges what was not sent are taken (RFC 9293 §3.10.7.4, fifth: drop)",
	"rfc6298/initial":                    "the time-out is 1 s after a SYN was lost (RFC 6298 §5.7: 3 s)",
	"rfc6298/timer":                      "what was sent again is measured (RFC 6298 §3, Karn: not)",
	"rfc9293/acceptable":                 acksAtOnce,
	"rfc9293/acceptable-closed-window":   acksAtOnce,
	"rfc9293/close-queued":               "a FIN is a segment of its own",
	"rfc9293/delayed-ack":                acksAtOnce,
	"rfc9293/delayed-ack-data":           acksAtOnce,
	"rfc9293/half-close":                 acksAtOnce,
	"rfc9293/release-unread":             acksAtOnce,
	"rfc9293/silly-receiver":             acksAtOnce,
	"rfc9293/old-syn":                    "an acknowledgement of what was not sent begins the handshake anew, with another number (RFC 9293 §3.10.7.3: it changes nothing)",
	"rfc6582/sent-twice":                 wholeSegments,
	"rfc9293/simultaneous-open":          "the answer to both SYNs does not establish the connection (RFC 9293 §3.5, figure 7)",
	"rfc9293/syn-in-window-simultaneous": "a SYN within the window resets a connection that both have begun (as RFC 793; RFC 9293 §3.10.7.4, fourth: it is challenged)",
	"rfc5681/threshold-resent":           "what was sent again is measured (RFC 6298 §3, Karn: not)",
	"rfc6675/fin-window":                 "a FIN goes into a closed window",
	"rfc9293/fin-kept":                   "a FIN that came before its turn is lost if a longer segment of the same end has none",
	"rfc6298/probe":                      oldByte,
	"rfc6675/time-out-exact":             wholeSegments,
	"rfc9293/release-then-fin":           acksAtOnce,
	"rfc9293/zero-window-answers":        oldByte,
	"rfc9293/silly-sender":               "a part of a segment goes at once, also into a small window (RFC 9293 §3.8.6.2.1)",
	"rfc9293/time-wait":                  "TIME-WAIT is 60 s",
	"rfc9293/zero-window":                oldByte,
	"rfc9293/zero-window-taken":          oldByte,
}

// Reasons for gVisor's differences.
const (
	acksAtOnce    = "acknowledgements are not held back"
	wholeSegments = "the window counts whole segments: it grows by all that were acknowledged, and in congestion avoidance once a window"
	notFirst      = "the first segment of a stream is not sent again by duplicates: they must acknowledge more than the first sequence number (RFC 6582 §3.2, step 2, by the letter)"
	oldByte       = "a closed window is asked about with a byte that was acknowledged"
)

// trace returns a script of the segments that a sender receives from a receiver
// over a network that loses segments.
func trace(seed uint64, loss float64, segments int, more string) (text string, until limit) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n+0 dial\n", parameters, more)
	g := &generator{rng: rng, loss: loss, trip: sim.Time(1+rng.IntN(80)) * sim.Millisecond, out: &b, until: limit{at: inet.Never}}
	g.run(segments, strings.Fields(parameters + " " + more)[1:])
	return b.String(), g.until
}

// generator runs both ends of package inet and writes down the segments that
// the first one receives.
type generator struct {
	rng     *rand.Rand
	loss    float64
	trip    sim.Time // one way
	out     *strings.Builder
	ends    [2]*inet.Conn
	way     []flying
	now     sim.Time
	written sim.Time // time of the line before
	recover uint32   // top when the first recovery began, 0: none yet
	una     uint32   // acknowledged at that time
	top     uint32
	until   limit // the two compare so far
}

type flying struct {
	at   sim.Time
	side int
	s    inet.Segment
}

func (g *generator) line(format string, args ...any) {
	fmt.Fprintf(g.out, "+%v ", strings.ReplaceAll((g.now-g.written).String(), " ", ""))
	fmt.Fprintf(g.out, format+"\n", args...)
	g.written = g.now
}

// run sends so many segments, in pieces, and a FIN.
func (g *generator) run(segments int, set []string) {
	config := inet.Config{MSS: 1000}
	var overrides []string
	for _, o := range set[1:] {
		if !strings.HasPrefix(o, "mss=") {
			overrides = append(overrides, o)
		}
	}
	spec, err := inet.Load(set[0], overrides...)
	if err != nil {
		panic(err)
	}
	config.Spec = *spec
	const iss, irs = 1000, 5000
	g.ends[0] = inet.Dial(config, 1, there, 2, iss)
	g.output(0)
	for written, closed := false, false; ; {
		if !written && g.ends[0].Established() {
			written = true
			g.line("write %d", segments*1000)
			g.ends[0].Write(make([]byte, segments*1000))
			g.output(0)
		}
		// gVisor sends a separate FIN unless it goes with the last bytes
		if written && !closed && g.ends[0].Unacknowledged() == 0 {
			closed = true
			g.line("close")
			g.ends[0].Close()
			g.output(0)
		}
		first, at := -1, min(g.ends[0].Deadline(), inet.Never)
		if g.ends[1] != nil {
			at = min(at, g.ends[1].Deadline())
		}
		for i := range g.way {
			if g.way[i].at <= at {
				first, at = i, g.way[i].at
			}
		}
		if at > 100*sim.Second {
			break
		}
		g.now = at
		if first < 0 {
			for side, x := range g.ends {
				if x.Deadline() <= at {
					x.Expire(at)
					g.output(side)
				}
			}
			continue
		}
		f := g.way[first]
		g.way = append(g.way[:first], g.way[first+1:]...)
		g.deliver(f, config, iss, irs)
	}
	g.line("wait")
}

func (g *generator) deliver(f flying, config inet.Config, iss, irs uint32) {
	switch {
	case f.side == 1 && g.ends[1] == nil:
		config.AckPushed, config.WindowScale = true, false
		g.ends[1] = inet.Accept(config, g.now, here, &f.s, irs)
	default:
		if f.side == 0 {
			text := fmt.Sprintf("%d:%d(%d) ack %d win %d", f.s.Seq-irs, f.s.Seq-irs+uint32(len(f.s.Data)), len(f.s.Data), f.s.Ack-iss, f.s.Window)
			switch {
			case f.s.Flags&inet.SYN != 0 && f.s.Selective:
				g.line("< S. %s <mss 1036,sackOK>", text) // gVisor takes off the room of options
			case f.s.Flags&inet.SYN != 0:
				g.line("< S. %s <mss 1000>", text)
			case f.s.Told > 0:
				told := ""
				for _, k := range f.s.Blocks[:f.s.Told] {
					told += fmt.Sprintf(" %d:%d", k.From-iss, k.To-iss)
				}
				g.line("< . %s <sack%s>", text, told)
			default:
				g.line("< . %s", text)
			}
		}
		if f.s.Flags |= inet.PSH; f.side == 0 || f.s.Flags&(inet.SYN|inet.FIN) != 0 {
			f.s.Flags &^= inet.PSH
		}
		g.ends[f.side].Input(g.now, &f.s)
		g.recovery(f)
	}
	if f.side == 1 {
		g.ends[1].Read(make([]byte, 1<<20))
	}
	g.output(f.side)
}

// recovery ends the comparison where the two may differ. RFC 6582 §3.2, step 3:
// a partial acknowledgement repeats the next hole and reduces the window, which
// gVisor does not do; a full one leaves one of two windows. RFC 6675 §5: gVisor
// repeats the first segment perhaps a duplicate earlier, since its segments in
// IsLost have no room for options, 964 B. Its window then has three segments
// more than in (4.2).
func (g *generator) recovery(f flying) {
	switch x := g.ends[0]; {
	case f.side != 0 || g.until.at != inet.Never:
	case x.Stats.Fast > 0 && g.recover == 0:
		if g.recover, g.una = g.top, f.s.Ack; f.s.Told > 0 {
			g.until = limit{g.now, true, true}
		}
	case g.recover != 0 && f.s.Ack != g.una:
		g.until = limit{g.now, int32(f.s.Ack-g.recover) < 0, false}
	}
}

// output puts an end's segments on their way; data may get lost.
func (g *generator) output(side int) {
	g.ends[side].Output(g.now, math.MaxInt, func(s *inet.Segment) {
		if end := s.Seq + uint32(len(s.Data)); side == 0 && int32(end-g.top) > 0 {
			g.top = end
		}
		if side == 0 && len(s.Data) > 0 && g.rng.Float64() < g.loss {
			return
		}
		c := *s
		c.Data = append([]byte(nil), s.Data...)
		at := g.now + g.trip
		for i := range g.way { // never two at once, and in order
			if g.way[i].side == 1-side {
				at = max(at, g.way[i].at+step)
			}
		}
		g.way = append(g.way, flying{at, 1 - side, c})
	})
}

// Streams over a network that loses segments: both send the same segments at
// the same times, up to the end of the first recovery.
func TestTraces(t *testing.T) {
	total, recovered := 0, 0
	for _, sack := range []string{"sack=false", "sack=true"} {
		for seed := range uint64(60) {
			text, until := trace(seed, []float64{0, 0.01, 0.03}[seed%3], 20+int(seed)*2, sack)
			t.Run(fmt.Sprintf("%s/%d", sack, seed), func(t *testing.T) {
				says, n := difference(t, text, until)
				if says != "" {
					require.Fail(t, says)
				}
				total += n
			})
			if until.at != inet.Never {
				recovered++
			}
		}
	}
	require.Greater(t, recovered, 30)
	t.Logf("%d segments, %d recoveries", total, recovered)
}
