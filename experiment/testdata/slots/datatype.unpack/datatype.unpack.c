/* A second module for slot datatype.unpack, from its contract. Each packet is looked up from the root of the tree, unless all
 * runs are equal; checkpoints are for faster modules. */
//spin:library datatype_unpack 1.0
//spin:needs spaces=entry entry_options=op_put
#include <spin.h>

/* The library's state: the host writes its bytes. Nodes and tables lie behind it. */
typedef struct {
	uint32_t strategy, depth;
	uint64_t size;
	int64_t origin; /* of displacement 0, from where the entry would deposit the message */
	uint64_t block;
	int64_t stride;
	uint32_t root, checkpoints, interval, pieces;
	uint64_t packets, runs, seeks;
	struct {
		uint32_t nid, pid, pt, packet;
		uint64_t bits, offset;
		uint32_t done_ct, self_pt, workers, batch, spare, buffers;
	} send; /* of another handler */
} state_t;
_Static_assert(sizeof(state_t) == 136, "the state");

enum { VECTOR, LEAF = 0, LOOP, BLOCKS, LIST };

typedef struct {
	uint32_t kind, child;
	uint64_t count;
	int64_t stride;
	uint64_t size;
} node_t;

typedef struct {
	int64_t place;
	uint64_t end;
} entry_t;

/* walk writes the bytes from..to of the stream of a node at a place; bytes has the first. */
static int walk(const state_t *s, const node_t *n, int64_t place, uint64_t from, uint64_t to, const char *bytes)
{
	const char *behind = (const char *)(s + 1);
	if (n->kind == LEAF)
		return PtlHandlerDMAToHostB(bytes, (uint64_t)place + from, (uint32_t)(to - from), PTL_ME_HOST_MEM);
	const node_t *each = (const node_t *)(behind + n->child);
	const entry_t *table = (const entry_t *)(behind + n->child);
	uint64_t begin = 0, i = 0;
	if (n->kind == LOOP) {
		i = from / each->size;
		begin = i * each->size;
	}
	for (; i < n->count && from < to; i++) {
		uint64_t end = n->kind == LOOP ? begin + each->size : table[i].end;
		uint64_t last = end < to ? end : to;
		if (from < last) {
			node_t leaf = {.kind = LEAF};
			const node_t *child = &leaf;
			if (n->kind == LOOP)
				child = each;
			else if (n->kind == LIST)
				child = (const node_t *)(behind + ((const uint64_t *)(table + n->count))[i]);
			int64_t at = n->kind == LOOP ? (int64_t)i * n->stride : table[i].place;
			int result = walk(s, child, place + at, from - begin, last - begin, bytes);
			if (result < 0)
				return result;
			bytes += last - from;
			from = last;
		}
		begin = end;
	}
	return PTL_OK;
}

SPIN_HANDLER(unpack)(const ptl_payload_t *r, state_t *s)
{
	uint64_t from = s->pieces ? r->host_offset : r->offset, to = from + r->length;
	int64_t origin = s->origin + (int64_t)(r->host_offset - from);
	const char *bytes = (const char *)(uintptr_t)r->base;
	int result;
	if (to > s->size || (!s->pieces && r->mlength > s->size))
		return PTL_FAIL;
	if (s->strategy == VECTOR) {
		result = PTL_OK;
		while (from < to && result >= 0) {
			uint64_t run = from / s->block, in = from % s->block;
			uint64_t n = s->block - in < to - from ? s->block - in : to - from;
			result = PtlHandlerDMAToHostB(bytes, (uint64_t)(origin + (int64_t)run * s->stride) + in, (uint32_t)n, PTL_ME_HOST_MEM);
			bytes += n, from += n;
		}
	} else {
		result = walk(s, (const node_t *)((const char *)(s + 1) + s->root), origin, from, to, bytes);
	}
	return result < 0 ? PTL_FAIL : PTL_SUCCESS;
}
