/* Loaded before the C library (LD_PRELOAD): writes to SQLite's files fail with the error number in the file that
 * BLINDFOLD_DISK_ERRNO names, read at every write; 0 lets them through. A process that cannot read the file ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int refused(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    if (!strstr(path, ".sqlite")) return 0;
    const char *named = getenv("BLINDFOLD_DISK_ERRNO");
    int from = named ? open(named, O_RDONLY | O_CLOEXEC) : -1;
    if (from < 0) abort();
    char text[32];
    length = read(from, text, sizeof text - 1);
    close(from);
    if (length <= 0) abort();
    text[length] = 0;
    errno = atoi(text);
    return errno;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *bytes, size_t count) {
    return refused(file) ? -1 : NEXT(write)(file, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    return refused(file) ? -1 : NEXT(pwrite)(file, bytes, count, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    return refused(file) ? -1 : NEXT(pwrite64)(file, bytes, count, at);
}

int fsync(int file) { return refused(file) ? -1 : NEXT(fsync)(file); }

int fdatasync(int file) { return refused(file) ? -1 : NEXT(fdatasync)(file); }
