/*
 * One call of gRPC, which is written here: a library for it takes longer to load than the hook may take. It is one
 * request of HTTP/2, and of the answer the data alone count: no data, and the runtime does not know the pod. So no
 * header need be read, but the runtime's settings and its pings are confirmed.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "cli/cdi/cdi.h"

enum { ID_MAX = 100, FRAME_HEADER = 9, FRAME_MAX = 16384, REPLY_MAX = 4 << 20, PREFIX = 5, WAIT_S = 10 };

/* ---- HTTP/2 (RFC 9113) ---- */

enum { DATA = 0, HEADERS = 1, RESET = 3, SETTINGS = 4, PING = 6, GO_AWAY = 7, WINDOW = 8 }; /* types of frames */
enum { IS_LAST = 1, IS_ACK = 1, HAS_ALL_HEADERS = 4, IS_PADDED = 8 };                       /* flags */

/* Both windows are wider than an answer can be. The headers are literals (RFC 7541), but for the method and the scheme.
 */
static const char settings[] = "\0\4\0\x7f\0\0", window[] = "\0\x7f\0\0",
		  headers[] = "\x83\x86\x04\x2b/runtime.v1.RuntimeService/PodSandboxStatus\x01\x09localhost"
			      "\x0f\x10\x10"
			      "application/grpc\0\x02te\x08trailers";

static void add_frame(struct ll_strbuf *out, int type, int flags, int stream, const char *bytes, size_t length)
{
	const char header[FRAME_HEADER] = {0, (char)(length >> 8), (char)length, (char)type, (char)flags, 0, 0,
					   0, (char)stream};
	ll_strbuf_add(out, header, sizeof header);
	ll_strbuf_add(out, bytes, length);
}

static void add_request(struct ll_strbuf *out, const char *sandbox)
{
	char message[PREFIX + 2 + ID_MAX + 1];
	size_t length = strlen(sandbox);
	ll_strbuf_adds(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	add_frame(out, SETTINGS, 0, 0, settings, sizeof settings - 1);
	add_frame(out, WINDOW, 0, 0, window, sizeof window - 1);
	add_frame(out, HEADERS, HAS_ALL_HEADERS, 1, headers, sizeof headers - 1);
	/* Not compressed, its length, and field 1, the pod's id. */
	memcpy(message, (const char[]){0, 0, 0, 0, (char)(length + 2), '\n', (char)length}, PREFIX + 2);
	memcpy(message + PREFIX + 2, sandbox, length);
	add_frame(out, DATA, IS_LAST, 1, message, PREFIX + 2 + length);
}

static int send_all(int fd, const struct ll_strbuf *bytes)
{
	return bytes->failed                                                                 ? -ENOMEM
	       : send(fd, bytes->buf, bytes->length, MSG_NOSIGNAL) == (ssize_t)bytes->length ? 0
											     : -EIO;
}

/* Adds what the frame has of the answer. Returns 1 after the last. */
static int take_frame(int fd, struct ll_strbuf *reply)
{
	uint8_t header[FRAME_HEADER], payload[FRAME_MAX];
	LL_SCOPE_STRBUF struct ll_strbuf ack = LL_STRBUF_INIT;
	if (recv(fd, header, sizeof header, MSG_WAITALL) != sizeof header)
		return -EIO;
	size_t length = (size_t)header[0] << 16 | (size_t)header[1] << 8 | header[2];
	int type = header[3], flags = header[4];
	if (length > sizeof payload || reply->length > REPLY_MAX ||
	    (length && recv(fd, payload, length, MSG_WAITALL) != (ssize_t)length))
		return -EIO;
	if (type == RESET || type == GO_AWAY || (type == DATA && (flags & IS_PADDED)))
		return -EIO;
	if (type == DATA)
		ll_strbuf_add(reply, (const char *)payload, length);
	if (type == DATA || type == HEADERS)
		return flags & IS_LAST;
	if ((type != SETTINGS && type != PING) || (flags & IS_ACK))
		return 0;
	add_frame(&ack, type, IS_ACK, 0, (const char *)payload, type == PING ? length : 0);
	return send_all(fd, &ack);
}

static int call_runtime(const char *path, const char *sandbox, struct ll_strbuf *reply)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval wait = {.tv_sec = WAIT_S};
	LL_SCOPE_STRBUF struct ll_strbuf request = LL_STRBUF_INIT;
	LL_SCOPE_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) ||
	    connect(fd, (const struct sockaddr *)&address, sizeof address))
		return -errno;
	add_request(&request, sandbox);
	int rc = send_all(fd, &request);
	while (!rc)
		rc = take_frame(fd, reply);
	return rc < 0 ? rc : reply->failed ? -ENOMEM : reply->length > PREFIX ? 0 : -ENOENT;
}

