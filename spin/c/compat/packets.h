#include <pspin_compat.h>
