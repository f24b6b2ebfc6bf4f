#include "kubelet/claims.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

#define MILLI 1000

/* ---- amounts ---- */

int ll_kubelet_quantity_read(const char *text, uint64_t *ret_milli)
{
	static const struct {
		const char *suffix;
		long double factor;
	} units[] = {{"", 1},         {"n", 1e-9L},    {"u", 1e-6L},    {"m", 1e-3L},
		     {"k", 1e3L},     {"M", 1e6L},     {"G", 1e9L},     {"T", 1e12L},
		     {"P", 1e15L},    {"E", 1e18L},    {"Ki", 0x1p10L}, {"Mi", 0x1p20L},
		     {"Gi", 0x1p30L}, {"Ti", 0x1p40L}, {"Pi", 0x1p50L}, {"Ei", 0x1p60L}};
	char *end;
	/* No hexadecimal number, infinity or blank, which strtold knows too. */
	if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789.eE+-inumkKMGTP")])
		return -EINVAL;
	long double number = strtold(text, &end);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		long double milli = ceill(number * units[i].factor * MILLI);
		if (strcmp(end, units[i].suffix) != 0)
			continue;
		if (!(milli >= 0 && milli < 0x1p64L))
			return -EINVAL;
		*ret_milli = (uint64_t)milli;
		return 0;
	}
	return -EINVAL;
}

int ll_kubelet_device_limits(const json_t *device, uint64_t *ret_bytes, uint64_t *ret_milli, struct ll_err *err)
{
	const char *memory = ll_kubelet_device_word(device, "--mem");
	const char *compute = ll_kubelet_device_word(device, "--compute");
	double percent = 0;
	if (!memory || !compute)
		return ll_err_set(err, -EINVAL, "a description is not of this version of loadline");
	int rc = ll_parse_bytes(memory, ret_bytes, err);
	if (!rc)
		rc = ll_parse_percent(compute, &percent, err);
	if (!rc)
		*ret_milli = (uint64_t)llround(percent * MILLI);
	return rc;
}

static const json_t *description_of(const struct ll_kubelet_cuts *cuts, const struct ll_kubelet_cut *card)
{
	return json_array_get(json_object_get(cuts->description, "devices"), (size_t)(card - cuts->items));
}

/* Of compute claims take whole percents. */
int ll_kubelet_capacity(const struct ll_kubelet_cuts *cuts, const struct ll_kubelet_cut *card, uint64_t *ret_bytes,
			uint64_t *ret_milli, struct ll_err *err)
{
	int rc = ll_kubelet_device_limits(description_of(cuts, card), ret_bytes, ret_milli, err);
	if (!rc)
		*ret_milli -= *ret_milli % MILLI;
	return rc;
}

void ll_kubelet_device_name(const struct ll_kubelet_cut *card, char ret_name[LL_CARD_UUID_SIZE])
{
	size_t i = 0;
	for (; card->uuid[i] && i < LL_CARD_UUID_SIZE - 1; i++)
		ret_name[i] = (char)tolower((unsigned char)card->uuid[i]);
	ret_name[i] = '\0';
}

/* ---- a claim ---- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

/* What a result consumes of a capacity. Without consumedCapacity the device is the claim's alone. whole: that of the
 * card; both in thousandths. */
static int read_consumed(const json_t *result, const char *name, uint64_t whole, uint64_t *ret_milli,
			 struct ll_err *err)
{
	char key[LL_KUBELET_NAME_SIZE];
	snprintf(key, sizeof key, LL_KUBELET_DRIVER "/%s", name);
	const json_t *consumed = json_object_get(result, "consumedCapacity"), *value = json_object_get(consumed, name);
	value = value ? value : json_object_get(consumed, key);
	*ret_milli = whole;
	if (!value)
		return 0;
	if (!json_is_string(value) || ll_kubelet_quantity_read(json_string_value(value), ret_milli) || !*ret_milli)
		return ll_err_set(err, -EINVAL, "request %.63s consumes no amount of %s", text_of(result, "request"),
				  name);
	if (*ret_milli > whole)
		return ll_err_set(err, -EINVAL, "request %.63s consumes %.40s of %s, and %.63s has less",
				  text_of(result, "request"), json_string_value(value), name,
				  text_of(result, "device"));
	return 0;
}

