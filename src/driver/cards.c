#include "driver/cards.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "driver/internal.h"

/* ---- cards ---- */

/* ---- cards ---- */

struct ll_driver {
	struct ll_nvml nvml;
	struct ll_card *cards;
	size_t card_count;
	char *sim_folder;
	pthread_mutex_t cuda_mutex;
	struct ll_cuda cuda; /* its library is NULL until the first request */
};

/* The simulator's libraries export this symbol; the vendor's do not. */
static char *find_sim_folder(void *library)
{
	const char *(*world)(void);
	void *address = dlsym(library, "loadline_sim_world");
	memcpy(&world, &address, sizeof address);
	const char *folder = world ? world() : NULL;
	return folder ? strdup(folder) : NULL;
}

int ll_driver_open(struct ll_driver **ret_driver, struct ll_err *err)
{
	struct ll_driver *driver = calloc(1, sizeof *driver);
	if (!driver)
		return ll_err_set(err, -ENOMEM, "open the driver: %s", strerror(ENOMEM));
	pthread_mutex_init(&driver->cuda_mutex, NULL);
	int rc = ll_nvml_init(&driver->nvml, err);
	if (!rc)
		rc = ll_cards_enumerate(driver, &driver->nvml, &driver->cards, &driver->card_count, err);
	if (rc) {
		ll_driver_close(driver);
		return rc;
	}
	driver->sim_folder = find_sim_folder(driver->nvml.library);
	*ret_driver = driver;
	return 0;
}

int ll_driver_of_list(const struct ll_card *cards, size_t count, const char *sim_folder, struct ll_driver **ret_driver,
		      struct ll_err *err)
{
	struct ll_driver *driver = calloc(1, sizeof *driver);
	if (!driver)
		return ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	pthread_mutex_init(&driver->cuda_mutex, NULL);
	driver->cards = calloc(count + 1, sizeof *driver->cards);
	driver->sim_folder = sim_folder ? strdup(sim_folder) : NULL;
	if (!driver->cards || (sim_folder && !driver->sim_folder)) {
		ll_driver_close(driver);
		return ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	}
	driver->card_count = count;
	for (size_t i = 0; i < count; i++) {
		driver->cards[i] = cards[i];
		driver->cards[i].driver = driver;
	}
	*ret_driver = driver;
	return 0;
}

void ll_driver_close(struct ll_driver *driver)
{
	if (!driver)
		return;
	ll_cuda_fini(&driver->cuda);
	ll_nvml_fini(&driver->nvml);
	pthread_mutex_destroy(&driver->cuda_mutex);
	free(driver->sim_folder);
	free(driver->cards);
	free(driver);
}

const struct ll_nvml *ll_driver_nvml(const struct ll_driver *driver)
{
	return &driver->nvml;
}

int ll_driver_cuda(struct ll_driver *driver, const struct ll_cuda **ret_cuda, struct ll_err *err)
{
	LL_SCOPE_LOCK(&driver->cuda_mutex);
	if (!driver->cuda.library) {
		int rc = ll_cuda_init(&driver->cuda, err);
		if (rc)
			return rc;
	}
	*ret_cuda = &driver->cuda;
	return 0;
}

const char *ll_driver_sim_folder(const struct ll_driver *driver)
{
	return driver->sim_folder;
}

size_t ll_driver_cards(const struct ll_driver *driver, const struct ll_card **ret_cards)
{
	*ret_cards = driver->cards;
	return driver->card_count;
}

int ll_cards_select(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
		    size_t *ret_count, struct ll_err *err)
{
	return ll_select(driver->cards, driver->card_count, text, ret_cards, ret_count, err);
}

const struct ll_card *ll_cards_find_uuid(const struct ll_driver *driver, const char *uuid)
{
	for (size_t i = 0; i < driver->card_count; i++) {
		if (strcmp(driver->cards[i].uuid, uuid) == 0)
			return &driver->cards[i];
	}
	return NULL;
}

const struct ll_card *ll_card_whole(const struct ll_card *card)
{
	return card->parent ? card->parent : card;
}

/* ---- their CUDA devices ---- */

