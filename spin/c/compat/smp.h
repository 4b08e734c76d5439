#include <p4spin.h>
