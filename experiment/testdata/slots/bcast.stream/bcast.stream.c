/* A second module for slot bcast.stream, from its contract: each packet goes on at once. */
//spin:library bcast_stream 1.0
//spin:needs spaces=entry entry_options=op_put
#include <spin.h>

/* The host sets these by name: they may stand in any order. */
typedef struct {
	uint32_t root, ranks SPIN_FIELD("default=ranks min=1"), rank SPIN_FIELD("default=rank");
	uint32_t pt;
	uint64_t match_bits;
} state_t;

/* forward puts bytes to the children: the ranks, counted from the root, that differ from this one in a bit above all of its own. */
static int forward(const state_t *s, const void *bytes, uint32_t length, uint64_t at, uint64_t hdr_data)
{
	uint64_t me = (s->rank + (uint64_t)s->ranks - s->root) % s->ranks;
	for (uint64_t bit = 1; bit < s->ranks; bit <<= 1) {
		if (bit <= me || me + bit >= s->ranks)
			continue;
		ptl_process_t child = {(uint32_t)((me + bit + s->root) % s->ranks), 0};
		if (PtlHandlerPutFromDevice(bytes, length, PTL_NO_ACK_REQ, child, s->pt, s->match_bits, at, 0, hdr_data) < 0)
			return PTL_FAIL;
	}
	return PTL_SUCCESS;
}

/* puts the packet to every child and deposits it */
SPIN_HANDLER(stream_payload)(const ptl_payload_t *r, state_t *s)
{
	const void *bytes = (const void *)(uintptr_t)r->base;
	int code = forward(s, bytes, r->length, r->host_offset, r->hdr_data);
	if (PtlHandlerDMAToHostB(bytes, r->host_offset, r->length, PTL_ME_HOST_MEM) < 0)
		return PTL_FAIL;
	return code;
}

/* passes a message without payload on */
SPIN_HANDLER(stream_completion)(const ptl_completion_t *r, state_t *s)
{
	return r->mlength == 0 ? forward(s, s, 0, r->offset, r->hdr_data) : PTL_SUCCESS;
}
