/* icmp_ping with the checksum that FPsPIN's example has since May 2024. */
#define FAST_CHECKSUM
#include "../icmp_ping/icmp_ping.c"
