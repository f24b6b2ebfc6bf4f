#include "base/advice.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_SIZE = 256 };

static const char option_name[] = "--sim";
static const char program[] = "loadline ";
static const char *const openers[] = {"`", "'", "$(", ": ", "-- ", "\uff1a"};

static const struct {
	const char *real, *simulated;
} replacements[] = {
    {"nvidia-smi -c DEFAULT", "loadline-simctl card all mode default"},
};

/* Returns NULL if the driver is not simulated. A value that is not such an option was not set by loadline. */
static const char *find_option(void)
{
	const char *option = getenv(LL_SIM_VARIABLE);
	size_t length = strlen(option_name);
	if (!option || strncmp(option, option_name, length) != 0 || strlen(option) >= OPTION_SIZE)
		return NULL;
	return !option[length] || option[length] == '=' ? option : NULL;
}

struct copy {
	char *text;
	size_t size, length; /* length: of the whole text, even if it does not fit */
};

static void append_text(struct copy *copy, const char *text, size_t length)
{
	size_t room = copy->length < copy->size ? copy->size - 1 - copy->length : 0;
	if (room)
		memcpy(copy->text + copy->length, text, length < room ? length : room);
	copy->length += length;
}

static bool is_opened(const char *text, const char *at)
{
	bool is_opened = at == text;
	for (size_t i = 0; i < sizeof openers / sizeof *openers; i++) {
		size_t length = strlen(openers[i]);
		is_opened |= (size_t)(at - text) >= length && strncmp(at - length, openers[i], length) == 0;
	}
	return is_opened;
}

/* Adds the simulator's form of the command at `at`, and returns the length of the text that it replaces. 0: no command
 * there needs a change. */
static size_t add_command(struct copy *copy, const char *option, const char *text, const char *at)
{
	size_t length = strlen(program);
	if (strncmp(at, program, length) == 0 && is_opened(text, at) &&
	    strncmp(at + length, option_name, strlen(option_name)) != 0) {
		append_text(copy, program, length);
		append_text(copy, option, strlen(option));
		append_text(copy, " ", 1);
		return length;
	}
	for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++) {
		length = strlen(replacements[i].real);
		if (strncmp(at, replacements[i].real, length) != 0)
			continue;
		append_text(copy, replacements[i].simulated, strlen(replacements[i].simulated));
		return length;
	}
	return 0;
}

size_t ll_advice_copy(char *ret_text, size_t size, const char *text)
{
	bool may_change = strstr(text, program) || strstr(text, replacements[0].real);
	const char *option = may_change ? find_option() : NULL;
	struct copy copy = {.text = ret_text, .size = size};
	for (const char *at = text; *at;) {
		size_t length = option ? add_command(&copy, option, text, at) : 0;
		if (!length) {
			length = 1;
			append_text(&copy, at, length);
		}
		at += length;
	}
	ret_text[copy.length < size ? copy.length : size - 1] = '\0';
	return copy.length;
}
