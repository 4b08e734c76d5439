package experiment_test

import (
	_ "github.com/spinsim/spinsim/internal/libraries" // whose handlers tests of the kit load by name
	_ "github.com/spinsim/spinsim/internal/wings"     // whose experiments they run
)
