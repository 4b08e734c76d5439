/* Another file of the module. */
#include "pspin_memory.h"

uint64_t host(task_t *task)
{
	return (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
}
