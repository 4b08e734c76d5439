/* A stand-in for the first set of handlers of PsPIN's example: the sum of all words, with the
 * scratchpads taken for one address. It is compiled with either set. */
#include <handler.h>
#include <packets.h>

__handler__ void aggregate_global_ph(handler_args_t *args)
{
	uint32_t *sum = (uint32_t *)args->task->scratchpad, length;
	uint8_t *data;
	GET_IP_UDP_PLD(args->task->pkt_mem, data, length);
	for (uint32_t i = 0; i < length / 4; i++)
		amo_add(sum, ((uint32_t *)data)[i]);
}

__handler__ void aggregate_global_th(handler_args_t *args)
{
	uint64_t host = (uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low;
	spin_host_write(host, *(uint32_t *)args->task->scratchpad, false);
}
