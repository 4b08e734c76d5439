/* A second module for slot txlog.log, from its contract. */
//spin:library txlog_log 1.0
//spin:needs spaces=handler
#include <spin.h>

typedef struct {
	uint64_t next; /* records so far */
	uint64_t last; /* places of the log, less one */
} state_t;

typedef struct {
	uint64_t number, offset, length;
	uint32_t nid, pid;
	uint64_t tag;
	uint32_t kind, spare;
} record_t;

enum { READ = 1, WRITE = 2 };

/* put takes the next number and writes the record to its place, before anything that the NIC reads or writes later. */
static int put(state_t *s, record_t *record)
{
	uint64_t before = PtlHandlerFAdd(&s->next, 1);
	record->number = before + 1;
	return PtlHandlerDMAToHostB(record, (before & s->last) * sizeof(*record), sizeof(*record), PTL_HANDLER_HOST_MEM);
}

SPIN_HANDLER(log_header)(const ptl_header_t *r, state_t *s)
{
	record_t record = {0, r->offset, r->mlength, r->source_nid, r->source_pid, r->match_bits, READ, 0};
	if (r->type != SPIN_MSG_GET && r->type != SPIN_MSG_FETCH_ATOMIC && r->type != SPIN_MSG_SWAP)
		return PTL_PROCESS_DATA; /* it only writes: the completion handler logs it */
	return put(s, &record) < 0 ? PTL_FAIL : PTL_PROCEED;
}

SPIN_HANDLER(log_completion)(const ptl_completion_t *r, state_t *s)
{
	record_t record = {0, r->offset, r->mlength, r->source_nid, r->source_pid, r->match_bits, WRITE, 0};
	return put(s, &record) < 0 ? PTL_FAIL : PTL_SUCCESS;
}
