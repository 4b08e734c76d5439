/* time.h: there is no clock but spin_cycles(); the header is for sources that include it. */
#ifndef SPIN_TIME_H
#define SPIN_TIME_H

#include <stddef.h>

typedef long long time_t;
typedef unsigned long clock_t;

#endif
