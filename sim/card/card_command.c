#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/clock.h"
#include "base/err.h"
#include "card/command.h"
#include "card/defaults.h"
#include "card/meter.h"
#include "card/status.h"
#include "card/words.h"
#include "card/xid.h"

/* A command that sets one property of one card. words->word[3] is its first value. */
struct call {
	struct sim_world *w;
	uint32_t card;
	const struct sim_words *words;
	enum sim_command_phase phase;
};

static struct sim_card *edit_card(const struct call *call)
{
	return SIM_EDIT(call->w, &call->w->cards[call->card]);
}

/* The index in a UUID "GPU-10ad11fe-0200-4200-8200-..." of the last digit of its fourth group. */
enum { SLICE_DIGIT = 26 };

/* Properties that are one number of the card. */
enum field_kind { FIELD_NS, FIELD_BYTES, FIELD_DOUBLE, FIELD_U32, FIELD_SWITCH };

struct field {
	const char *word;
	size_t offset;
	enum field_kind kind;
	bool at_start_only;
};

#define FIELD(word, member, kind, start)                                                                               \
	{                                                                                                              \
		word, offsetof(struct sim_card, member), kind, start                                                   \
	}

static const struct field fields[] = {
    FIELD("sm", sm_count, FIELD_U32, true),
    FIELD("memory", memory_bytes, FIELD_BYTES, true),
    FIELD("reserved", reserved_bytes, FIELD_BYTES, true),
    FIELD("slice", slice_ns, FIELD_NS, false),
    FIELD("switch", switch_ns, FIELD_NS, false),
    FIELD("save", save_ns, FIELD_NS, false),
    FIELD("launch-latency", launch_ns, FIELD_NS, false),
    FIELD("kernel-gap", kernel_gap_ns, FIELD_NS, false),
    FIELD("context-time", context_ns, FIELD_NS, false),
    FIELD("context-work", context_work_ns, FIELD_NS, false),
    FIELD("drift-ppm", drift_ppm, FIELD_DOUBLE, true),
    FIELD("idle-watts", idle_watts, FIELD_DOUBLE, false),
    FIELD("open-watts", open_watts, FIELD_DOUBLE, false),
    FIELD("spin-watts", spin_watts, FIELD_DOUBLE, false),
    FIELD("fma-watts", fma_watts, FIELD_DOUBLE, false),
    FIELD("power-limit", limit_watts, FIELD_DOUBLE, false),
    FIELD("gpm", has_gpm, FIELD_SWITCH, false),
    FIELD("gpm-tensor", has_gpm_tensor, FIELD_SWITCH, false),
    FIELD("gpm-dram", has_gpm_dram, FIELD_SWITCH, false),
    FIELD("pool-extra", pool_extra_bytes, FIELD_BYTES, false),
    FIELD("dma-buffers", has_dma_buffers, FIELD_SWITCH, false),
    FIELD("fabric", has_fabric, FIELD_SWITCH, false),
    FIELD("peers", has_peers, FIELD_SWITCH, true),
    FIELD("tensor-reach", tensor_reach_percent, FIELD_DOUBLE, false),
    FIELD("dram-reach", dram_reach_percent, FIELD_DOUBLE, false),
    FIELD("slowdown", is_slowed, FIELD_SWITCH, false),
    FIELD("row-remap-failure", has_remap_failure, FIELD_SWITCH, false),
    FIELD("row-remap-pending", has_remap_pending, FIELD_SWITCH, false),
    FIELD("ecc-uncorrected", ecc_uncorrected, FIELD_U32, false),
    FIELD("nvlink-errors", nvlink_errors, FIELD_U32, false),
};

static int parse_switch(const char *text, uint64_t *ret_on, struct ll_err *err)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		return ll_err_set(err, -EINVAL, "'%s': neither on nor off", text);
	*ret_on = strcmp(text, "on") == 0;
	return 0;
}

