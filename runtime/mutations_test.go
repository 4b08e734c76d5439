package runtime_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	mutate     = flag.Int("mutations", 0, "of the mistakes that can be planted in nic, fabric and host, each of which loses bytes: try so many (ten seconds each)")
	mutateFrom = flag.Int("mutations.from", 0, "the first of them")
)

// mutations are mistakes that lose a byte, a packet or a message: file, what
// stands there once, what is planted instead.
var mutations = [][3]string{
	{"nic/frame.go", "return from, min(from+f.MTU, f.Length)", "return from, min(from+f.MTU, f.Length-f.Length%2)"},
	{"nic/transmit.go", "if !f.Datagram || o.fail == portals.NIOK {", "if last && i > 0 {\n} else if !f.Datagram || o.fail == portals.NIOK {"},
	{"nic/link.go", "Bytes: d.bytes, Seq: d.seq,", "Bytes: d.bytes - d.bytes&1, Seq: d.seq,"},
	{"nic/link.go", "if l.known == nil ||", "if p.Seq == 2 {\nreturn\n}\nif l.known == nil ||"},
	{"nic/link.go", "\t\tl.launch(d)\n\t\treturn\n", "if d.seq == 1 {\nreturn\n}\nl.launch(d)\nreturn\n"},
	{"nic/receive.go", "for _, k := range in.held {", "for _, k := range in.held[1:] {"},
	{"nic/receive.go", "r.post(at, kindPacket, uint64(i), in)", "if i != 2 {\nr.post(at, kindPacket, uint64(i), in)\n}"},
	{"nic/deposit.go", "in.frame.part(from, to))\n\t\twhere", "in.frame.part(from, to-1))\n\t\twhere"},
	{"nic/deposit.go", "max(from, int(in.skip)), min(to, int(in.d.MLength))", "max(from, int(in.skip)), min(to, int(in.d.MLength)-1)"},
	{"nic/deposit.go", "in.clip(from, to); from < to {", "in.clip(from, to); from+1 < to {"},
	{"nic/schedule.go", "} else if s.admit(in, i) {", "} else if i == 1 {\ns.dealt(in)\n} else if s.admit(in, i) {"},
	{"nic/outcome.go", "for _, i := range waiting {", "for _, i := range waiting[1:] {"},
	{"nic/schedule.go", "in.skip = int32(min(h.userHeader, d.MLength))", "in.skip = int32(min(h.userHeader, d.MLength)) + 1"},
	{"nic/record.go", "bytes = r.give(in.frame.part(from, to))", "bytes = r.give(in.frame.part(from, to-1))"},
	{"nic/dma.go", "n := copy(seg, rest)", "n := copy(seg, rest[:len(rest)-1])"},
	{"nic/dma.go", "n := copy(to, seg)", "n := copy(to, seg[:len(seg)-1])"},
	{"nic/requests.go", "data[:k]), len(data) - k", "data[:k-1]), len(data) - k"},
	{"nic/datagram.go", "\t\tt.next.send(packet{f: g})\n", "if i != 1 {\nt.next.send(packet{f: g})\n}\n"},
	{"nic/reliable.go", "\t\tt.next.packetArrived(s.f, s.i, false)\n", "if s.i != 1 {\nt.next.packetArrived(s.f, s.i, false)\n}\n"},
	{"nic/reliable.go", "\t\tt.below.hold(k.f.tenant, -1)\n\t}\n\tt.transmit(p, k)", "t.below.hold(k.f.tenant, -1)\n}\nif k.i == 1 {\nreturn\n}\nt.transmit(p, k)"},
	{"nic/reliable.go", "\t\tt.retire(p.window.pop())\n\t\tprogress = true\n", "if progress = true; p.window.front().i == 1 {\nnumber++\n}\nt.retire(p.window.pop())\n"},
	{"fabric/fabric.go", "uint64(uint32(p.Bytes))<<32", "uint64(uint32(p.Bytes-p.Bytes&1))<<32"},
	{"fabric/network.go", "i, _ := n.route(e.Dst, e.A, e.B, e.Time)", "if uint32(e.B) == 1 {\nreturn\n}\ni, _ := n.route(e.Dst, e.A, e.B, e.Time)"},
	{"fabric/credit.go", "\tn, out := t.network, k>>t.shift\n", "if uint32(w.b) == 1 {\nreturn\n}\nn, out := t.network, k>>t.shift\n"},
	{"fabric/faulty.go", "\tif e.Kind == kindAgain {\n", "if e.Kind == kindAgain {\nreturn\n}\nif e.Kind == kindAgain {\n"},
	{"host/bus.go", "\t\ta.Client.Ended(a, i, OK)\n", "if i != 1 {\na.Client.Ended(a, i, OK)\n}\n"},
	{"host/bus.go", "\tb.post(at, KindBus, uint64(a.flight), 0, a)\n\treturn begun\n", "if a.Length != 1 {\nb.post(at, KindBus, uint64(a.flight), 0, a)\n}\nreturn begun\n"},
	{"host/stream.go", "\tif to < a.Length {\n", "if to+1 < a.Length {\n"},
}

// Each planted mistake makes the tests of conservation fail, and not only
// because they know how many bytes there must be: the run itself says that
// bytes have vanished.
func TestMutationsAreNoticed(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	for _, m := range mutations {
		source, err := os.ReadFile(filepath.Join(root, m[0]))
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(string(source), m[1]), "%s: %s", m[0], m[1])
	}
	for i := range min(*mutate, len(mutations)) {
		m := mutations[(*mutateFrom+i)%len(mutations)]
		file := filepath.Join(root, m[0])
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		dir := t.TempDir()
		planted, overlay := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json")
		require.NoError(t, os.WriteFile(planted, []byte(strings.Replace(string(source), m[1], m[2], 1)), 0o600))
		list, err := json.Marshal(map[string]map[string]string{"Replace": {file: planted}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(overlay, list, 0o600))
		out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay", overlay, "-run", "TestEveryByte|TestTheNetwork", ".").CombinedOutput()
		require.Error(t, err, "%s: %s: nothing was noticed", m[0], m[2])
		require.Contains(t, string(out), "bytes have vanished", "%s: %s", m[0], m[2])
	}
}
