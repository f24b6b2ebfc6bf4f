/*
 * descriptors.h - descriptors that processes of a test send each other.
 */
#ifndef LOADLINE_TESTS_SIM_DESCRIPTORS_H
#define LOADLINE_TESTS_SIM_DESCRIPTORS_H

#include <sys/socket.h>
#include <unistd.h>

#include "process.h"

union descriptor_message {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static inline void send_fd_on(int to, int fd)
{
	char byte = 0;
	union descriptor_message buffer = {{0}};
	struct iovec iov = {&byte, 1};
	struct msghdr message = {
	    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = buffer.bytes, .msg_controllen = sizeof buffer.bytes};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	CHECK_EQUAL(sendmsg(to, &message, 0), 1);
}

static inline int receive_fd_on(int from)
{
	char byte;
	int fd = -1;
	union descriptor_message buffer;
	struct iovec iov = {&byte, 1};
	struct msghdr message = {
	    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = buffer.bytes, .msg_controllen = sizeof buffer.bytes};
	CHECK_EQUAL(recvmsg(from, &message, MSG_CMSG_CLOEXEC), 1);
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	CHECK(header != NULL);
	memcpy(&fd, CMSG_DATA(header), sizeof fd);
	return fd;
}

#endif
