#include <errno.h>

#include "test.h"

#include "base/scope.h"
#include "base/strbuf.h"
#include "driver/internal.h"

static struct ll_card cards[] = {
    {.index = 0,
     .label = "0",
     .uuid = "GPU-8f6a3f3e-0000",
     .name = "NVIDIA H200",
     .pci = "0000:18:00.0",
     .pci_bus = 0x18},
    {.index = 1,
     .label = "1",
     .uuid = "GPU-8f6b0000-0000",
     .name = "NVIDIA H200",
     .pci = "0000:65:00.0",
     .pci_bus = 0x65,
     .has_slices = true},
    {.index = 1,
     .slice = 0,
     .label = "1:0",
     .uuid = "MIG-aaaa",
     .name = "NVIDIA H200 MIG 1g",
     .pci = "0000:65:00.0",
     .pci_bus = 0x65,
     .is_mig = true,
     .parent = &cards[1]},
    {.index = 1,
     .slice = 1,
     .label = "1:1",
     .uuid = "MIG-bbbb",
     .name = "NVIDIA H200 MIG 1g",
     .pci = "0000:65:00.0",
     .pci_bus = 0x65,
     .is_mig = true,
     .parent = &cards[1]},
    {.index = 2, .label = "2", .fault = -EPERM},
    {.index = 3,
     .label = "3",
     .uuid = "GPU-cccc",
     .name = "NVIDIA L4",
     .pci = "0001:65:1f.0",
     .pci_domain = 1,
     .pci_bus = 0x65,
     .pci_device = 0x1f},
};

enum { COUNT = sizeof cards / sizeof *cards };

/* The chosen cards' labels with blanks between them. */
static void assert_selects(const char *text, const char *expected)
{
	struct ll_err err = {0};
	LL_SCOPE_FREE const struct ll_card **chosen = NULL;
	size_t count = 0;
	LL_SCOPE_STRBUF struct ll_strbuf labels = LL_STRBUF_INIT;
	if (ll_select(cards, COUNT, text, &chosen, &count, &err))
		fail_msg("'%s': %s", text, err.text);
	for (size_t i = 0; i < count; i++)
		ll_strbuf_addf(&labels, "%s%s", i ? " " : "", chosen[i]->label);
	assert_string_equal(labels.buf, expected);
}

static void assert_refuses(const char *text, int code, const char *part)
{
	struct ll_err err;
	const struct ll_card **chosen = NULL;
	size_t count = 0;
	assert_fails(ll_select(cards, COUNT, text, &chosen, &count, &err), code, part);
	assert_null(chosen);
}

TEST(index_and_list)
{
	assert_selects("0", "0");
	assert_selects("3,0", "0 3");
	assert_selects(" 3 , 0 ", "0 3");
	assert_selects("0,0,0", "0");
}

TEST(range)
{
	assert_selects("0-1", "0 1");
	assert_selects("0-0,3-3", "0 3");
	assert_refuses("0-3", -EPERM, "card 2: does not answer");
	assert_refuses("3-4", -ENODEV, "no card '3-4'");
	assert_refuses("1-", -EINVAL, "'1-'");
	assert_refuses("3-1", -EINVAL, "backwards");
	assert_refuses("-5", -EINVAL, "'-5'");
}

TEST(uuid_and_its_beginning)
{
	assert_selects("GPU-8f6a3f3e-0000", "0");
	assert_selects("GPU-8f6a", "0");
	assert_selects("gpu-8F6A", "0");
	assert_selects("MIG-bb", "1:1");
	assert_refuses("GPU-8f6", -EINVAL, "several");
	assert_refuses("GPU-dead", -ENODEV, "GPU-cccc");
}

TEST(pci_address)
{
	assert_selects("0000:18:00.0", "0");
	assert_selects("00000000:18:00.0", "0");
	assert_selects("18:00.0", "0");
	assert_selects("0000:65:00.0", "1");
	assert_selects("0001:65:1F.0", "3");
	assert_refuses("0002:65:00.0", -ENODEV, "0002:65:00.0");
}

TEST(slice)
{
	assert_selects("1:1", "1:1");
	assert_selects("1", "1");
	assert_refuses("0:0", -ENODEV, "1:0");
}

TEST(all_is_every_card_that_answers_and_slices_for_a_card_in_mig_mode)
{
	assert_selects("all", "0 1:0 1:1 3");
	assert_selects(NULL, "0 1:0 1:1 3");
	assert_selects("all,1", "0 1 1:0 1:1 3");
}

TEST(unknown_card_names_what_there_is)
{
	assert_refuses("9", -ENODEV, "no card '9': there is 0 (NVIDIA H200, GPU-8f6a3f3e-0000)");
	assert_refuses("9", -ENODEV, "2 (does not answer");
	assert_refuses("nonsense", -ENODEV, "'nonsense'");
	assert_refuses("99999999999999999999", -ENODEV, "'99999999999999999999'");
	assert_refuses("0x1", -ENODEV, "'0x1'");
}

TEST(empty_words_are_refused)
{
	assert_refuses("", -EINVAL, "missing");
	assert_refuses("0,,1", -EINVAL, "missing");
	assert_refuses("0,", -EINVAL, "missing");
}

TEST(no_usable_card_at_all_is_an_error)
{
	struct ll_err err;
	const struct ll_card **chosen = NULL;
	size_t count;
	assert_fails(ll_select(&cards[4], 1, "all", &chosen, &count, &err), -EPERM, "card 2");
	assert_fails(ll_select(&cards[1], 1, "all", &chosen, &count, &err), -ENODEV, "MIG");
}
