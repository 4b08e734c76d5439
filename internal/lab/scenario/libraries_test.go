package scenario

import _ "github.com/spinsim/spinsim/internal/libraries" // tests load its handlers by name
