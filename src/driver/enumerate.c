#include "base/translate.h"
#include "driver/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UUID_BYTES = 16, SLICES_MAX = 64 };

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int ll_uuid_parse(const char *uuid, uint8_t ret_bytes[16])
{
	uint8_t bytes[UUID_BYTES] = {0};
	size_t digits = 0;
	if (strncmp(uuid, "GPU-", 4) != 0 && strncmp(uuid, "MIG-", 4) != 0)
		return -EINVAL;
	for (const char *c = uuid + 4; *c; c++) {
		int digit = hex_digit(*c);
		if (*c == '-')
			continue;
		if (digit < 0 || digits == (size_t)2 * UUID_BYTES)
			return -EINVAL;
		bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | digit);
		digits++;
	}
	if (digits != (size_t)2 * UUID_BYTES)
		return -EINVAL;
	memcpy(ret_bytes, bytes, sizeof bytes);
	return 0;
}

/* NVML counts CUDA cores. Their number in an SM depends on the generation (CUDA C programming guide, compute
 * capabilities). */
static unsigned cores_per_sm(int major, int minor)
{
	if (major == 7 || (major == 6 && minor == 0) || (major == 8 && minor == 0))
		return 64;
	return major >= 5 ? 128 : 0;
}

static unsigned count_sms(const struct ll_nvml *nvml, struct ll_nvml_device *device)
{
	struct ll_nvml_attributes attributes;
	unsigned cores;
	int major;
	int minor;
	if (nvml->nvmlDeviceGetAttributes && !nvml->nvmlDeviceGetAttributes(device, &attributes))
		return attributes.sm_count;
	if (!nvml->nvmlDeviceGetNumGpuCores || nvml->nvmlDeviceGetNumGpuCores(device, &cores) ||
	    !nvml->nvmlDeviceGetCudaComputeCapability ||
	    nvml->nvmlDeviceGetCudaComputeCapability(device, &major, &minor))
		return 0;
	unsigned per_sm = cores_per_sm(major, minor);
	return per_sm ? cores / per_sm : 0;
}

static uint64_t total_bytes(const struct ll_nvml *nvml, struct ll_nvml_device *device)
{
	struct ll_nvml_memory memory;
	return nvml->nvmlDeviceGetMemoryInfo(device, &memory) == LL_NVML_SUCCESS ? memory.total_bytes : 0;
}

/* A driver before 510 does not report its own memory. */
static uint64_t usable_bytes(const struct ll_nvml *nvml, const struct ll_card *card)
{
	struct ll_nvml_memory_v2 memory = {.version = LL_NVML_MEMORY_V2};
	bool is_known = nvml->nvmlDeviceGetMemoryInfo_v2 &&
			nvml->nvmlDeviceGetMemoryInfo_v2(card->nvml, &memory) == LL_NVML_SUCCESS &&
			memory.reserved_bytes <= memory.total_bytes;
	return is_known ? memory.total_bytes - memory.reserved_bytes : card->memory_bytes;
}