static int set_field(const struct call *call, const struct field *field, struct ll_err *err)
{
	uint64_t count = 0;
	double number = 0;
	int rc = sim_words_end(call->words, 4, err);
	if (rc < 0)
		return rc;
	if (field->kind == FIELD_NS)
		rc = sim_word_duration(call->words, 3, &count, err);
	else if (field->kind == FIELD_BYTES)
		rc = sim_word_bytes(call->words, 3, &count, err);
	else if (field->kind == FIELD_DOUBLE)
		rc = sim_word_number(call->words, 3, -1e6, 1e6, &number, err);
	else if (field->kind == FIELD_U32)
		rc = sim_word_uint(call->words, 3, 1, 1 << 20, &count, err);
	else
		rc = parse_switch(call->words->word[3], &count, err);
	if (rc == 0 && field->at_start_only && call->phase != SIM_COMMAND_START)
		rc = ll_err_set(err, -EINVAL, "%s: only in a scenario, not while programs run", field->word);
	if (rc < 0 || call->phase == SIM_COMMAND_CHECK)
		return rc;
	char *at = (char *)edit_card(call) + field->offset;
	if (field->kind == FIELD_DOUBLE)
		memcpy(at, &number, sizeof number);
	else if (field->kind == FIELD_NS || field->kind == FIELD_BYTES)
		memcpy(at, &count, sizeof count);
	else
		memcpy(at, &(uint32_t){(uint32_t)count}, sizeof(uint32_t));
	return 0;
}

static int set_name(const struct call *call, struct ll_err *err)
{
	struct sim_card *card = &call->w->cards[call->card];
	if (strlen(call->words->rest[3]) >= sizeof card->name - 24)
		return ll_err_set(err, -EINVAL, "name: too long");
	snprintf(card->name, sizeof card->name, "%s", call->words->rest[3]);
	return 0;
}

static int set_uuid(const struct call *call, struct ll_err *err)
{
	const char *text = call->words->word[3];
	unsigned a, b, c, d;
	unsigned long long e;
	if (strlen(text) != 40 || sscanf(text, "GPU-%8x-%4x-%4x-%4x-%12llx", &a, &b, &c, &d, &e) != 5)
		return ll_err_set(err, -EINVAL, "'%s': not of the form GPU-01234567-89ab-cdef-0123-456789abcdef", text);
	snprintf(call->w->cards[call->card].uuid, sizeof call->w->cards[0].uuid, "%s", text);
	return 0;
}

static int set_pci(const struct call *call, struct ll_err *err)
{
	struct sim_card *card = &call->w->cards[call->card];
	unsigned domain, bus, device;
	char rest;
	if (sscanf(call->words->word[3], "%x:%x:%x.0%c", &domain, &bus, &device, &rest) != 3 || domain > 0xffff ||
	    bus > 0xff || device > 0x1f)
		return ll_err_set(err, -EINVAL, "'%s': not of the form 0000:18:00.0", call->words->word[3]);
	card->pci_domain = domain;
	card->pci_bus = bus;
	card->pci_device = device;
	return 0;
}

static int set_capability(const struct call *call, struct ll_err *err)
{
	struct sim_card *card = &call->w->cards[call->card];
	char rest;
	if (sscanf(call->words->word[3], "%u.%u%c", &card->capability_major, &card->capability_minor, &rest) != 2)
		return ll_err_set(err, -EINVAL, "'%s': not of the form 9.0", call->words->word[3]);
	return 0;
}

static unsigned digit_of(char c)
{
	return c >= '0' && c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10) & 15;
}

/* Slices of one seventh, as the smallest profile of the real card: 16 SMs and an eighth of the memory each. */
static int set_mig(const struct call *call, struct ll_err *err)
{
	struct sim_world *w = call->w;
	struct sim_card *card = &w->cards[call->card];
	uint64_t count;
	int rc = sim_word_uint(call->words, 3, 1, 7, &count, err);
	if (rc < 0)
		return rc;
	if (card->slice_count || w->slot_count + count > SIM_CARDS)
		return ll_err_set(err, -EINVAL, "mig: too many slices, or set twice");
	for (uint32_t i = 0; i < count; i++) {
		struct sim_card *slice = &w->cards[w->slot_count++];
		*slice = *card;
		slice->parent = call->card;
		slice->slice_index = i;
		slice->gpu_instance_id = 7 + i;
		slice->sm_count = card->sm_count / 8;
		slice->memory_bytes = card->memory_bytes / 8;
		slice->reserved_bytes = 0;
		unsigned gib = (unsigned)((slice->memory_bytes + (UINT64_C(1) << 30) - 1) >> 30);
		snprintf(slice->name + strlen(slice->name), 24, " MIG 1g.%ugb", gib);
		memcpy(slice->uuid, "MIG", 3);
		/* The UUID is unique among cards and slices. */
		slice->uuid[SLICE_DIGIT] = "0123456789abcdef"[digit_of(slice->uuid[SLICE_DIGIT]) ^ (i + 1)];
	}
	card->slice_count = (uint32_t)count;
	return 0;
}

