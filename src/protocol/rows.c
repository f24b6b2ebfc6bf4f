#include "protocol/rows.h"

#include <stddef.h>
#include <string.h>

#include "protocol/message.h"

static const struct private_field {
	uint16_t kind, privacy;
	size_t at, size;
} private_fields[] = {
#define LL_ROW_PRIVATE(kind, member, field, privacy)                                                                   \
	{LL_MESSAGE_##kind, LL_ROW_##privacy, offsetof(union ll_message, member.field),                                \
	 sizeof((union ll_message *)0)->member.field},
#include "protocol/rows.def"
#undef LL_ROW_PRIVATE
};

void ll_row_hide(union ll_message *row, unsigned sorts, const char *name)
{
	for (size_t i = 0; i < sizeof private_fields / sizeof *private_fields; i++) {
		const struct private_field *field = &private_fields[i];
		if (field->kind != row->header.kind || !(field->privacy & sorts))
			continue;
		if (field->privacy == LL_ROW_NAME)
			ll_message_text_set((char *)row + field->at, field->size, name);
		else
			memset((char *)row + field->at, 0, field->size);
	}
}
