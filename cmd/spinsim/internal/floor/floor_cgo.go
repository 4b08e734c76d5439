//go:build linux && cgo

package floor

/*
#include <sys/resource.h>
#include <unistd.h>

// The C library calls it before Go begins. Go with threads of C needs more than
// Go alone, and dies at some limits before the first line of the program.
__attribute__((constructor)) static void least(void) {
	static const struct { int resource; rlim_t least; char line[80]; } all[] = {
		{RLIMIT_AS, 1792ul << 20, "spinsim: ulimit -v allows less than 1.75 GiB, expected at least 2 GiB\n"},
		{RLIMIT_DATA, 256ul << 20, "spinsim: ulimit -d allows less than 256 MiB, expected at least 512 MiB\n"},
		{RLIMIT_NOFILE, 16, "spinsim: ulimit -n allows less than 16 open files, expected at least 64\n"},
	};
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		struct rlimit is;
		if (getrlimit(all[i].resource, &is) == 0 && is.rlim_cur < all[i].least) {
			unsigned n = 0;
			while (all[i].line[n]) n++;
			(void)!write(2, all[i].line, n);
			_exit(1);
		}
	}
}
*/
import "C"
