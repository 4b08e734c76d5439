/* Adds the words behind a packet's headers, and their sum to its cluster's in the scratchpads. */
#define SPIN_FLAT_SCRATCHPAD
#define SPIN_PAYLOAD aggregate_ph
#include <handler.h>
#include <packets.h>

__handler__ void aggregate_ph(handler_args_t *args)
{
	uint32_t *sums = (uint32_t *)args->task->scratchpad, sum = 0, bytes;
	uint8_t *data;
	GET_IP_UDP_PLD(args->task->pkt_mem, data, bytes);
	/* Up to an end, as a compiler for RV32 makes it: with an index, WebAssembly counts rounds and moves a pointer, which is an instruction more. */
	const uint32_t *word = (const uint32_t *)data, *end = word + bytes / 4;
#pragma clang loop unroll(disable) vectorize(disable)
	for (; word != end; word++)
		sum += *word;
	amo_add(&sums[args->cluster_id], sum);
}
