/* In place of the library: the handlers here need nothing of it but that it is found. */
#define UTHASH_STAND_IN 1
