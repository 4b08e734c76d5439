package smmutest

import (
	_ "embed"

	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/smmu"
)

//go:embed qfdb.yaml
var qfdb []byte

// Spec returns the SMMU of an ExaNeSt node with some fields changed, each
// "field=value" as in a profile. One error lists all mistakes.
func Spec(overrides ...string) (*smmu.Spec, error) {
	spec := new(smmu.Spec)
	if err := strictyaml.Load("qfdb.yaml", qfdb, spec, "", overrides); err != nil {
		return nil, err
	}
	return spec, spec.Validate()
}
