package experiment

import (
	"strings"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
)

// devices are profiles that the sweeps of a plan share, so that each is loaded
// and recorded once, and not for each row of the ledger.
type devices struct {
	loaded   map[string]*profile.Profile
	recorded map[*profile.Profile]provenance.Profile
}

// load loads a profile with overrides.
func (d *devices) load(name string, overrides []string) (*profile.Profile, error) {
	if d == nil {
		return profile.Load(name, overrides...)
	}
	key := strings.Join(append([]string{name}, overrides...), "\n")
	if p := d.loaded[key]; p != nil {
		return p, nil
	}
	p, err := profile.Load(name, overrides...)
	if err == nil {
		d.loaded[key] = p
	}
	return p, err
}

// record records a profile.
func (d *devices) record(p *profile.Profile) (one provenance.Profile, err error) {
	if d == nil {
		return provenance.NewProfile(p)
	}
	one, known := d.recorded[p]
	if !known {
		if one, err = provenance.NewProfile(p); err == nil {
			d.recorded[p] = one
		}
	}
	return one, err
}
