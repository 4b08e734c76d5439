package experiment_test

import (
	_ "github.com/spinsim/spinsim/internal/libraries" // tests of the kit load its handlers by name
	_ "github.com/spinsim/spinsim/internal/wings"     // tests of the kit run its experiments
)
