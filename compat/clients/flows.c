/* Connections over the loopback for who follows them in the kernel's table: TCP with both ends in
 * this process, and UDP datagrams, from ports that are the same each time.
 *
 * Each line of its input is a command, and each is followed by a line of output when it is done:
 *   open COUNT   so many connections of either protocol altogether; of TCP, number I sends I bytes
 *   close        ends them, those of TCP by a reset, and has the kernel forget all connections */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 200, PORT_FIRST = 20600, PORT_OF_SERVER = 20900 };

static int listening, datagrams, count;
static int senders[CONNECTIONS_MAX], receivers[CONNECTIONS_MAX], datagram_senders[CONNECTIONS_MAX];

static void fail(const char *what)
{
    fprintf(stderr, "flows: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* flowtop leaves out what comes from 127.0.0.1. */
static struct sockaddr_in address(unsigned last, unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    to.sin_addr.s_addr = htonl(0x7f000000u + last);
    return to;
}

/* A socket that has that address. */
static int bound(int type, unsigned last, unsigned port)
{
    struct sockaddr_in at = address(last, port);
    int one = 1, socket_ = socket(AF_INET, type, 0);
    if (socket_ < 0 || setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(socket_, (struct sockaddr *)&at, sizeof at))
        fail("a socket");
    return socket_;
}

static void open_one(int number)
{
    struct sockaddr_in server = address(2, PORT_OF_SERVER);
    char data[CONNECTIONS_MAX] = {0};
    senders[number] = bound(SOCK_STREAM, 3, PORT_FIRST + (unsigned)number);
    if (connect(senders[number], (struct sockaddr *)&server, sizeof server))
        fail("connect");
    receivers[number] = accept(listening, NULL, NULL);
    if (receivers[number] < 0)
        fail("accept");
    if (number > 0 &&
        (write(senders[number], data, (size_t)number) != number ||
         recv(receivers[number], data, (size_t)number, MSG_WAITALL) != number))
        fail("data");
    datagram_senders[number] = bound(SOCK_DGRAM, 3, PORT_FIRST + (unsigned)number);
    if (sendto(datagram_senders[number], data, 1, 0, (struct sockaddr *)&server,
               sizeof server) != 1 ||
        recv(datagrams, data, 1, 0) != 1)
        fail("a datagram");
}

/* As `conntrack -F` does, of this network namespace. */
static void forget(void)
{
    struct {
        struct nlmsghdr header;
        struct nfgenmsg of;
    } message = {{sizeof message, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE,
                  NLM_F_REQUEST | NLM_F_ACK, 1, 0},
                 {AF_INET, NFNETLINK_V0, 0}};
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[256];
    } reply;
    int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
    if (netlink < 0 || send(netlink, &message, sizeof message, 0) != sizeof message ||
        recv(netlink, &reply, sizeof reply, 0) < (ssize_t)NLMSG_LENGTH(sizeof reply.error))
        fail("netlink");
    errno = -reply.error.error;
    if (reply.header.nlmsg_type != NLMSG_ERROR || errno)
        fail("the kernel does not forget the connections");
    close(netlink);
}

static void close_all(void)
{
    struct linger reset = {1, 0};
    for (int number = 0; number < count; number++) {
        if (setsockopt(senders[number], SOL_SOCKET, SO_LINGER, &reset, sizeof reset))
            fail("linger");
        close(senders[number]);
        close(receivers[number]);
        close(datagram_senders[number]);
    }
    count = 0;
    forget();
}

int main(void)
{
    char line[64];
    int wanted;
    listening = bound(SOCK_STREAM, 2, PORT_OF_SERVER);
    datagrams = bound(SOCK_DGRAM, 2, PORT_OF_SERVER);
    if (listen(listening, 16))
        fail("listen");
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "open %d", &wanted) == 1 && wanted <= CONNECTIONS_MAX) {
            while (count < wanted)
                open_one(count++);
        } else if (!strcmp(line, "close\n")) {
            close_all();
        } else {
            fprintf(stderr, "flows: no such command: %s", line);
            return 2;
        }
        if (puts("done") < 0 || fflush(stdout))
            fail("output");
    }
    return 0;
}