static int set_used(const struct call *call, struct ll_err *err)
{
	const struct sim_card *card = &call->w->cards[call->card];
	uint64_t bytes = card->memory_bytes, duration_ns = 0;
	int rc = 0;
	if (strcmp(call->words->word[3], "all") != 0)
		rc = sim_word_bytes(call->words, 3, &bytes, err);
	if (rc == 0 && call->words->count > 4) {
		if (strcmp(call->words->word[4], "for") != 0)
			return sim_words_end(call->words, 4, err);
		rc = sim_word_duration(call->words, 5, &duration_ns, err);
		if (rc == 0)
			rc = sim_words_end(call->words, 6, err);
	}
	if (rc < 0 || call->phase == SIM_COMMAND_CHECK)
		return rc;
	if (duration_ns) {
		char back[80];
		snprintf(back, sizeof back, "card %u used %llu", call->card, (unsigned long long)card->foreign_bytes);
		rc = sim_command_put_off(call->w, call->w->now_ns + duration_ns, back, err);
	}
	if (rc == 0)
		edit_card(call)->foreign_bytes = bytes;
	return rc;
}

static int set_mode(const struct call *call, struct ll_err *err)
{
	static const struct {
		const char *word;
		enum ll_nvml_compute_mode mode;
	} modes[] = {
	    {"default", LL_NVML_COMPUTEMODE_DEFAULT},
	    {"exclusive", LL_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS},
	    {"exclusive-process", LL_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS},
	    {"prohibited", LL_NVML_COMPUTEMODE_PROHIBITED},
	};
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		if (strcmp(call->words->word[3], modes[i].word) == 0) {
			if (call->phase != SIM_COMMAND_CHECK)
				edit_card(call)->compute_mode = (uint32_t)modes[i].mode;
			return sim_words_end(call->words, 4, err);
		}
	}
	return ll_err_set(err, -EINVAL, "'%s': not one of default, exclusive, prohibited", call->words->word[3]);
}

static int set_temperature(const struct call *call, struct ll_err *err)
{
	double celsius = 0;
	uint64_t over_ns = 0;
	bool is_auto = strcmp(call->words->word[3], "auto") == 0;
	int rc = is_auto ? 0 : sim_word_number(call->words, 3, 0, 150, &celsius, err);
	if (rc == 0 && !is_auto && call->words->count > 4) {
		if (strcmp(call->words->word[4], "over") != 0)
			return sim_words_end(call->words, 4, err);
		rc = sim_word_duration(call->words, 5, &over_ns, err);
		if (rc == 0)
			rc = sim_words_end(call->words, 6, err);
	} else if (rc == 0) {
		rc = sim_words_end(call->words, 4, err);
	}
	if (rc < 0 || call->phase == SIM_COMMAND_CHECK)
		return rc;
	struct sim_card *card = edit_card(call);
	card->heat_from_celsius = sim_card_celsius(call->w, card);
	card->is_heated = !is_auto;
	card->heat_to_celsius = celsius;
	card->heat_start_ns = call->w->now_ns;
	card->heat_end_ns = call->w->now_ns + over_ns;
	return 0;
}

/* Returns the status that programs get after an Xid. Others than these give "launch failed". */
static uint32_t status_of_xid(uint64_t xid)
{
	switch (xid) {
	case 31: /* memory page fault */
		return LL_CUDA_ERROR_ILLEGAL_ADDRESS;
	case 48: /* double bit ECC error */
	case 95: /* uncontained error */
		return LL_CUDA_ERROR_ECC_UNCORRECTABLE;
	case 94: /* contained error */
		return LL_CUDA_ERROR_CONTAINED;
	case 79: /* fallen off the bus */
		return LL_CUDA_ERROR_UNKNOWN;
	default:
		return LL_CUDA_ERROR_LAUNCH_FAILED;
	}
}

