package spin17

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	handler "github.com/spinsim/spinsim/handlers/rules"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

var rulesExperiment = &experiment.Experiment{
	Name:  "rules",
	Short: "what the rules of handlers come to: how many run, in which order, and what they may not do",
	Long: `Rank 0 puts messages to rank 1, one right after the other, whose handlers take an action. Every step of every handler is watched.
  deposit  payload handlers write their packets to host memory
  drop     the header handler drops the message
  proceed  the header handler leaves the message to the device
  device   payload handlers put --length bytes of their packets back, from the device
  host     payload handlers put --length bytes of host memory back
  add      payload handlers add 1 to the same word of host memory: they read it by DMA, and write it; there is no header handler
  endless  payload handlers do not end by themselves
Where there is a header handler, the first 16 bytes of a message are its user header. Messages may be lost: that is what some rules are about.`,
	Source: "sPIN'17 §3.2",
	Smoke:  []experiment.Values{{"size": 20000}},
	Axes: []experiment.Axis{
		{Name: "action", Kind: report.Text, Of: []string{actionDeposit, actionDrop, actionProceed, actionDevice, actionHost, actionAdd, actionEndless}, Help: "what handlers do; the command's help describes each"},
		{Name: "messages", Kind: report.Count, Least: "1", Most: "1000", Default: "1", Help: "messages"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "16B", Most: "16MiB", Default: "8KiB", Help: "size of a message, with its user header"},
		{Name: "puts", Kind: report.Count, Least: "1", Most: "1000", Default: "1", Help: "puts of a payload handler (device, host)"},
		{Name: "length", Kind: report.Size, Most: "1MiB", Default: "64", Help: "bytes of each (device, host)"},
	},
	Points:  hasRule,
	Run:     runRules,
	Memory:  func(p *experiment.Point) int64 { return p.Footprint(2) + 4*int64(p.Int("size")) + 2<<20 },
	Columns: rulesColumns(),
	Ledger:  ledgerRules(),
	Slots:   experiment.Always(handler.TargetSlot),
	// a handler that fails or is dropped ends no operation
	Undivided: "rules measures what handlers do, not how long a message takes",
	View:      experiment.View{Value: "payloads", Series: []string{"action"}, X: "bytes", Quiet: []string{"messages", "puts", "length"}, Summary: rulesSummary()},
	Notes:     []string{"Bytes in the host memory of rank 1 count if they are those that were sent, in their places."},
}

// Values of the axis action.
const (
	actionDeposit = "deposit"
	actionDrop    = "drop"
	actionProceed = "proceed"
	actionDevice  = "device"
	actionHost    = "host"
	actionAdd     = "add"
	actionEndless = "endless"
)

// ruleStates are the handlers' states of the actions.
var ruleStates = map[string]handler.State{
	actionDeposit: {Header: int32(spin.ProcessData), Action: handler.Deposit},
	actionDrop:    {Header: int32(spin.Drop)},
	actionProceed: {Header: int32(spin.Proceed)},
	actionDevice:  {Header: int32(spin.ProcessData), Action: handler.Device},
	actionHost:    {Header: int32(spin.ProcessData), Action: handler.Host},
	actionAdd:     {Header: int32(spin.ProcessData), Action: handler.Add},
	actionEndless: {Header: int32(spin.ProcessData), Action: handler.Endless},
}

