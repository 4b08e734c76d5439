package cli

import (
	"fmt"

	"github.com/spinsim/spinsim/profile"
)

// LoadProfile loads the profile of the flag --profile with the overrides of
// --set. Its error names the flag.
func LoadProfile(name string, overrides ...string) (*profile.Profile, error) {
	p, err := profile.Load(name, overrides...)
	if err != nil {
		return nil, BlameProfile(name, err)
	}
	return p, nil
}

// BlameProfile names the flag that an error of a profile comes from.
func BlameProfile(name string, err error) error {
	if _, alone := profile.Load(name); alone != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	return fmt.Errorf("--set: %w", err)
}
