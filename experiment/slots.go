package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/report"
)

// slotsOf lists the slots of the experiment: those of all values of texts and
// flags, with the first value of the other axes.
func slotsOf(e *Experiment) []*handlers.Slot {
	if e.Slots == nil || e.Check() != nil {
		return nil
	}
	values := make([][]any, len(e.Axes))
	for i := range values {
		a := &e.Axes[i]
		all := a.Of
		if a.Kind == report.Flag {
			all = []string{"false", "true"}
		}
		if all == nil {
			first, err := a.initial()
			if err != nil {
				return nil // not reached: Check parses it, too
			}
			values[i] = first[:1]
			continue
		}
		for _, text := range all {
			if v, err := a.parse(text); err == nil {
				values[i] = append(values[i], v)
			}
		}
	}
	return slotsAt(e, values)
}

// Slots lists the slots of all experiments and built-in libraries, in
// alphabetical order.
func Slots() []*handlers.Slot {
	list := handlers.Slots()
	for _, e := range All() {
		for _, slot := range slotsOf(e) {
			if !slices.Contains(list, slot) {
				list = append(list, slot)
			}
		}
	}
	slices.SortFunc(list, func(a, b *handlers.Slot) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func slotNames(list []*handlers.Slot) string {
	var names []string
	for _, slot := range list {
		names = append(names, slot.Name)
	}
	return strings.Join(names, ", ")
}

// slotsHelp describes the slots for a user's modules. "": the experiment has
// none.
func slotsHelp(e *Experiment) string {
	list := slotsOf(e)
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Slots for your own handler modules (--handler SLOT=FILE.wasm); --slots shows what each expects:")
	for _, slot := range list {
		fmt.Fprintf(&b, "\n  %s  %s", slot.Name, slot.Short)
	}
	return b.String()
}

// slotsText describes the contracts of the slots.
func slotsText(e *Experiment) string {
	var b strings.Builder
	for i, slot := range slotsOf(e) {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(slot.Text())
	}
	return b.String()
}

// Fill puts a user's module into a slot of a sweep, "SLOT=FILE.wasm". Without SLOT it goes
// into every slot of the sweep, which must be of one library.
func Fill(s *Sweep, text string) error {
	name, path, named := strings.Cut(text, "=")
	all := slotsOf(s.grid.experiment)
	if !named {
		name, path = "", text
	}
	if path == "" {
		return fmt.Errorf("%q: no file, expected SLOT=FILE.wasm", text)
	}
	if named && !slices.ContainsFunc(all, func(slot *handlers.Slot) bool { return slot.Name == name }) {
		return fmt.Errorf("%q: no slot %s in %s, expected one of %s%s", text, name, s.grid.experiment.Name, slotNames(all), fields.DidYouMean(name, strings.Split(slotNames(all), ", ")))
	}
	if !named {
		all = slotsAt(s.grid.experiment, s.grid.values)
		for _, slot := range all {
			if slot.Library != all[0].Library {
				return fmt.Errorf("%q: %s has several slots, expected SLOT=FILE.wasm with one of %s", text, s.grid.experiment.Name, slotNames(all))
			}
		}
		if len(all) == 0 {
			return fmt.Errorf("%q runs at no point of this sweep: no handlers run there", text)
		}
	}
	l, err := handlers.OpenFile(path, file.ReadRegular)
	if err != nil {
		return err
	}
	for _, slot := range all {
		if named && slot.Name != name {
			continue
		}
		if s.Handlers[slot.Name] != nil {
			return fmt.Errorf("%q: slot %s is given twice", text, slot.Name)
		}
		put(s, slot.Name, l)
	}
	return nil
}

func put(s *Sweep, slot string, l *handlers.Library) {
	if s.Handlers == nil {
		s.Handlers = make(map[string]*handlers.Library)
	}
	s.Handlers[slot] = l
}