func rulesColumns() []report.Column {
	return []report.Column{
		{Name: "headers", Kind: report.Count, Help: "header handlers that began"},
		{Name: "payloads", Kind: report.Count, Help: "payload handlers that began"},
		{Name: "completions", Kind: report.Count, Help: "completion handlers that began"},
		{Name: "before_event", Kind: report.Count, Help: "of these, those that had ended when the host saw that their message was complete"},
		{Name: "disorder", Kind: report.Count, Help: "handlers that began before those that they must wait for had ended: payload handlers before the header handler, a completion handler before a payload handler"},
		{Name: "active", Kind: report.Count, Help: "the most payload handlers that had begun and not ended, those that waited included"},
		{Name: "moved", Kind: report.Count, Help: "handlers that ended on another HPU than they began on"},
		{Name: "first_hpu", Kind: report.Count, Help: "number of the HPU on which the first payload handler began"},
		{Name: "second_hpu", Kind: report.Count, Help: "that of the second"},
		{Name: "most_cycles", Kind: report.Count, Help: "cycles of the payload handler that took the most"},
		{Name: "longest", Unit: "ns", Kind: report.Duration, Help: "the longest time from the beginning of a payload handler to its end, in which it computed or waited"},
		{Name: "killed", Kind: report.Count, Help: "payload handlers that were ended because of their time (hpu.max_cycles, hpu.max_cycles_per_byte)"},
		{Name: "refused", Kind: report.Count, Help: "puts of handlers that the device refused"},
		{Name: "blocked", Unit: "ns", Kind: report.Duration, Help: "the longest time that a put kept its handler waiting"},
		{Name: "deposited", Unit: "bytes", Kind: report.Size, Help: "bytes of a message in host memory: all, all but the user header, or none"},
		{Name: "word", Kind: report.Count, Help: "the first 8 bytes of host memory at the end, which was 0 before (add)"},
		{Name: "flow_control", Kind: report.Count, Help: "messages that triggered flow control"},
		{Name: "dropped", Kind: report.Count, Help: "packets that were dropped for lack of room"},
		{Name: "sent", Unit: "ns", Kind: report.Duration, Help: "when the NIC of rank 0 had sent the last message"},
	}
}

func rulesSummary() (names []string) {
	names = []string{experiment.ProfileColumn, "action", "messages", "bytes", "puts", "length"}
	for _, c := range rulesColumns() {
		names = append(names, c.Name)
	}
	return names
}

// hasRule refuses devices whose packets have no room for a user header.
func hasRule(p *experiment.Point) (bool, error) {
	if mtu := int(p.Profile.Fabric.MTU); mtu <= handler.UserHeader {
		return false, fmt.Errorf("profile %s: fabric.mtu: %d B, expected more than %d, the user header", p.Profile.Origin.Name, mtu, handler.UserHeader)
	}
	return true, nil
}

// ruling is a running measurement.
type ruling struct {
	*experiment.Point
	watch    ruleWatch
	seen     sim.Time // when the host of rank 1 saw that all messages are complete; 0: never
	sent     sim.Time
	memory   runtime.View      // of rank 1
	back     *experiment.Entry // of rank 0, for what handlers put
	returned int               // bytes that came to it
	bytes    []byte            // of a message
}

func runRules(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &ruling{Point: p, bytes: make([]byte, p.Int("size"))}
	if p.Text("action") != actionAdd { // which counts from zero
		experiment.Pattern(w.bytes, p.Seed)
	}
	cfg := p.Config(ctx, 2)
	cfg.Watch = w.watch.step
	values := experiment.Values{}
	stats, err := experiment.SimulateLossy(ctx, cfg, w.spawn, func(*runtime.Cluster) error { return w.finish(values) })
	if err != nil {
		return nil, err
	}
	values["flow_control"], values["dropped"] = stats.FlowControl, stats.PacketsDropped
	maps.Copy(values, w.watch.values(w.seen))
	if len(p.Handlers) > 0 && stats.PacketsDropped+stats.FlowControl == 0 && values["refused"] == 0 {
		return values, w.obeyed(values)
	}
	return values, nil
}

