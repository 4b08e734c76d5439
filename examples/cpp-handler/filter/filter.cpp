/* A filter: packets whose first four bytes are the wanted number are deposited in host memory and counted; all others are
 * counted and dropped. */
//spin:library filter_cpp 1.0
//spin:needs spaces=entry
#include <spin.h>

/* The state lies in HPU memory. The host sets wanted, the handlers count. */
struct state_t {
	uint64_t passed SPIN_FIELD("unit=packets"); /* deposited */
	uint64_t dropped SPIN_FIELD("unit=packets");
	uint32_t wanted; /* first four bytes of packets that pass */
};

/* A packet, as values of any type that lie in it. */
class packet {
	const ptl_payload_t &record;

public:
	explicit packet(const ptl_payload_t *p) : record(*p) {}

	/* begins reports whether the packet begins with a T of this value. */
	template <typename T> bool begins(T value) const
	{
		return record.length >= sizeof(T) && *reinterpret_cast<const T *>(record.base) == value;
	}

	bool deposit() const
	{
		return PtlHandlerDMAToHostB(reinterpret_cast<const void *>(record.base), record.host_offset, record.length, PTL_ME_HOST_MEM) >= 0;
	}
};

/* payload looks at the first four bytes of a packet. */
SPIN_HANDLER(payload)(const ptl_payload_t *p, state_t *s)
{
	packet it(p);

	if (!it.begins(s->wanted)) {
		PtlHandlerFAdd(&s->dropped, 1);
		return PTL_DROP;
	}
	PtlHandlerFAdd(&s->passed, 1);
	return it.deposit() ? PTL_SUCCESS : PTL_FAIL;
}
