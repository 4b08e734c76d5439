package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/capture"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/trace"
)

// CaptureFlags are the flags that write packets on links into a capture file.
type CaptureFlags struct {
	name    string
	at      []string
	capture *capture.Capture
}

// Register adds the flags.
func (f *CaptureFlags) Register(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "pcap", "", "write the packets of the run for Wireshark: `FILE.pcapng`; Wireshark needs spinsim pcap --dissector to decode them")
	c.Flags().StringArrayVar(&f.at, "pcap-at", nil, "capture only at this `PLACE`: node=3 (both directions of its link), link=NAME as in --links, or all links; may be repeated (default: each packet once, on its node's link)")
}

// Wanted reports whether a file is wanted.
func (f *CaptureFlags) Wanted() bool { return f.name != "" }

// Check checks the flags before anything runs.
func (f *CaptureFlags) Check() error {
	places, err := capture.ParsePlaces(f.at)
	switch {
	case err != nil:
		return fmt.Errorf("--pcap-at: %w", err)
	case !f.Wanted() && f.at != nil:
		return errors.New("--pcap-at: says where, but --pcap is not given, which says into which file")
	case !f.Wanted():
		return nil
	case !strings.HasSuffix(f.name, ".pcapng"):
		return fmt.Errorf("--pcap: cannot write %q files, want a name that ends in .pcapng", filepath.Ext(f.name))
	}
	f.capture = capture.New(places)
	return nil
}

// Hook is for runtime.Config.Capture. nil: nothing is captured. Check must come
// first.
func (f *CaptureFlags) Hook() runtime.Capture {
	if f.capture == nil {
		return nil
	}
	return f.capture.Attach
}

// FullError is the error if packets take more memory than there is beside a
// run.
type FullError struct {
	Left int64 // bytes for packets
}

// Error names the memory, and what the user can do.
func (e *FullError) Error() string {
	return fmt.Sprintf("--pcap: its packets are held until the run ends, and take more than %s, which is what the memory limit leaves for them: capture at fewer places (--pcap-at), or make the run shorter",
		sim.Size(e.Left).Rounded())
}

// Bound returns a context that ends a run when its packets take more memory
// than the limit leaves beside need, the run's own memory in bytes.
func (f *CaptureFlags) Bound(ctx context.Context, limit *MemoryFlag, need int64) context.Context {
	left := Beside(limit.Bytes(), need, 1)
	if f.capture == nil || left == 0 {
		return ctx
	}
	ctx, end := context.WithCancelCause(ctx)
	f.capture.Limit(left, func() { end(&FullError{left}) })
	return ctx
}

// write writes the file, if it is wanted. of is the run's record, and cut says
// why the run has ended early.
func (f *CaptureFlags) write(of *provenance.Record, cut string) error {
	if f.capture == nil {
		return nil
	}
	comment := of.Command + "; " + strings.Join(of.Lines(), "; ")
	program, hash, err := of.Seal()
	if err != nil {
		return err
	}
	out, err := file.Create(f.name)
	if err != nil {
		return fmt.Errorf("--pcap: %w", err)
	}
	packets := trace.NewPcapng(out, "spinsim "+of.Build.String(), comment)
	packets.Seal(program, hash, cut)
	if err := f.capture.Write(packets); err != nil {
		return errors.Join(err, out.Discard())
	}
	return out.Commit()
}