// obeyed is an error if a user's handlers have done something else than their
// state says. Nothing was in their way.
func (w *ruling) obeyed(values experiment.Values) error {
	action, payloads, killed, deposited := w.Text("action"), values["payloads"].(int), values["killed"].(int), values["deposited"].(int)
	puts := 0
	if action == actionDevice || action == actionHost {
		puts = (payloads - killed) * w.Int("puts") * w.Int("length")
	}
	had, right := "no effect", payloads > 0
	switch action {
	case actionDrop:
		right, had = payloads == 0 && deposited == 0, "PROCESS_DATA or PROCEED"
	case actionProceed:
		right, had = payloads == 0 && deposited == len(w.bytes), "another code than PROCEED"
	case actionDeposit:
		right = right && (killed > 0 || deposited == len(w.bytes)-handler.UserHeader)
	case actionAdd:
		right = right && (killed > 0 || values["word"].(int) > 0)
	case actionEndless:
		right, had = right && killed == payloads, "an end"
	}
	if !right {
		return fmt.Errorf("action %s had %s", action, had)
	}
	if w.returned != puts {
		return fmt.Errorf("action %s of %d payload handlers: %d bytes came back, expected %d", action, payloads, w.returned, puts)
	}
	return nil
}

func (w *ruling) spawn(c *runtime.Cluster) error {
	if err := c.SpawnService(1, "target", w.target); err != nil {
		return err
	}
	return c.Spawn(0, "source", w.source)
}

func (w *ruling) target(p *runtime.Proc) error {
	m, err := handler.TargetSlot.Load(p.Cluster())
	if err != nil {
		return err
	}
	state := ruleStates[w.Text("action")]
	state.Puts, state.Length, state.PT, state.MatchBits = uint64(w.Int("puts")), uint64(w.Int("length")), experiment.ReplyPT, experiment.ReplyBits
	o := handlers.Options{State: &state, Header: handler.Header, Payload: handler.Payload, Completion: handler.Completion}
	if w.watch.headless = w.Text("action") == actionAdd; w.watch.headless {
		o.Header = ""
	}
	installed, err := m.Install(p, o)
	if err != nil {
		return err
	}
	w.memory = p.Alloc(max(len(w.bytes), w.Int("length")))
	arrived, err := experiment.AppendEntry(p.NI(), experiment.RequestPT, experiment.RequestBits, w.memory, installed)
	if err != nil {
		return err
	}
	if _, err := p.NI().CTWait(arrived.CT, uint64(w.Int("messages")*len(w.bytes))); err != nil {
		return err
	}
	w.seen = p.Now()
	return nil
}

func (w *ruling) source(p *runtime.Proc) error {
	back, err := experiment.AppendEntry(p.NI(), experiment.ReplyPT, experiment.ReplyBits, p.Alloc(max(w.Int("length"), 1)), nil)
	if err != nil {
		return err
	}
	w.back = back
	memory := p.Alloc(len(w.bytes))
	copy(memory.Raw(), w.bytes)
	objects := p.NI().Objects()
	sent, err := objects.CTAlloc()
	if err != nil {
		return err
	}
	size := uint64(len(w.bytes))
	md, err := objects.MDBind(&portals.MD{Start: memory.Addr(), Length: size, CT: sent, Options: portals.OptMDEventCTSend})
	if err != nil {
		return err
	}
	for range w.Int("messages") {
		if err := p.NI().Put(portals.Put{MD: md, Length: size, Target: experiment.Peer(1), PT: experiment.RequestPT, MatchBits: experiment.RequestBits}); err != nil {
			return err
		}
	}
	_, err = p.NI().CTWait(sent, uint64(w.Int("messages")))
	w.sent = p.Now()
	return err
}

// finish looks at the host memory of rank 1.
func (w *ruling) finish(values experiment.Values) error {
	memory := w.memory.Snapshot()
	deposited, n := 0, len(w.bytes)-handler.UserHeader
	switch {
	case w.Text("action") == actionAdd:
	case bytes.Equal(memory[:len(w.bytes)], w.bytes):
		deposited = len(w.bytes)
	case bytes.Equal(memory[:n], w.bytes[handler.UserHeader:]):
		deposited = n
	}
	word := 0
	if w.Text("action") == actionAdd && len(memory) >= 8 {
		word = int(binary.LittleEndian.Uint64(memory))
	}
	values["deposited"], values["word"], values["sent"] = deposited, word, w.sent
	back, err := w.back.NI.Objects().CTGet(w.back.CT)
	w.returned = int(back.Success)
	return err
}