static int raise_xid(const struct call *call, struct ll_err *err)
{
	uint64_t xid, pid = 0;
	uint32_t status;
	int rc = sim_word_uint(call->words, 3, 1, 999, &xid, err);
	if (rc < 0)
		return rc;
	status = status_of_xid(xid);
	int next = 4;
	if (call->words->count > next && strcmp(call->words->word[next], "pid") != 0)
		rc = sim_status_parse(call->words->word[next++], &status, err);
	if (rc == 0 && call->words->count > next) {
		rc = sim_word_uint(call->words, next + 1, 1, INT32_MAX, &pid, err);
		if (rc == 0)
			rc = sim_words_end(call->words, next + 2, err);
	}
	if (rc < 0 || call->phase == SIM_COMMAND_CHECK)
		return rc;
	sim_card_xid(call->w, call->card, (uint32_t)xid, status, (int32_t)pid);
	if (xid == 79)
		edit_card(call)->is_gone = 1;
	return 0;
}

static int set_gone(const struct call *call, struct ll_err *err)
{
	uint64_t is_gone = 0;
	int rc = parse_switch(call->words->word[3], &is_gone, err);
	if (rc == 0)
		rc = sim_words_end(call->words, 4, err);
	if (rc < 0 || call->phase == SIM_COMMAND_CHECK)
		return rc;
	if (is_gone && !call->w->cards[call->card].is_gone)
		sim_card_xid(call->w, call->card, 79, LL_CUDA_ERROR_UNKNOWN, 0);
	edit_card(call)->is_gone = (uint32_t)is_gone;
	return 0;
}

static int set_slices(const struct call *call, struct ll_err *err)
{
	static const char *const words[] = {"obey", "ignore", "commit"};
	for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (strcmp(call->words->word[3], words[i]) != 0)
			continue;
		if (call->phase != SIM_COMMAND_CHECK)
			edit_card(call)->slices = i; /* enum sim_slices */
		return sim_words_end(call->words, 4, err);
	}
	return ll_err_set(err, -EINVAL, "'%s': not one of obey, ignore, commit", call->words->word[3]);
}

static int set_off(const struct call *call, struct ll_err *err)
{
	static const char *const names[] = {[SIM_OFF_YES] = "yes", [SIM_OFF_NO] = "no", [SIM_OFF_IGNORE] = "ignore"};
	for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(call->words->word[3], names[i]) != 0)
			continue;
		if (call->phase != SIM_COMMAND_CHECK)
			edit_card(call)->off = i; /* enum sim_off */
		return sim_words_end(call->words, 4, err);
	}
	return ll_err_set(err, -EINVAL, "'%s': not one of yes, no, ignore", call->words->word[3]);
}

static int run_on_card(const struct call *call, struct ll_err *err)
{
	static const struct {
		const char *word;
		bool at_start_only;
		int (*run)(const struct call *, struct ll_err *);
	} properties[] = {
	    {"name", true, set_name},  {"uuid", true, set_uuid},      {"pci", true, set_pci},
	    {"mig", true, set_mig},    {"used", false, set_used},     {"capability", true, set_capability},
	    {"mode", false, set_mode}, {"gone", false, set_gone},     {"temperature", false, set_temperature},
	    {"xid", false, raise_xid}, {"slices", false, set_slices}, {"off", false, set_off},
	};
	const char *word = call->words->word[2];
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		if (strcmp(word, fields[i].word) == 0)
			return set_field(call, &fields[i], err);
	}
	for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
		if (strcmp(word, properties[i].word) != 0)
			continue;
		if (properties[i].at_start_only && call->phase != SIM_COMMAND_START)
			return ll_err_set(err, -EINVAL, "%s: only in a scenario, not while programs run", word);
		return properties[i].run(call, err);
	}
	return ll_err_set(err, -EINVAL, "'%s': no such property of a card", word);
}

int sim_card_command_run(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
			 struct ll_err *err)
{
	if (words->count < 4)
		return ll_err_set(err, -EINVAL, "card: expected 'card N PROPERTY VALUE'");
	uint64_t first = 0, last = w->card_count;
	if (strcmp(words->word[1], "all") != 0) {
		if (w->card_count == 0)
			return ll_err_set(err, -EINVAL, "there is no card");
		int rc = sim_word_uint(words, 1, 0, w->card_count - 1, &first, err);
		if (rc < 0)
			return rc;
		last = first + 1;
	}
	for (uint64_t i = first; i < last; i++) {
		struct call call = {.w = w, .card = (uint32_t)i, .words = words, .phase = phase};
		int rc = run_on_card(&call, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
