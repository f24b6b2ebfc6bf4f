#include "base/err.h"

#include <errno.h>

#include "base/strbuf.h"
#include "test.h"

TEST(set_returns_its_code_and_clears_the_hint)
{
	struct ll_err err = {.hint = "old"};
	assert_int_equal(ll_err_set(&err, -ENODEV, "card %d: gone", 3), -ENODEV);
	assert_int_equal(err.code, -ENODEV);
	assert_string_equal(err.text, "card 3: gone");
	assert_string_equal(err.hint, "");
}

TEST(wrap_puts_context_in_front_and_keeps_code_and_hint)
{
	struct ll_err err = {0};
	ll_err_set(&err, -ENOMEM, "CUDA_ERROR_OUT_OF_MEMORY (2)");
	ll_err_hint(&err, "free some memory");
	assert_int_equal(ll_err_wrap(&err, "card %d: open context", 0), -ENOMEM);
	assert_string_equal(err.text, "card 0: open context: CUDA_ERROR_OUT_OF_MEMORY (2)");
	assert_string_equal(err.hint, "free some memory");
}

TEST(null_error_is_taken_everywhere_and_a_failure_stays_one)
{
	assert_int_equal(ll_err_set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(ll_err_wrap(NULL, "x"), -EIO);
	assert_int_equal(ll_err_set(NULL, -ETIMEDOUT, "x"), -ETIMEDOUT);
	assert_int_equal(ll_err_hint(NULL, "x"), -ETIMEDOUT);
}

TEST(long_text_is_cut_not_overrun)
{
	struct ll_err err = {0};
	char big[2 * sizeof err.text];
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	ll_err_set(&err, -EIO, "%s", big);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	ll_err_wrap(&err, "%s", big);
	ll_err_wrap(&err, "front");
	ll_err_hint(&err, "%s", big);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	assert_int_equal(strncmp(err.text, "front: x", 8), 0);
	assert_int_equal(strlen(err.hint), sizeof err.hint - 1);
}

TEST(text_is_cut_between_characters)
{
	struct ll_err err = {0};
	ll_err_set(&err, -EINVAL, "'%.4s': not a name", "名字");
	assert_string_equal(err.text, "'名?': not a name");
	ll_err_hint(&err, "try %.4s", "名字");
	assert_string_equal(err.hint, "try 名");
	ll_err_wrap(&err, "%.4s", "字名");
	assert_string_equal(err.text, "字?: '名?': not a name");
	for (size_t offset = 0; offset < 3; offset++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		ll_strbuf_add(&text, "xxx", offset);
		while (text.length < 2 * sizeof err.text)
			ll_strbuf_adds(&text, "名");
		ll_err_set(&err, -EIO, "%s", text.buf);
		size_t whole = offset + (sizeof err.text - 1 - offset) / 3 * 3;
		assert_int_equal(strlen(err.text), whole);
		assert_memory_equal(err.text, text.buf, whole);
	}
}

TEST(codes_choose_the_exit_status)
{
	assert_int_equal(ll_err_exit_code(0), 0);
	assert_int_equal(ll_err_exit_code(-EIO), 1);
	assert_int_equal(ll_err_exit_code(-EINVAL), 2);
	assert_int_equal(ll_err_exit_code(-ENODEV), 3);
	assert_int_equal(ll_err_exit_code(-ENOSYS), 3);
	assert_int_equal(ll_err_exit_code(-EBUSY), 4);
	assert_int_equal(ll_err_exit_code(-EDQUOT), 4);
}