static const struct ll_kubelet_cut *find_card(const struct ll_kubelet_cuts *cuts, const char *name)
{
	char its[LL_CARD_UUID_SIZE];
	for (size_t i = 0; i < cuts->count; i++) {
		ll_kubelet_device_name(&cuts->items[i], its);
		if (strcmp(its, name) == 0)
			return &cuts->items[i];
	}
	return NULL;
}

/* A container has one size, so the cards of a request have the same. */
static int add_card(struct ll_kubelet_claim *claim, const struct ll_kubelet_part *its, struct ll_err *err)
{
	const struct ll_kubelet_cut *card = its->cards[0];
	struct ll_kubelet_part *part = claim->parts;
	while (part < claim->parts + claim->count && strcmp(part->request, its->request) != 0)
		part++;
	if (part == claim->parts + claim->count) {
		claim->parts[claim->count++] = *its;
		return 0;
	}
	if (part->memory_bytes != its->memory_bytes || part->compute_milli != its->compute_milli)
		return ll_err_set(err, -EINVAL, "request %.63s has different sizes of two cards", its->request);
	for (size_t i = 0; i < part->count; i++) {
		if (part->cards[i] == card)
			return ll_err_set(
			    err, -EINVAL,
			    "request %.63s has card %s twice; ask for distinctAttribute " LL_KUBELET_DRIVER "/uuid",
			    its->request, card->uuid);
	}
	part->cards[part->count++] = card;
	return 0;
}

static int read_result(struct ll_kubelet_claim *claim, const json_t *result, const char *pool,
		       const struct ll_kubelet_cuts *cuts, struct ll_err *err)
{
	struct ll_kubelet_part part = {.count = 1};
	const char *request = text_of(result, "request"), *device = text_of(result, "device");
	uint64_t bytes = 0, milli = 0, consumed = 0;
	if (json_is_true(json_object_get(result, "adminAccess")))
		return ll_err_set(err, -EINVAL, "request %.63s is for admin access, which is not given", request);
	if (strcmp(text_of(result, "pool"), pool) != 0)
		return ll_err_set(err, -ENODEV, "request %.63s has a device of node %.100s", request,
				  text_of(result, "pool"));
	part.cards[0] = find_card(cuts, device);
	if (!part.cards[0])
		return ll_err_set(err, -ENODEV, "request %.63s has device %.63s, which is not here now", request,
				  device);
	if (!request[0] || strlen(request) >= sizeof part.request)
		return ll_err_set(err, -EINVAL, "a request has no name, or too long a name");
	snprintf(part.request, sizeof part.request, "%s", request);
	int rc = ll_kubelet_capacity(cuts, part.cards[0], &bytes, &milli, err);
	if (!rc)
		rc = read_consumed(result, "memory", bytes * MILLI, &consumed, err);
	part.memory_bytes = consumed / MILLI;
	if (!rc)
		rc = read_consumed(result, "compute", milli, &part.compute_milli, err);
	return rc ? rc : add_card(claim, &part, err);
}

