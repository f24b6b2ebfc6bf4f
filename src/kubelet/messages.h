/* messages.h - makes messages of protobuf-c in pieces of malloc, which it frees as those that it has read. Out of
 * memory, the program ends. */
#ifndef LOADLINE_KUBELET_MESSAGES_H
#define LOADLINE_KUBELET_MESSAGES_H

#include <errno.h>
#include <protobuf-c/protobuf-c.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"

static inline void *need(void *memory)
{
	if (memory)
		return memory;
	ll_error("out of memory");
	exit(EXIT_FAILURE);
}

static inline void set_text(char **field, const char *text)
{
	*field = need(strdup(text));
}

/* array: the address of the pointer to the elements. */
static inline void *grow(void *array, size_t *count)
{
	void ***elements = array;
	*elements = need(realloc(*elements, (*count + 1) * sizeof **elements));
	return &(*elements)[(*count)++];
}

static inline void *add_message(void *array, size_t *count, const ProtobufCMessageDescriptor *descriptor)
{
	ProtobufCMessage *message = need(calloc(1, descriptor->sizeof_message));
	protobuf_c_message_init(descriptor, message);
	*(void **)grow(array, count) = message;
	return message;
}

static inline void add_text(void *array, size_t *count, const char *text)
{
	*(char **)grow(array, count) = need(strdup(text));
}

static inline void add_packed(const ProtobufCMessage *message, struct ll_strbuf *out)
{
	size_t length = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = need(malloc(length + 1));
	protobuf_c_message_pack(message, bytes);
	ll_strbuf_add(out, (const char *)bytes, length);
	free(bytes);
	need(out->failed ? NULL : out);
}

static inline int cannot_read(struct ll_err *err)
{
	return ll_err_set(err, -EBADMSG, "the request cannot be read");
}

#endif
