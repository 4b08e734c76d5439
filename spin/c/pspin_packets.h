/* pspin_packets.h: the headers of packets as PsPIN's and FPsPIN's handlers see them, for pspin_compat.h. Of IPv4 and UDP see RFC 791 and
 * RFC 768. PsPIN's numbers are in the host's order, FPsPIN's in that of the network. */
#ifndef PSPIN_PACKETS_H
#define PSPIN_PACKETS_H

#define PSPIN_PACKED __attribute__((__packed__))

typedef struct ip_hdr {
#ifdef FPSPIN
	uint8_t ihl : 4;
	uint8_t version : 4;
#else
	uint8_t version : 4; /* the low bits: not as on the wire */
	uint8_t ihl : 4;
#endif
	uint8_t tos;
	uint16_t length;
	uint16_t identification;
	uint16_t offset;
	uint8_t ttl;
	uint8_t protocol;
	uint16_t checksum;
	uint32_t source_id;
	uint32_t dest_id;
} PSPIN_PACKED ip_hdr_t;

typedef struct udp_hdr {
	uint16_t src_port;
	uint16_t dst_port;
	uint16_t length;
	uint16_t checksum;
} PSPIN_PACKED udp_hdr_t;

#ifdef FPSPIN
typedef struct mac_addr {
	uint8_t data[6];
} PSPIN_PACKED mac_addr_t;

typedef struct eth_hdr {
	mac_addr_t dest;
	mac_addr_t src;
	uint16_t length;
} PSPIN_PACKED eth_hdr_t;

typedef struct slmp_hdr {
	uint16_t flags;
	uint32_t msg_id;
	uint32_t pkt_off;
} PSPIN_PACKED slmp_hdr_t;

typedef struct pkt_hdr {
	eth_hdr_t eth_hdr;
	ip_hdr_t ip_hdr;
	udp_hdr_t udp_hdr;
} PSPIN_PACKED pkt_hdr_t;

typedef struct slmp_pkt_hdr {
	eth_hdr_t eth_hdr;
	ip_hdr_t ip_hdr;
	udp_hdr_t udp_hdr;
	slmp_hdr_t slmp_hdr;
} PSPIN_PACKED slmp_pkt_hdr_t;

#define MKEOM 0x8000
#define MKSYN 0x4000
#define MKACK 0x2000
#define EOM(flags) ((flags) & MKEOM)
#define SYN(flags) ((flags) & MKSYN)
#define ACK(flags) ((flags) & MKACK)
#define SLMP_PAYLOAD_LEN(hdrs) (ntohs((hdrs)->udp_hdr.length) - sizeof(udp_hdr_t) - sizeof(slmp_hdr_t))

static inline uint16_t bswap_16(uint16_t v) { return (uint16_t)(v << 8 | v >> 8); }
static inline uint32_t bswap_32(uint32_t v) { return __builtin_bswap32(v); }
#define htons(v) bswap_16(v)
#define ntohs(v) bswap_16(v)
#define htonl(v) bswap_32(v)
#define ntohl(v) bswap_32(v)

/* The checksum of IP (RFC 1071), in the order of the network. Like FPsPIN's, it turns each word into the host's order and folds the carry at once: slower
 * than a sum that is folded at the end, with the same result. */
static inline uint32_t pspin_ones_sum(uint32_t sum, uint16_t word)
{
	sum += ntohs(word);
	return sum > 0xffff ? sum - 0xffff : sum;
}

static inline uint16_t ip_checksum(void *data, size_t length)
{
	const uint8_t *at = data;
	uint32_t sum = 0xffff;
	uint16_t word;
	for (size_t i = 0; i + 1 < length; i += 2) {
		__builtin_memcpy(&word, at + i, 2);
		sum = pspin_ones_sum(sum, word);
	}
	if (length & 1)
		sum = pspin_ones_sum(sum, at[length - 1]);
	return htons((uint16_t)~sum);
}
#else
typedef struct pkt_hdr {
	ip_hdr_t ip_hdr;
	udp_hdr_t udp_hdr;
} PSPIN_PACKED pkt_hdr_t;
#endif

/* The data behind IP and UDP of a packet. */
#define GET_IP_UDP_PLD(packet, pld_ptr, pld_len) \
	do { \
		const ip_hdr_t *spin_ip = (const ip_hdr_t *)(packet); \
		(pld_len) = spin_ip->length - sizeof(ip_hdr_t) - sizeof(udp_hdr_t); \
		(pld_ptr) = (uint8_t *)(packet) + spin_ip->ihl * 4 + sizeof(udp_hdr_t); \
	} while (0)

#endif
