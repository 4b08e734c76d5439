// The memory that a rank's process shares with the simulator, and whose turn it
// is. One of the two runs at a time: the process until it hands over, and the
// simulator until it hands back. So nothing here needs a lock. Package mpirun
// has the same layout in link.go.
#ifndef SPINSIM_LINK_H
#define SPINSIM_LINK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { LINK_VERSION = 4, LINK_POSTS = 256, LINK_DONE = 1024, LINK_INJECT = 128 };

// How many endpoints a process has at a time.
enum { LINK_ENDPOINTS = 64 };

// The longest vector of an atomic operation, bytes.
enum { LINK_ATOMIC = 4096 };

// Whose turn it is: a futex.
enum { TURN_PROCESS, TURN_SIMULATOR };

// What the process is in. Before LINK_RUNNING and after it, polls are answered
// without the simulation.
enum { LINK_STARTING, LINK_RUNNING, LINK_ENDED };

// Why the process hands over.
enum link_why {
	WHY_INIT = 1,  // MPI_Init has ended
	WHY_WAIT,      // for a completion
	WHY_LOOK,      // for completions; it goes on without any
	WHY_CLOCK,     // it reads the time
	WHY_SLEEP,     // for arg picoseconds
	WHY_FULL,      // the posts have no more room
	WHY_FINALIZE,  // MPI_Finalize begins
	WHY_REGION,    // MPI_Pcontrol with the level arg
	WHY_REFUSED,   // a call of MPI that cannot be: arg is its place in refusedCalls
	WHY_COLLECTIVE, // in collective; arg is then 1 if the NICs do it
};

enum post_kind {
	POST_SEND = 1, // tagged: data behind addr, or inlined
	POST_RECEIVE,
	POST_PEEK,     // look for a message that has come
	POST_CANCEL,   // the receive with this context
	POST_REGISTER, // memory: addr and length, key, rights in access
	POST_FORGET,   // the memory of a key
	POST_WRITE,    // one-sided: the peer's memory is remote, of a key
	POST_READ,
	POST_ATOMIC,   // without a result
	POST_FETCH,    // the result goes to result
	POST_COMPARE,  // likewise; compare has the operands
};

// Rights of registered memory: of libfabric, FI_REMOTE_READ and FI_REMOTE_WRITE.
enum { ACCESS_READ = 1 << 12, ACCESS_WRITE = 1 << 13 };

enum {
	POST_INLINED = 1,  // data is in the post
	POST_QUIET = 2,    // no completion
	POST_DELIVERED = 4, // complete when the message has a receive
	POST_CLAIM = 8,    // of a peek: nobody else finds the message
	POST_CLAIMED = 16, // a receive of the message that a peek has claimed
	POST_DISCARD = 32, // of a claimed message: its data is not wanted
	POST_MESSAGE = 64, // untagged: a space of its own
	POST_COUNTED = 128, // a quiet one has a completion, too: for a counter
	POST_VIRTUAL = 256, // of memory: remote addresses are those of the process
	POST_SEEN = 512,   // of memory: each access of others has a completion here
	POST_MULTI = 1024, // a receive of several messages, until less than access bytes are left
	POST_VECTOR = 2048, // pieces of memory, listed in inlined
};

enum link_type { TYPE_NONE, TYPE_INT32, TYPE_INT64, TYPE_FLOAT32, TYPE_FLOAT64 };
enum link_op { OP_NONE, OP_SUM, OP_MIN, OP_MAX };
enum link_call { CALL_NONE, CALL_ALLREDUCE, CALL_REDUCE, CALL_BCAST, CALL_BARRIER };

struct link_post {
	uint32_t kind, flags;
	uint64_t context;
	uint64_t addr, length;
	uint64_t tag, ignore;
	uint64_t data; // remote completion data of a send
	int32_t peer;  // rank; -1: any
	uint32_t has_data;
	uint16_t endpoint, peer_endpoint;
	uint8_t op, type;   // of an atomic operation: of libfabric
	uint16_t pieces;
	uint64_t remote, key;
	uint64_t result, compare; // addresses
	uint64_t access;
	uint8_t inlined[LINK_INJECT];
};

struct link_done {
	uint64_t context;
	uint64_t flags; // of libfabric
	uint64_t length;
	uint64_t addr;
	uint64_t data;
	uint64_t tag;
	int32_t error; // positive: of libfabric
	int32_t source;
	uint64_t over; // bytes of the message that did not fit
	uint16_t endpoint, source_endpoint;
	uint32_t quiet; // only for a counter
};

struct link {
	uint32_t version, size;
	_Atomic uint32_t turn;
	uint32_t why;
	uint32_t state;
	int32_t rank, ranks;
	int32_t pid;
	uint64_t arg;
	uint64_t now;                 // virtual time, picoseconds
	uint32_t posted;              // in posts; the simulator sets it to 0
	uint32_t done_head, done_tail; // in done, modulo LINK_DONE
	uint32_t timed; // the simulator wants to know used
	uint64_t used;  // time of a processor that the main thread has had in all, ns
	// the collective of all ranks that the process calls
	struct {
		uint64_t send, receive; // send 0: in place; of a broadcast only receive
		uint64_t count; // of elements; of a broadcast of bytes
		uint32_t type, op; // of link_type and link_op
		uint32_t call; // of link_call
		int32_t root;
	} collective;
	// the NICs may take allreduces (1) and other calls, too (2), and have one under way
	uint32_t takes, taking;
	struct link_post posts[LINK_POSTS];
	struct link_done done[LINK_DONE];
};

// link_open connects the process with the simulator; NULL: it was not started by
// one, or errno.
struct link *link_open(void);

// link_yield hands over, and returns when it is the process's turn again.
void link_yield(struct link *l, enum link_why why, uint64_t arg);

// link_post returns room for a post, and counts in link_posted.
struct link_post *link_post(struct link *l);
extern uint32_t link_posted;

// spinsim_alone is whether this process is no MPI program.
int spinsim_alone(void);

// spinsim_started begins virtual time, for a process without MPI.
void spinsim_started(void);

// spinsim_heap begins a heap that is the same in each run.
void spinsim_heap(void);

// spinsim_before says whether memory is on the heap before that.
int spinsim_before(const void *p);

// spinsim_inside is whether this thread's time is virtual.
int spinsim_inside(void);

// the link of this process; NULL: there is none
extern struct link *spinsim_link;

#endif