/* The newer call distinguishes slices; the older one returns the whole card's UUID for a slice. */
static ll_cu_result get_uuid(const struct ll_cuda *cuda, ll_cu_device device, struct ll_cu_uuid *ret_uuid)
{
	return cuda->cuDeviceGetUuid ? cuda->cuDeviceGetUuid(ret_uuid, device)
				     : cuda->cuDeviceGetUuid_v1(ret_uuid, device);
}

static int fail_hidden(const struct ll_card *card, struct ll_err *err)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	if (card->has_slices) {
		ll_err_set(err, -ENODEV, "card %s: is in MIG mode: CUDA shows its slices only", card->label);
		ll_err_hint(err, "choose a slice, like -i %s:0", card->label);
	} else if (visible) {
		ll_err_set(err, -ENODEV, "card %s (%s): hidden from CUDA by CUDA_VISIBLE_DEVICES=%.100s", card->label,
			   card->uuid, visible);
		/* If the variable is unset, CUDA shows the first slice only. */
		ll_err_hint(err,
			    card->is_mig ? N_("set CUDA_VISIBLE_DEVICES to %s")
					 : N_("unset CUDA_VISIBLE_DEVICES, or set it to %s"),
			    card->uuid);
	} else {
		ll_err_set(err, -ENODEV, "card %s (%s): not seen by CUDA", card->label, card->uuid);
		ll_err_hint(err,
			    card->is_mig ? N_("CUDA shows one slice to a process: set CUDA_VISIBLE_DEVICES to %s")
					 : N_("see `loadline doctor`"),
			    card->uuid);
	}
	return -ENODEV;
}

static int find_device(const struct ll_card *card, const struct ll_cuda *cuda, ll_cu_device *ret_device,
		       struct ll_err *err)
{
	int count = 0;
	ll_cu_result status = cuda->cuDeviceGetCount(&count);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "card %s: count CUDA's cards", card->label);
	for (int ordinal = 0; ordinal < count; ordinal++) {
		ll_cu_device device;
		struct ll_cu_uuid uuid;
		if (cuda->cuDeviceGet(&device, ordinal) || get_uuid(cuda, device, &uuid) ||
		    memcmp(uuid.bytes, card->uuid_bytes, sizeof card->uuid_bytes) != 0)
			continue;
		*ret_device = device;
		return 0;
	}
	return fail_hidden(card, err);
}

int ll_card_cuda_device(const struct ll_card *card, const struct ll_cuda **ret_cuda, ll_cu_device *ret_device,
			struct ll_err *err)
{
	const struct ll_cuda *cuda;
	int rc = ll_driver_cuda(card->driver, &cuda, err);
	if (!rc)
		rc = find_device(card, cuda, ret_device, err);
	if (rc)
		return rc;
	if (ret_cuda)
		*ret_cuda = cuda;
	return 0;
}

/* ---- selection by users ---- */

enum { INDEX_MAX = 65535 };

struct selection {
	const struct ll_card *cards;
	size_t count;
	bool *is_chosen; /* one per card */
};

static int fail_unknown(const struct selection *selection, const char *word, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	for (size_t i = 0; i < selection->count; i++) {
		const struct ll_card *card = &selection->cards[i];
		ll_strbuf_addf(&list, "%s%s (%s, %s)", i ? ", " : "", card->label,
			       card->name[0] ? card->name : "does not answer", card->uuid[0] ? card->uuid : "no UUID");
	}
	ll_err_set(err, -ENODEV, "no card '%s': there is %s", word, list.buf);
	ll_err_hint(err, "`loadline status -i all` lists the cards");
	return -ENODEV;
}

static int fail_word(const char *word, const char *why, struct ll_err *err)
{
	ll_err_set(err, -EINVAL, "cards: '%s': %s", word, why);
	ll_err_hint(err, "an index, a range (2-3), a UUID, a PCI address, 'all', or several with commas");
	return -EINVAL;
}

static int fail_fault(const struct ll_card *card, struct ll_err *err)
{
	ll_err_set(err, card->fault, "card %s: does not answer: %s", card->label, strerror(-card->fault));
	if (card->driver && ll_driver_sim_folder(card->driver))
		ll_err_hint(err, "loadline-simctl card %u gone off brings the simulated card back", card->index);
	else
		ll_err_hint(err, "see the kernel log (dmesg | grep -i xid) and `loadline doctor`");
	return card->fault;
}

