package scenario

import _ "github.com/spinsim/spinsim/internal/libraries" // whose handlers tests load by name
