/* Reads files of translations: those that msgfmt would write, and damaged ones. */
#include "cli/common/language.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "test.h"

/* Two texts in strcmp's order, as msgfmt writes them: a header, two tables, and the texts. */
struct file {
	uint32_t magic, revision, count, texts, translations, unused[2];
	uint32_t rows[4][2]; /* length and offset: two texts, two translations */
	char words[32];
};

static struct file good(void)
{
	struct file file = {.magic = 0x950412de,
			    .count = 2,
			    .texts = offsetof(struct file, rows),
			    .translations = offsetof(struct file, rows[2])};
	static const char *const words[] = {"card", "time", "卡", "时间"};
	size_t used = 0;
	for (size_t i = 0; i < 4; i++) {
		file.rows[i][0] = (uint32_t)strlen(words[i]);
		file.rows[i][1] = (uint32_t)(offsetof(struct file, words) + used);
		memcpy(file.words + used, words[i], strlen(words[i]) + 1);
		used += strlen(words[i]) + 1;
	}
	return file;
}

static bool open_file(struct ll_catalogue *catalogue, const struct file *file, size_t size)
{
	char path[] = "/tmp/loadline-catalogue-XXXXXX";
	LL_SCOPE_CLOSE int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, file, size), (ssize_t)size);
	bool is_open = ll_catalogue_open(catalogue, path);
	unlink(path);
	return is_open;
}

TEST(texts_are_found_and_others_are_not)
{
	struct file file = good();
	struct ll_catalogue catalogue;
	assert_true(open_file(&catalogue, &file, sizeof file));
	assert_string_equal(ll_catalogue_find(&catalogue, "card"), "卡");
	assert_string_equal(ll_catalogue_find(&catalogue, "time"), "时间");
	assert_null(ll_catalogue_find(&catalogue, "car"));
	assert_null(ll_catalogue_find(&catalogue, "zebra"));
	ll_catalogue_close(&catalogue);
	assert_null(ll_catalogue_find(&catalogue, "card"));
}

TEST(damaged_files_are_not_opened)
{
	struct ll_catalogue catalogue;
	struct file file = good();
	file.magic = 0xde120495; /* another byte order */
	assert_false(open_file(&catalogue, &file, sizeof file));
	file = good();
	file.count = UINT32_MAX;
	assert_false(open_file(&catalogue, &file, sizeof file));
	file = good();
	file.translations = UINT32_MAX - 3;
	assert_false(open_file(&catalogue, &file, sizeof file));
	file = good();
	file.rows[3][1] = UINT32_MAX;
	assert_false(open_file(&catalogue, &file, sizeof file));
	file = good();
	file.rows[0][0]--; /* no NUL at its end */
	assert_false(open_file(&catalogue, &file, sizeof file));
	file = good();
	assert_false(open_file(&catalogue, &file, offsetof(struct file, words) + 4));
	assert_false(open_file(&catalogue, &file, 8));
	assert_null(catalogue.bytes);
	assert_false(ll_catalogue_open(&catalogue, "/nonexistent/loadline.mo"));
}
