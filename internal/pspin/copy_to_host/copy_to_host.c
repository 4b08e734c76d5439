/* Writes a packet to host memory, as many bytes as its IP header says. */
#define SPIN_PAYLOAD copy_to_host_ph
#include <handler.h>
#include <packets.h>
#include <spin_dma.h>

__handler__ void copy_to_host_ph(handler_args_t *args)
{
	task_t *task = args->task;
	const ip_hdr_t *ip = task->pkt_mem;
	spin_cmd_t written;
	spin_dma_to_host((uint64_t)task->host_mem_high << 32 | task->host_mem_low, task->pkt_mem, ip->length, 1, &written);
}