static int choose_card(struct selection *selection, size_t position, struct ll_err *err)
{
	if (selection->cards[position].fault)
		return fail_fault(&selection->cards[position], err);
	selection->is_chosen[position] = true;
	return 0;
}

/* Reads decimal digits at *text and moves *text behind them. Returns false if there are none, or too many. */
static bool take_number(const char **text, unsigned *ret_number)
{
	unsigned number = 0;
	if (!isdigit((unsigned char)**text))
		return false;
	for (; isdigit((unsigned char)**text); (*text)++) {
		number = number * 10 + (unsigned)(**text - '0');
		if (number > INDEX_MAX)
			return false;
	}
	*ret_number = number;
	return true;
}

static int choose_index(struct selection *selection, unsigned index, const char *word, struct ll_err *err)
{
	for (size_t i = 0; i < selection->count; i++) {
		if (selection->cards[i].index == index && !selection->cards[i].is_mig)
			return choose_card(selection, i, err);
	}
	return fail_unknown(selection, word, err);
}

static int choose_range(struct selection *selection, unsigned first, unsigned last, const char *word,
			struct ll_err *err)
{
	if (last < first)
		return fail_word(word, "the range runs backwards", err);
	for (unsigned i = first; i <= last; i++) {
		int rc = choose_index(selection, i, word, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int choose_slice(struct selection *selection, unsigned index, unsigned slice, const char *word,
			struct ll_err *err)
{
	for (size_t i = 0; i < selection->count; i++) {
		const struct ll_card *card = &selection->cards[i];
		if (card->is_mig && card->index == index && card->slice == slice)
			return choose_card(selection, i, err);
	}
	return fail_unknown(selection, word, err);
}

static int choose_pci(struct selection *selection, unsigned domain, unsigned bus, unsigned device, const char *word,
		      struct ll_err *err)
{
	for (size_t i = 0; i < selection->count; i++) {
		const struct ll_card *card = &selection->cards[i];
		if (!card->is_mig && card->pci[0] && card->pci_domain == domain && card->pci_bus == bus &&
		    card->pci_device == device)
			return choose_card(selection, i, err);
	}
	return fail_unknown(selection, word, err);
}

/* Chooses by exact UUID, else by a prefix of exactly one UUID. */
static int choose_uuid(struct selection *selection, const char *word, struct ll_err *err)
{
	size_t matches = 0;
	size_t last = 0;
	for (size_t i = 0; i < selection->count; i++) {
		const char *uuid = selection->cards[i].uuid;
		if (strcasecmp(uuid, word) == 0)
			return choose_card(selection, i, err);
		if (strncasecmp(uuid, word, strlen(word)) == 0) {
			matches++;
			last = i;
		}
	}
	if (matches > 1)
		return fail_word(word, "is the beginning of several UUIDs", err);
	return matches ? choose_card(selection, last, err) : fail_unknown(selection, word, err);
}

static int choose_all(struct selection *selection, struct ll_err *err)
{
	size_t chosen = 0;
	for (size_t i = 0; i < selection->count; i++) {
		const struct ll_card *card = &selection->cards[i];
		if (card->fault || card->has_slices)
			continue;
		selection->is_chosen[i] = true;
		chosen++;
	}
	if (chosen)
		return 0;
	for (size_t i = 0; i < selection->count; i++) {
		if (selection->cards[i].fault)
			return fail_fault(&selection->cards[i], err);
	}
	ll_err_set(err, -ENODEV, "no usable card: MIG mode is on and the card has no slices");
	ll_err_hint(err, "make MIG slices with nvidia-smi mig, or turn MIG off");
	return -ENODEV;
}

/* "2", "2-3", "0:1". */
static int choose_number(struct selection *selection, const char *word, struct ll_err *err)
{
	const char *rest = word;
	unsigned first;
	unsigned second;
	if (!take_number(&rest, &first))
		return fail_unknown(selection, word, err);
	if (!*rest)
		return choose_index(selection, first, word, err);
	char separator = *rest++;
	if (separator == '-') {
		if (!take_number(&rest, &second) || *rest)
			return fail_word(word, "is not a range", err);
		return choose_range(selection, first, second, word, err);
	}
	if (separator == ':' && take_number(&rest, &second) && !*rest)
		return choose_slice(selection, first, second, word, err);
	return fail_unknown(selection, word, err);
}

static int choose_word(struct selection *selection, const char *word, struct ll_err *err)
{
	unsigned domain = 0;
	unsigned bus;
	unsigned device;
	int end = 0;
	if (!*word)
		return fail_word(word, "a card is missing", err);
	if (*word == '-')
		return fail_word(word, "is not a card", err);
	if (strcmp(word, "all") == 0)
		return choose_all(selection, err);
	if (strncasecmp(word, "GPU-", 4) == 0 || strncasecmp(word, "MIG-", 4) == 0)
		return choose_uuid(selection, word, err);
	if (sscanf(word, "%8x:%2x:%2x.%*1[0-7]%n", &domain, &bus, &device, &end) == 3 && end && !word[end])
		return choose_pci(selection, domain, bus, device, word, err);
	if (sscanf(word, "%2x:%2x.%*1[0-7]%n", &bus, &device, &end) == 2 && end && !word[end])
		return choose_pci(selection, 0, bus, device, word, err);
	return choose_number(selection, word, err);
}

/* Splits the list at its commas, and ignores blanks around the words. */
static int choose_list(struct selection *selection, const char *text, struct ll_err *err)
{
	LL_SCOPE_FREE char *copy = strdup(text);
	if (!copy)
		return ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	for (char *rest = copy; rest;) {
		char *word = strsep(&rest, ",");
		word += strspn(word, " \t");
		for (size_t n = strlen(word); n && (word[n - 1] == ' ' || word[n - 1] == '\t'); n--)
			word[n - 1] = '\0';
		int rc = choose_word(selection, word, err);
		if (rc)
			return rc;
	}
	return 0;
}

int ll_select(const struct ll_card *cards, size_t count, const char *text, const struct ll_card ***ret_cards,
	      size_t *ret_count, struct ll_err *err)
{
	LL_SCOPE_FREE bool *is_chosen = calloc(count + 1, sizeof *is_chosen);
	LL_SCOPE_FREE const struct ll_card **list = calloc(count + 1, sizeof *list);
	if (!is_chosen || !list)
		return ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	struct selection selection = {.cards = cards, .count = count, .is_chosen = is_chosen};
	int rc = choose_list(&selection, text ? text : "all", err);
	if (rc)
		return rc;
	size_t chosen = 0;
	for (size_t i = 0; i < count; i++) {
		if (is_chosen[i])
			list[chosen++] = &cards[i];
	}
	*ret_count = chosen;
	*ret_cards = list;
	list = NULL;
	return 0;
}

/* ---- the card's place in the machine ---- */

static int read_place(const struct ll_card *card, const char *name, struct ll_strbuf *text, struct ll_err *err)
{
	char path[128];
	snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", card->pci, name);
	int rc = ll_strbuf_add_file(text, AT_FDCWD, path, 1 << 16);
	return rc ? ll_err_set(err, rc, "card %s: %s: %s", card->label, path, strerror(-rc)) : 0;
}

int ll_card_numa_node(const struct ll_card *card)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int node;
	if (read_place(card, "numa_node", &text, NULL) || sscanf(text.buf, "%d", &node) != 1 || node < 0)
		return -1;
	return node;
}

int ll_card_local_cpus(const struct ll_card *card, struct ll_strbuf *text, struct ll_err *err)
{
	return read_place(card, "local_cpulist", text, err);
}

/* ---- the errors of readings ---- */

int ll_card_check(const struct ll_card *card, ll_nvml_result status, struct ll_err *err, const char *what)
{
	if (status == LL_NVML_SUCCESS)
		return 0;
	const char *gone = ll_nvml_errno(status) == -ENODEV ? "card gone: " : "";
	char why[LL_STATUS_TEXT_SIZE];
	ll_nvml_status_text(ll_card_nvml(card), status, why);
	return ll_err_set(err, ll_nvml_errno(status), "card %s: %s: %s%s", card->label, what, gone, why);
}

int ll_card_lacks(const struct ll_card *card, struct ll_err *err, const char *what)
{
	return ll_err_set(err, -ENOSYS, "card %s: %s: driver %s cannot tell", card->label, what,
			  ll_card_nvml(card)->driver_version);
}

/* ---- enumerate ---- */

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
