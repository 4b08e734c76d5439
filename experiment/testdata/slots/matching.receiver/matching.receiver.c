/* A second module for slot matching.receiver, from its contract. */
//spin:library matching_receiver 1.0
//spin:needs spaces=entry entry_options=op_put
//spin:needs handler=header user_header=16
#include <spin.h>

typedef struct {
	uint32_t pt;
	uint32_t reserved;
} state_t;

/* The user header of a large message. */
typedef struct {
	uint64_t total; /* bytes of the message */
	uint64_t tag;   /* match bits under which the sender exposes it */
} announcement_t;

/* gets what the announcement does not carry; any other message takes the default action */
SPIN_HANDLER(header)(const ptl_header_t *r, state_t *s)
{
	const announcement_t *a = (const announcement_t *)(uintptr_t)r->user_hdr;
	if (!(r->hdr_data >> 63))
		return PTL_PROCEED;
	if (r->user_hdr_len < sizeof(*a))
		return PTL_FAIL;
	uint64_t first = r->length - sizeof(*a);
	if (a->total <= first)
		return PTL_PROCESS_DATA;
	ptl_op_t get = {0};
	get.offset = r->offset + first;
	get.length = a->total - first;
	get.target_nid = r->source_nid;
	get.target_pid = r->source_pid;
	get.pt_index = s->pt;
	get.match_bits = a->tag;
	get.remote_offset = first;
	get.options = SPIN_COMPLETE_ENTRY; /* the receive is over when the rest is there */
	int result;
	while ((result = spin_get_from_host(&get)) == SPIN_NO_SPACE)
		PtlHandlerYield();
	return result < 0 ? PTL_FAIL : PTL_PROCESS_DATA_PENDING;
}

/* deposits the first part */
SPIN_HANDLER(payload)(const ptl_payload_t *r, state_t *s)
{
	(void)s;
	int result = PtlHandlerDMAToHostB((const void *)(uintptr_t)r->base, r->host_offset, r->length, PTL_ME_HOST_MEM);
	return result < 0 ? PTL_FAIL : PTL_SUCCESS;
}
