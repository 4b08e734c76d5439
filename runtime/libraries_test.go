package runtime_test

import _ "github.com/spinsim/spinsim/internal/libraries" // whose handlers tests load by name
