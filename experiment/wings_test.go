package experiment_test

import _ "github.com/spinsim/spinsim/internal/wings" // whose experiments the tests of the kit run
