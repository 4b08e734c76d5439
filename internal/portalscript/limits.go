package portalscript

import (
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/portals"
)

func limitFields(l *portals.Limits) (map[string]*int, map[string]*uint64) {
	counts := map[string]*int{
		"max_entries": &l.MaxEntries, "max_unexpected_headers": &l.MaxUnexpectedHeaders, "max_mds": &l.MaxMDs,
		"max_eqs": &l.MaxEQs, "max_cts": &l.MaxCTs, "max_pt_index": &l.MaxPTIndex, "max_iovecs": &l.MaxIOVecs,
		"max_list_size": &l.MaxListSize, "max_triggered_ops": &l.MaxTriggeredOps,
	}
	sizes := map[string]*uint64{
		"max_msg_size": &l.MaxMsgSize, "max_atomic_size": &l.MaxAtomicSize,
		"max_fetch_atomic_size": &l.MaxFetchAtomicSize, "max_waw_ordered_size": &l.MaxWAWOrderedSize,
		"max_war_ordered_size": &l.MaxWAROrderedSize, "max_volatile_size": &l.MaxVolatileSize,
		"max_user_hdr_size": &l.MaxUserHdrSize, "max_payload_size": &l.MaxPayloadSize,
		"max_handler_mem": &l.MaxHandlerMem, "max_initial_state": &l.MaxInitialState,
		"min_fragmentation_limit": &l.MinFragmentationLimit, "max_cycles_per_byte": &l.MaxCyclesPerByte,
	}
	return counts, sizes
}

func limitKeys() string {
	counts, sizes := limitFields(&portals.Limits{})
	keys := slices.Sorted(maps.Keys(counts))
	keys = append(keys, slices.Sorted(maps.Keys(sizes))...)
	keys = append(keys, "features")
	return strings.Join(keys, " ")
}

// limits sets limits from the arguments of a command and reports whether there
// were any.
func (c *command) limits(l *portals.Limits) (bool, error) {
	counts, sizes := limitFields(l)
	given := false
	for _, key := range c.Keys() {
		if p, ok := counts[key]; ok {
			v, err := c.num(key, 0)
			if err != nil {
				return false, err
			}
			*p, given = int(v), true
		}
		if p, ok := sizes[key]; ok {
			v, err := c.num(key, 0)
			if err != nil {
				return false, err
			}
			*p, given = v, true
		}
	}
	if names, ok := c.Arg("features"); ok {
		var words []string
		if names != "none" {
			words = strings.Split(names, "|")
		}
		bits, err := c.bitsOf(words, portals.FeatureNames)
		if err != nil {
			return false, err
		}
		l.Features, given = portals.Features(bits), true
	}
	return given, nil
}

// These bounds keep a script from asking for gigabytes.
const (
	maxScriptPT     = 1 << 12
	maxScriptAtomic = 1 << 16 // also of volatile messages
)

func cmdDevice(w *world, c *command, _ *iface) error {
	if _, err := c.limits(&w.device); err != nil {
		return err
	}
	if w.device.MaxPTIndex < 0 || w.device.MaxPTIndex > maxScriptPT {
		return c.Errorf("max_pt_index %d, want 0 to %d", w.device.MaxPTIndex, maxScriptPT)
	}
	if most := max(w.device.MaxFetchAtomicSize, w.device.MaxVolatileSize); most > maxScriptAtomic {
		return c.Errorf("size %d of fetching atomics or volatile messages, largest is %d", most, maxScriptAtomic)
	}
	if len(c.flags) > 0 {
		bits, err := c.bits(portals.FeatureNames)
		if err != nil {
			return err
		}
		w.device.Features = portals.Features(bits)
	}
	return nil
}

func cmdLimits(w *world, c *command, f *iface) error {
	l := f.ni.Limits()
	counts, sizes := limitFields(&l)
	for _, key := range c.pos {
		var err error
		if p, ok := counts[key]; ok {
			err = w.printf("%d: %s = %d", c.proc, key, *p)
		} else if p, ok := sizes[key]; ok {
			err = w.printf("%d: %s = %d", c.proc, key, *p)
		} else if key == "features" {
			err = w.printf("%d: features = %v", c.proc, l.Features)
		} else {
			err = c.Errorf("unknown limit %q", key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
