/* What all files of the module include: the handlers' names, and how large their memories are. */
#define SPIN_HEADER pspin_hh
#define SPIN_PAYLOAD pspin_ph
#define SPIN_COMPLETION pspin_th
#define SPIN_HANDLER_MEM 64
#define SPIN_SCRATCHPAD 128
#include <handler.h>

uint64_t host(task_t *task);
