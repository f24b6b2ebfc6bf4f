/* Each config/NAME.yaml has exactly the findings of config/NAME.expected, on a machine of eight cards. */
#include <dirent.h>

#include "base/strbuf.h"
#include "config/check.h"
#include "config/config.h"
#include "test.h"

#define NOW_S INT64_C(1764547200) /* 1 December 2025 */
enum { CARDS = 8, FILES_MIN = 12 };

static void read_whole(const char *path, struct ll_strbuf *out)
{
	char bytes[4096];
	size_t n;
	FILE *file = fopen(path, "r");
	if (!file)
		fail_msg("%s is not there", path);
	while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
		ll_strbuf_add(out, bytes, n);
	fclose(file);
}

static void find(const struct ll_strbuf *text, struct ll_strbuf *out)
{
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	struct ll_config_machine_card cards[CARDS] = {{0}};
	for (unsigned i = 0; i < CARDS; i++)
		cards[i] = (struct ll_config_machine_card){.index = i, .slice = -1, .memory_bytes = UINT64_C(80) << 30};
	assert_int_equal(ll_config_load_text(&config, "f", text->buf, text->length, &findings, NULL), 0);
	if (config.root) {
		ll_config_check(&config.policy, NOW_S, &findings);
		ll_config_check_machine(&config.policy, &(struct ll_config_machine){CARDS, cards}, &findings);
	}
	ll_config_findings_sort(&findings);
	size_t faults = 0;
	for (size_t i = 0; i < findings.count; i++) {
		const struct ll_config_finding *finding = &findings.items[i];
		bool is_fault = finding->level == LL_CONFIG_FAULT;
		faults += is_fault;
		ll_strbuf_addf(out, "%u:%u: %s: %s\n", finding->mark.line, finding->mark.column,
			       is_fault ? "fault" : "warning", finding->text);
	}
	assert_int_equal(findings.fault_count, faults);
	assert_int_equal(findings.warning_count, findings.count - faults);
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
}

TEST(each_file_of_faults_has_exactly_the_expected_findings)
{
	DIR *folder = opendir(LL_CONFIG_FOLDER);
	unsigned files = 0;
	assert_non_null(folder);
	for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
		size_t length = strlen(entry->d_name);
		struct ll_strbuf text = LL_STRBUF_INIT, expected = LL_STRBUF_INIT, found = LL_STRBUF_INIT;
		struct ll_strbuf path = LL_STRBUF_INIT;
		if (length < 6 || strcmp(entry->d_name + length - 5, ".yaml") != 0)
			continue;
		ll_strbuf_addf(&path, "%s/%s", LL_CONFIG_FOLDER, entry->d_name);
		read_whole(path.buf, &text);
		ll_strbuf_reset(&path);
		ll_strbuf_addf(&path, "%s/%.*s.expected", LL_CONFIG_FOLDER, (int)length - 5, entry->d_name);
		read_whole(path.buf, &expected);
		find(&text, &found);
		if (strcmp(found.buf, expected.buf) != 0) {
			fprintf(stderr, "%s has:\n%s--- and not:\n%s", entry->d_name, found.buf, expected.buf);
			fail_msg("%s: other findings than expected", entry->d_name);
		}
		ll_strbuf_fini(&text);
		ll_strbuf_fini(&expected);
		ll_strbuf_fini(&found);
		ll_strbuf_fini(&path);
		files++;
	}
	closedir(folder);
	assert_true(files >= FILES_MIN);
}