/* ---- messages of protobuf ---- */

struct span {
	const uint8_t *at, *end;
};

static bool read_number(struct span *message, uint64_t *ret_number)
{
	*ret_number = 0;
	for (unsigned shift = 0; message->at < message->end && shift < 64; shift += 7) {
		*ret_number |= (uint64_t)(*message->at & 0x7f) << shift;
		if (!(*message->at++ & 0x80))
			return true;
	}
	return false;
}

/* Goes over a field. Of one that is a text or a message, ret_value is what it has, else nothing. Returns 0 at the end,
 * and where it cannot be read. */
static uint64_t next_field(struct span *message, struct span *ret_value)
{
	enum { VARINT = 0, WIDE = 1, BYTES = 2, NARROW = 5 };
	uint64_t tag, length = 0;
	if (!read_number(message, &tag))
		return 0;
	unsigned type = tag & 7;
	if ((type == VARINT || type == BYTES) && !read_number(message, &length))
		return 0;
	length = type == VARINT ? 0 : type == WIDE ? 8 : type == NARROW ? 4 : length;
	if (type == 3 || type == 4 || type > NARROW || length > (uint64_t)(message->end - message->at))
		return 0;
	*ret_value = (struct span){message->at, message->at + (type == BYTES ? length : 0)};
	message->at += length;
	return tag >> 3;
}

static bool take_annotation(struct span entry, json_t *annotations)
{
	struct span value, pair[3] = {{NULL, NULL}};
	for (uint64_t field; (field = next_field(&entry, &value));) {
		if (field == 1 || field == 2)
			pair[field] = value;
	}
	size_t length = (size_t)(pair[1].end - pair[1].at), prefix = strlen(LL_CDI_ANNOTATION);
	if (entry.at != entry.end || length < prefix || memcmp(pair[1].at, LL_CDI_ANNOTATION, prefix) != 0)
		return entry.at == entry.end;
	json_t *key = json_stringn((const char *)pair[1].at, length);
	json_t *text = json_stringn((const char *)pair[2].at, (size_t)(pair[2].end - pair[2].at));
	int rc = json_object_set_new(annotations, json_string_value(key), text);
	json_decref(key);
	return rc == 0;
}

/* Field 1 of the answer is the status, whose field 8 is a table. Returns whether there is a status, and all of it could
 * be read. */
static bool take_annotations(const struct ll_strbuf *reply, json_t *annotations)
{
	struct span status = {NULL, NULL}, entry,
		    answer = {(const uint8_t *)reply->buf + PREFIX, (const uint8_t *)reply->buf + reply->length};
	bool is_told = !reply->buf[0] && next_field(&answer, &status) == 1;
	for (uint64_t field; is_told && (field = next_field(&status, &entry));)
		is_told = field != 8 || take_annotation(entry, annotations);
	return is_told && status.at == status.end;
}

int ll_cdi_read_pod(const char *sandbox, json_t *annotations, struct ll_err *err)
{
	static const char *const sockets[] = {"/run/containerd/containerd.sock", "/run/crio/crio.sock",
					      "/run/k3s/containerd/containerd.sock", "/run/k0s/containerd.sock",
					      "/var/snap/microk8s/common/run/containerd.sock"};
	int why = -ENOENT;
	for (size_t i = 0; strlen(sandbox) <= ID_MAX && i < sizeof sockets / sizeof *sockets; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf reply = LL_STRBUF_INIT;
		int rc = call_runtime(sockets[i], sandbox, &reply);
		if (!rc && take_annotations(&reply, annotations))
			return 0;
		why = rc != -ENOENT ? rc : why;
	}
	why = why ? why : -EBADMSG;
	ll_err_set(err, why, "the runtime does not tell the pod's annotations: %s", strerror(-why));
	return ll_err_hint(err, "it is asked at %s, %s and where k3s, k0s and MicroK8s have it", sockets[0],
			   sockets[1]);
}
