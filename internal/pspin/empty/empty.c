/* The least handler. */
#define SPIN_PAYLOAD empty_ph
#include <handler.h>

__handler__ void empty_ph(handler_args_t *args) { (void)args; }
