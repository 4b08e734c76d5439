/* Looks up a packet's first 8 bytes in a table of 1 MiB in L2, by their hash, stores what it finds in the packet's first word, and writes the packet to
 * host memory. The hash is Bob Jenkins' of 1996 (lookup2), as PsPIN's example filtering has it. */
#define SPIN_HANDLER_MEM 1048576
#define PSPIN_L2_PACKETS
#define SPIN_PAYLOAD filtering_ph
#include <handler.h>
#include <packets.h>
#include <spin_dma.h>

enum { KEY_BYTES = 8, TABLE_WORDS = SPIN_HANDLER_MEM / 4 };

#define MIX(x, y, z, shifted) ((x) = ((x) - (y) - (z)) ^ (shifted))

/* Byte by byte, as a compiler for RV32 reads it: WebAssembly would read words at any address. */
static inline uint32_t word_of(const volatile uint8_t *b) { return b[0] + ((uint32_t)b[1] << 8) + ((uint32_t)b[2] << 16) + ((uint32_t)b[3] << 24); }

static inline uint32_t hash(const uint8_t *key)
{
	uint32_t a = 0x9e3779b9u + word_of(key), b = 0x9e3779b9u + word_of(key + 4), c = 0xfeedbeefu + KEY_BYTES;
	MIX(a, b, c, c >> 13);
	MIX(b, c, a, a << 8);
	MIX(c, a, b, b >> 13);
	MIX(a, b, c, c >> 12);
	MIX(b, c, a, a << 16);
	MIX(c, a, b, b >> 5);
	MIX(a, b, c, c >> 3);
	MIX(b, c, a, a << 10);
	MIX(c, a, b, b >> 15);
	return c;
}

__handler__ void filtering_ph(handler_args_t *args)
{
	task_t *task = args->task;
	const uint32_t *table = task->handler_mem;
	*(uint32_t *)task->l2_pkt_mem = table[FAST_MOD(hash(task->pkt_mem), TABLE_WORDS)];
	spin_cmd_t written;
	spin_dma_to_host((uint64_t)task->host_mem_high << 32 | task->host_mem_low, task->l2_pkt_mem, task->pkt_mem_size, 0, &written);
}
