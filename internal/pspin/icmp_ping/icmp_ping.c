/* Answers an ICMP echo request, as FPsPIN's example icmp_ping does: addresses of Ethernet and IP change places, type and checksum of ICMP are new, the
 * packet goes back, and the handler waits until it has left. With FAST_CHECKSUM the sum is over words as they lie there, and folded once at the end:
 * FPsPIN's example since May 2024, whose round trips are in the ledger. Before that it was the header's ip_checksum, whose cycles are in FPsPIN's README. */
#define FPSPIN
#define SPIN_PAYLOAD icmp_ping_ph
#include <handler.h>
#include <packets.h>
#include <spin_dma.h>

enum { ECHO_REPLY = 0 };

typedef struct {
	uint8_t type, code;
	uint16_t checksum;
	uint32_t rest;
} icmp_hdr_t;

typedef struct {
	eth_hdr_t eth;
	ip_hdr_t ip;
	icmp_hdr_t icmp;
} PSPIN_PACKED echo_t;

#ifdef FAST_CHECKSUM
/* RFC 1071: a sum of words in either byte order has the checksum in that order. */
static inline uint16_t icmp_checksum(void *data, uint32_t length)
{
	const uint16_t *word = data, *end = word + length / 2;
	uint32_t sum = 0;
#pragma clang loop unroll(disable) vectorize(disable)
	for (; word != end; word++)
		sum += *word;
	if (length & 1)
		sum += *(const uint8_t *)word;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}
#else
#define icmp_checksum ip_checksum
#endif

__handler__ void icmp_ping_ph(handler_args_t *args)
{
	echo_t *echo = args->task->pkt_mem;
	mac_addr_t mac = echo->eth.src;
	uint32_t node = echo->ip.source_id;
	uint16_t length = ntohs(echo->ip.length);
	echo->eth.src = echo->eth.dest;
	echo->eth.dest = mac;
	echo->ip.source_id = echo->ip.dest_id;
	echo->ip.dest_id = node;
	echo->icmp.type = ECHO_REPLY;
	echo->icmp.checksum = 0;
	echo->icmp.checksum = icmp_checksum((uint8_t *)echo + sizeof(eth_hdr_t) + sizeof(ip_hdr_t), length - sizeof(ip_hdr_t));
	spin_cmd_t sent;
	spin_send_packet(echo, length + sizeof(eth_hdr_t), &sent);
	spin_cmd_wait(sent);
}
