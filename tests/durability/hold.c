/* Holds the fsync of a server while the file $HOLD exists, and writes one byte to $HOLD.ms for each millisecond. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void hold(void) {
    const char *flag = getenv("HOLD");
    const struct timespec millisecond = {0, 1000000};
    char path[4096];
    snprintf(path, sizeof path, "%s.ms", flag);
    while (access(flag, F_OK) == 0) {
        int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (write(file, ".", 1) < 0) abort();
        close(file);
        nanosleep(&millisecond, 0);
    }
}

int fsync(int file) {
    hold();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    hold();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