static void describe_pci(const struct ll_nvml *nvml, struct ll_card *card)
{
	struct ll_nvml_pci_info pci;
	if (nvml->nvmlDeviceGetPciInfo(card->nvml, &pci) != LL_NVML_SUCCESS)
		return;
	card->pci_domain = pci.domain;
	card->pci_bus = pci.bus;
	card->pci_device = pci.device;
	snprintf(card->pci, sizeof card->pci, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
}

/* Reads what every kind of card has. The first failure becomes the card's fault. */
static void describe_card(const struct ll_nvml *nvml, struct ll_card *card)
{
	ll_nvml_result status = nvml->nvmlDeviceGetUUID(card->nvml, card->uuid, sizeof card->uuid);
	card->uuid[sizeof card->uuid - 1] = '\0';
	if (status != LL_NVML_SUCCESS) {
		card->fault = ll_nvml_errno(status);
		return;
	}
	ll_uuid_parse(card->uuid, card->uuid_bytes);
	if (nvml->nvmlDeviceGetName(card->nvml, card->name, sizeof card->name) != LL_NVML_SUCCESS)
		snprintf(card->name, sizeof card->name, "unknown");
	card->name[sizeof card->name - 1] = '\0';
	card->sm_count = count_sms(nvml, card->nvml);
	card->memory_bytes = total_bytes(nvml, card->nvml);
	card->usable_bytes = usable_bytes(nvml, card);
}

static void read_card(const struct ll_nvml *nvml, unsigned nvml_index, struct ll_card *card)
{
	unsigned mode;
	unsigned pending;
	ll_nvml_result status = nvml->nvmlDeviceGetHandleByIndex(nvml_index, &card->nvml);
	if (status != LL_NVML_SUCCESS) {
		card->fault = ll_nvml_errno(status);
		return;
	}
	describe_card(nvml, card);
	describe_pci(nvml, card);
	if (nvml->nvmlDeviceGetMigMode && !nvml->nvmlDeviceGetMigMode(card->nvml, &mode, &pending))
		card->has_slices = mode == LL_NVML_DEVICE_MIG_ENABLE;
}

static unsigned read_slices(const struct ll_nvml *nvml, const struct ll_card *parent, struct ll_card *slices)
{
	unsigned count = 0;
	unsigned max = 0;
	if (!parent->has_slices || !nvml->nvmlDeviceGetMaxMigDeviceCount ||
	    !nvml->nvmlDeviceGetMigDeviceHandleByIndex || nvml->nvmlDeviceGetMaxMigDeviceCount(parent->nvml, &max))
		return 0;
	for (unsigned i = 0; i < max && count < SLICES_MAX; i++) {
		struct ll_card *slice = &slices[count];
		*slice = (struct ll_card){.is_mig = true, .slice = i};
		if (nvml->nvmlDeviceGetMigDeviceHandleByIndex(parent->nvml, i, &slice->nvml) != LL_NVML_SUCCESS)
			continue;
		describe_card(nvml, slice);
		memcpy(slice->pci, parent->pci, sizeof slice->pci);
		slice->pci_domain = parent->pci_domain;
		slice->pci_bus = parent->pci_bus;
		slice->pci_device = parent->pci_device;
		count++;
	}
	return count;
}

static int compare_pci(const void *left, const void *right)
{
	const struct ll_card *a = left;
	const struct ll_card *b = right;
	if (a->pci_domain != b->pci_domain)
		return a->pci_domain < b->pci_domain ? -1 : 1;
	if (a->pci_bus != b->pci_bus)
		return a->pci_bus < b->pci_bus ? -1 : 1;
	return a->pci_device < b->pci_device ? -1 : a->pci_device > b->pci_device;
}

/* NVML's order is by PCI address already, but that is not guaranteed. If a card has no address, the order is
 * unchanged. */
static void sort_cards(struct ll_card *cards, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!cards[i].pci[0])
			return;
	}
	qsort(cards, count, sizeof *cards, compare_pci);
}

static void label_card(struct ll_card *card, unsigned index)
{
	card->index = index;
	if (card->is_mig)
		snprintf(card->label, sizeof card->label, "%u:%u", index, card->slice);
	else
		snprintf(card->label, sizeof card->label, "%u", index);
}

/* `cards` has room for the slices of each card; `whole` are the cards without slices. */
static size_t add_slices(struct ll_driver *driver, const struct ll_nvml *nvml, const struct ll_card *whole,
			 size_t whole_count, struct ll_card *cards)
{
	size_t count = 0;
	for (size_t i = 0; i < whole_count; i++) {
		struct ll_card *parent = &cards[count];
		*parent = whole[i];
		unsigned slices = read_slices(nvml, parent, parent + 1);
		for (size_t s = 0; s <= slices; s++) {
			parent[s].driver = driver;
			parent[s].parent = s ? parent : NULL;
			label_card(&parent[s], (unsigned)i);
		}
		count += 1 + slices;
	}
	return count;
}

int ll_cards_enumerate(struct ll_driver *driver, const struct ll_nvml *nvml, struct ll_card **ret_cards,
		       size_t *ret_count, struct ll_err *err)
{
	unsigned whole_count = 0;
	ll_nvml_result status = nvml->nvmlDeviceGetCount(&whole_count);
	if (status != LL_NVML_SUCCESS)
		return ll_nvml_fail(nvml, status, err, "count the cards");
	if (!whole_count) {
		ll_err_set(err, -ENODEV, "no card: driver %s finds none", nvml->driver_version);
		ll_err_hint(err,
			    ll_library_is_simulated(nvml->library)
				? N_("the scenario gives the simulated machine none: use another scenario")
				: N_("in a container, pass the cards to it; else see `loadline doctor`, or try --sim"));
		return -ENODEV;
	}
	struct ll_card *whole = calloc(whole_count, sizeof *whole);
	struct ll_card *cards = calloc((size_t)whole_count * (1 + SLICES_MAX), sizeof *cards);
	if (!whole || !cards) {
		free(whole);
		free(cards);
		return ll_err_set(err, -ENOMEM, "list the cards: %s", strerror(ENOMEM));
	}
	for (unsigned i = 0; i < whole_count; i++)
		read_card(nvml, i, &whole[i]);
	sort_cards(whole, whole_count);
	*ret_count = add_slices(driver, nvml, whole, whole_count, cards);
	*ret_cards = cards;
	free(whole);
	return 0;
}
