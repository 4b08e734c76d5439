/* A library with every kind of field in its states: what it says of itself is in ../manifest.json.
 *
 * A second paragraph is for readers of the source.
 */
//spin:library layout 1.2.3
//spin:needs memory=hpus*mtu+8 user_header=0x20 spaces=entry,handler host_memory=4096
#include <spin.h>
//spin:needs entry_options=op_put,manage_local pt_options=flowctrl pool=hpu
//spin:needs handler=completion packets=last

#include <stdbool.h>

enum { rows = 2 };

typedef uint32_t byte_count;

struct slot {
	uint16_t seq;
	uint8_t data[3];
	uint32_t next SPIN_FIELD("unit=bytes max=64"); /* behind the slot */
};

// State has every type,
// and gaps of all sizes.
typedef struct {
	uint8_t used SPIN_FIELD("default=min(hpus,4)"); // slots
	uint64_t big;
	signed char small;
	/* Wide begins at a multiple of 4.
	 *
	 * And has more to say. */
	int32_t wide SPIN_FIELD("name=width") SPIN_FIELD("min=-5 default=-1");
	short short_ SPIN_FIELD("name=short");
	bool flag SPIN_FIELD("default=1");
	uint8_t : 8;
	byte_count count SPIN_FIELD("unit=bytes");
	float half SPIN_FIELD("default=0.5 min=0 max=1");
	double full;
	int64_t x, y; /* both */
	volatile uint32_t done SPIN_FIELD("unit=counter");
	_Complex double sum;
	_Complex float part;
	void *at; /* in the module's memory */
	struct slot table[rows][rows + 1]; /* of slots */
	struct {
		uint32_t a;
		uint8_t b;
	} pad;
	uint8_t after;
	uint32_t words[4] SPIN_FIELD("default=7");
	uint8_t last;
} State;

/* State is that of headers. */
struct shared_State {
	uint64_t seen; /* headers */
};

/* payload takes a packet.
 * It does so in two lines. */
__attribute__((export_name("take_packet"))) int32_t payload(const ptl_payload_t *p, State *s)
{
	(void)p;
	s->used++;
	return PTL_SUCCESS;
}

SPIN_NEEDS("user_header=0x40 scratchpad=8*hpus") SPIN_NEEDS("packets=first")
SPIN_HANDLER(header)(const ptl_header_t *h, struct shared_State *s)
{
	(void)h;
	s->seen++;
	return PTL_SUCCESS;
}

/* The end. */
SPIN_HANDLER(completion)(const ptl_completion_t *c, State *s)
{
	(void)c, (void)s;
	return PTL_SUCCESS;
}

SPIN_HANDLER(raw)(const uint32_t *p, uint32_t *s)
{
	(void)p;
	return (int32_t)*s;
}

__attribute__((export_name("helper"))) int32_t helper(int32_t x) { return x; }
