/*
 * A fuzz target for loadline.yaml: any bytes give findings or a policy, and a policy without findings says what its
 * header promises. As an ordinary test it replays files, and changes of them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/check.h"
#include "config/config.h"
#include "target.h"

static void check_policy(const struct ll_config_policy *policy)
{
	expect(policy->version == 1, "there is a version");
	for (size_t i = 0; i < policy->cards.count; i++) {
		const struct ll_config_group *group = &policy->cards.items[i];
		expect(group->name && group->from && group->cards.count && group->give >= 0, "a group is whole");
		for (size_t j = 1; j < group->cards.count; j++)
			expect(group->cards.items[j - 1].index <= group->cards.items[j].index, "cards ascend");
	}
	for (size_t i = 0; i < policy->tenants.count; i++) {
		const struct ll_config_tenant *tenant = &policy->tenants.items[i];
		expect(tenant->name && tenant->from && tenant->weight >= 1 && tenant->weight <= 1000,
		       "a tenant is whole");
		for (size_t j = 0; j < tenant->guarantee.count; j++)
			expect(ll_config_group_find(policy, tenant->guarantee.items[j].of) != NULL,
			       "a guarantee is of a group");
	}
	for (size_t i = 0; i < policy->reservations.count; i++)
		expect(policy->reservations.items[i].begin.is_given && policy->reservations.items[i].tenant,
		       "a reservation is whole");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static const struct ll_config_machine_card cards[] = {
	    {0, -1, false, 1 << 30}, {1, -1, true, 0}, {1, 0, false, 0}};
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	expect(ll_config_load_text(&config, "f", (const char *)bytes, length, &findings, NULL) == 0, "it is read");
	expect(config.root || findings.fault_count, "there is a policy or a fault");
	if (config.root) {
		ll_config_check(&config.policy, 0, &findings);
		if (!findings.fault_count)
			check_policy(&config.policy);
		ll_config_check_machine(&config.policy, &(struct ll_config_machine){3, cards}, &findings);
	}
	ll_config_findings_sort(&findings);
	for (size_t i = 1; i < findings.count; i++)
		expect(findings.items[i - 1].mark.line <= findings.items[i].mark.line, "findings are in order");
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
	return 0;
}

#ifndef LL_LIBFUZZER
enum { ROUNDS = 400, BYTES_MAX = 1 << 16 };

/* Puts what is at one place of a text at another, or one byte. Returns the new length. */
static size_t change(uint8_t *bytes, size_t length)
{
	static const char signs[] = "{}[]:,-#&*!|>'\"%@ \n0a";
	size_t at = (size_t)rand() % (length + 1), from = (size_t)rand() % (length + 1);
	size_t part = (size_t)rand() % 40;
	switch (rand() % 3) {
	case 0:
		bytes[at < length ? at : 0] = (uint8_t)signs[(size_t)rand() % (sizeof signs - 1)];
		return length;
	case 1:
		part = part < length - at ? part : length - at;
		memmove(bytes + at, bytes + at + part, length - at - part);
		return length - part;
	default:
		part = part < length - from ? part : length - from;
		memmove(bytes + at, bytes + from, part < length - at ? part : length - at);
		return length;
	}
}

int main(int argc, char **argv)
{
	static uint8_t original[BYTES_MAX], bytes[BYTES_MAX];
	srand(1);
	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "r");
		expect(file != NULL, argv[i]);
		size_t length = fread(original, 1, sizeof original, file);
		fclose(file);
		LLVMFuzzerTestOneInput(original, length);
		for (unsigned round = 0; round < ROUNDS; round++) {
			size_t changed = length;
			memcpy(bytes, original, length);
			for (int changes = rand() % 4; changes >= 0 && changed; changes--)
				changed = change(bytes, changed);
			LLVMFuzzerTestOneInput(bytes, changed);
		}
	}
	expect(argc > 10, "there are files");
	printf("%d files, each changed %d times\n", argc - 1, ROUNDS);
	return 0;
}
#endif
