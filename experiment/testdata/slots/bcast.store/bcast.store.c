/* A second module for slot bcast.store, from its contract. It has no payload handler: the device deposits the message,
 * and the completion handler puts it from the entry's memory to the children. */
//spin:library bcast_store 1.0
//spin:needs spaces=entry entry_options=op_put
#include <spin.h>

typedef struct {
	uint32_t root, ranks SPIN_FIELD("default=ranks min=1"), rank SPIN_FIELD("default=rank");
	uint32_t pt;
	uint64_t match_bits;
} state_t;

SPIN_HANDLER(store_completion)(const ptl_completion_t *r, state_t *s)
{
	uint64_t me = (s->rank + (uint64_t)s->ranks - s->root) % s->ranks;
	if (r->failed || r->dropped_bytes)
		return PTL_SUCCESS; /* its event says so */
	for (uint64_t bit = 1; bit < s->ranks; bit <<= 1) {
		if (bit <= me || me + bit >= s->ranks)
			continue;
		ptl_process_t child = {(uint32_t)((me + bit + s->root) % s->ranks), 0};
		int result;
		while ((result = PtlHandlerPutFromHost(r->offset, r->mlength, PTL_NO_ACK_REQ, child, s->pt, s->match_bits,
						       r->offset, 0, r->hdr_data)) == SPIN_NO_SPACE)
			PtlHandlerYield(); /* until one of the NIC's commands is done */
		if (result < 0)
			return PTL_FAIL;
	}
	return PTL_SUCCESS;
}