int ll_kubelet_claim_read(struct ll_kubelet_claim *ret_claim, const json_t *object, const char *uid, const char *pool,
			  const struct ll_kubelet_cuts *cuts, struct ll_err *err)
{
	size_t index;
	const json_t *each;
	const json_t *allocation = json_object_get(json_object_get(object, "status"), "allocation");
	const json_t *devices = json_object_get(allocation, "devices");
	const json_t *results = json_object_get(devices, "results");
	int rc = 0;
	ret_claim->count = 0;
	if (strcmp(text_of(json_object_get(object, "metadata"), "uid"), uid) != 0)
		return ll_err_set(err, -ESTALE, "another claim has that name now");
	if (!json_is_object(allocation))
		return ll_err_set(err, -ENOENT, "the claim is not allocated");
	if (json_array_size(results) > LL_KUBELET_RESULTS)
		return ll_err_set(err, -EINVAL, "the claim has more than %d devices", LL_KUBELET_RESULTS);
	json_array_foreach(json_object_get(devices, "config"), index, each)
	{
		if (strcmp(text_of(json_object_get(each, "opaque"), "driver"), LL_KUBELET_DRIVER) == 0)
			return ll_err_set(err, -EINVAL,
					  "the claim or its class has parameters for " LL_KUBELET_DRIVER
					  ", which takes none");
	}
	json_array_foreach(results, index, each)
	{
		if (!rc && strcmp(text_of(each, "driver"), LL_KUBELET_DRIVER) == 0)
			rc = read_result(ret_claim, each, pool, cuts, err);
	}
	if (!rc && !ret_claim->count)
		rc = ll_err_set(err, -ENOENT, "the claim has no device of " LL_KUBELET_DRIVER);
	return rc;
}

/* ---- its description ---- */

static void set_word(json_t *words, const char *word, const char *value)
{
	for (size_t i = 0; i + 1 < json_array_size(words); i++) {
		if (strcmp(json_string_value(json_array_get(words, i)), word) == 0)
			json_array_set_new(words, i + 1, json_string(value));
	}
}

/* The part of the card with other limits. */
static json_t *describe_part(const struct ll_kubelet_part *part, const char *uid, const char *folder,
			     const struct ll_kubelet_cuts *cuts)
{
	char text[LL_KUBELET_PATH_SIZE], name[LL_KUBELET_REQUEST_SIZE + LL_KUBELET_NAME_SIZE];
	char uuids[LL_KUBELET_RESULTS * LL_CARD_UUID_SIZE] = "";
	size_t length = 0;
	json_t *device = json_deep_copy(description_of(cuts, part->cards[0]));
	json_t *edits = json_object_get(device, "containerEdits");
	json_t *words = json_object_get(json_array_get(json_object_get(edits, "hooks"), 0), "args");
	for (size_t i = 0; i < part->count; i++)
		length +=
		    (size_t)snprintf(uuids + length, sizeof uuids - length, "%s%s", i ? "," : "", part->cards[i]->uuid);
	set_word(words, "--cards", uuids);
	snprintf(text, sizeof text, "%lluB", (unsigned long long)part->memory_bytes);
	set_word(words, "--mem", text);
	snprintf(text, sizeof text, "%llu.%03llu%%", (unsigned long long)part->compute_milli / MILLI,
		 (unsigned long long)part->compute_milli % MILLI);
	set_word(words, "--compute", text);
	snprintf(name, sizeof name, "%s:%s", uid, part->request);
	for (char *at = name; (at = strchr(at, '/'));)
		*at = ':';
	json_object_set_new(device, "name", json_string(name));
	snprintf(text, sizeof text, "%s/loadline-claim-%s.holder", folder, name);
	json_array_append_new(words, json_string("--holder"));
	json_array_append_new(words, json_string(text));
	json_object_set_new(edits, "env", json_pack("[s+]", "NVIDIA_VISIBLE_DEVICES=", uuids));
	return device;
}

json_t *ll_kubelet_claim_describe(const struct ll_kubelet_claim *claim, const char *uid, const char *folder,
				  const struct ll_kubelet_cuts *cuts)
{
	json_t *devices = json_array();
	for (size_t i = 0; i < claim->count; i++)
		json_array_append_new(devices, describe_part(&claim->parts[i], uid, folder, cuts));
	/* Before 0.5.0 no device's name begins with a digit, as a uid may. */
	return json_pack("{s:s, s:s, s:o, s:O}", "cdiVersion", "0.5.0", "kind", "loadline.dev/claim", "devices",
			 devices, "containerEdits", json_object_get(cuts->description, "containerEdits"));
}
