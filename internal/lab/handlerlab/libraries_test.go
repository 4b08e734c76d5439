package handlerlab

import _ "github.com/spinsim/spinsim/internal/libraries" // tests load its handlers by name
