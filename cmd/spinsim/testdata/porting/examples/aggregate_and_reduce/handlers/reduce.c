/* A stand-in for the second set: each word to one of the scratchpad. Another file, so that a module
 * of several that include the same header is built. */
#include <handler.h>
#include <packets.h>

__handler__ void reduce_l1_ph(handler_args_t *args)
{
	uint32_t length;
	uint8_t *data;
	GET_IP_UDP_PLD(args->task->pkt_mem, data, length);
	for (uint32_t i = 0; i < length / 4; i++)
		amo_add((uint32_t *)args->task->scratchpad[args->cluster_id] + i, ((uint32_t *)data)[i]);
}

__handler__ void reduce_l1_th(handler_args_t *args)
{
	spin_host_write((uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low, 1, false);
}
