/* The least that reading costs: what a recording says was read at each tick is read again at the same ticks, and thrown
   away. recorder.py compiles it and writes what comes on stdin: nanoseconds between ticks; the number of things that are
   read, and of each a line, its kind and path; the number of ticks, and of each a line, how many it reads and which.
   Kinds: r a file, s the attributes of a path, l a link, c the CPU clock of the process whose folder it is, d what the
   kernel answers to a request about sockets (in hexadecimal). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct thing {
    char kind;
    int held;     /* the file, the folder of a path, the process, or the socket */
    char *within; /* the rest of a path below its folder, or the request */
};

static char buffer[1 << 16];

static void list_sockets(int asking, const char *request) {
    send(asking, request, ((struct nlmsghdr *)request)->nlmsg_len, 0);
    for (;;) {
        int left = recv(asking, buffer, sizeof buffer, 0);
        struct nlmsghdr *part = (struct nlmsghdr *)buffer;
        if (left <= 0)
            return;
        for (; NLMSG_OK(part, left); part = NLMSG_NEXT(part, left))
            if (part->nlmsg_type == NLMSG_DONE || part->nlmsg_type == NLMSG_ERROR)
                return;
    }
}

static void look(const struct thing *thing) {
    struct stat attributes;
    struct timespec spent;
    ssize_t got = 0, end = 0;
    switch (thing->kind) {
    case 'r': /* more than 3,000 bytes may be a page of more */
        do {
            got = pread(thing->held, buffer, sizeof buffer, end);
            end += got > 0 ? got : 0;
        } while (got > 0 && end > 3000);
        break;
    case 's':
        fstatat(thing->held, thing->within, &attributes, AT_EMPTY_PATH);
        break;
    case 'l':
        (void)!readlinkat(thing->held, thing->within, buffer, sizeof buffer);
        break;
    case 'c':
        clock_gettime(((clockid_t)~thing->held << 3) | 2, &spent);
        break;
    case 'd':
        list_sockets(thing->held, thing->within);
    }
}

static struct thing opened(char kind, char *path) {
    struct thing thing = {kind, -1, ""};
    if (kind == 'c') {
        sscanf(path, "/proc/%d", &thing.held);
        return thing;
    }
    if (kind == 'd') {
        thing.held = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
        thing.within = calloc(1, strlen(path));
        for (int index = 0; path[2 * index]; index++)
            sscanf(path + 2 * index, "%2hhx", (unsigned char *)&thing.within[index]);
        return thing;
    }
    if (kind != 'r' && strcmp(strrchr(path, '/'), "/task")) {
        thing.within = strrchr(path, '/') + 1;
        thing.within[-1] = 0;
    }
    thing.held = open(path, O_RDONLY | O_CLOEXEC);
    return thing;
}

int main(void) {
    struct rlimit limit;
    long interval_ns, number;
    int count, ticks, *reads[10000];
    char kind, path[4096];
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (scanf("%ld %d", &interval_ns, &count) != 2)
        return 1;
    struct thing *things = calloc(count, sizeof *things);
    for (int index = 0; index < count; index++) {
        if (scanf(" %c %4095s", &kind, path) != 2)
            return 1;
        things[index] = opened(kind, strdup(path));
    }
    if (scanf("%d", &ticks) != 1 || ticks > 10000)
        return 1;
    for (int tick = 0; tick < ticks; tick++) {
        if (scanf("%ld", &number) != 1)
            return 1;
        reads[tick] = calloc(number + 1, sizeof(int));
        reads[tick][0] = number;
        for (int index = 1; index <= number; index++)
            if (scanf("%d", &reads[tick][index]) != 1)
                return 1;
    }
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (int tick = 0;; tick = (tick + 1) % ticks) {
        for (int index = 1; index <= reads[tick][0]; index++)
            look(&things[reads[tick][index]]);
        due.tv_nsec += interval_ns;
        due.tv_sec += due.tv_nsec / 1000000000;
        due.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    }
}
