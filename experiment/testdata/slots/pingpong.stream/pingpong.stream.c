/* A second module for slot pingpong.stream, from its contract. */
//spin:library pingpong_stream 1.0
//spin:needs spaces=entry entry_options=op_put
#include <spin.h>

typedef struct {
	uint32_t pt;
	uint32_t padding;
	uint64_t match_bits;
} state_t;

/* puts the packet back to its sender, to its place in the message */
SPIN_HANDLER(stream_payload)(const ptl_payload_t *r, state_t *s)
{
	ptl_process_t sender = {r->source_nid, r->source_pid};
	int result = PtlHandlerPutFromDevice((const void *)(uintptr_t)r->base, r->length, PTL_NO_ACK_REQ, sender, s->pt, s->match_bits,
					     r->offset, 0, r->hdr_data);
	return result < 0 ? PTL_FAIL : PTL_SUCCESS;
}

/* answers a message without payload */
SPIN_HANDLER(stream_completion)(const ptl_completion_t *r, state_t *s)
{
	ptl_process_t sender = {r->source_nid, r->source_pid};
	if (r->mlength != 0)
		return PTL_SUCCESS;
	int result = PtlHandlerPutFromDevice(s, 0, PTL_NO_ACK_REQ, sender, s->pt, s->match_bits, 0, 0, r->hdr_data);
	return result < 0 ? PTL_FAIL : PTL_SUCCESS;
}
