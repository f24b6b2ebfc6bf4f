/* What the model reads from PTX text. */
#include "cuda/local/ptx.h"

#include <errno.h>

#include "test.h"

TEST(reads_entries_parameters_and_variables)
{
	struct sim_ptx ptx;
	assert_int_equal(sim_ptx_parse("// made by hand\n"
				       ".version 7.4 /* and\n more */\n"
				       ".target sm_90a, debug\n"
				       ".address_size 64\n"
				       ".visible .global .align 4 .u32 stop_epoch = 0;\n"
				       ".global .align 16 .b8 table[2][8] = {1, 2};\n"
				       ".extern .shared .align 16 .b8 scratch[];\n"
				       ".func (.reg .b32 r) helper(.reg .b32 a) { ret; }\n"
				       ".visible .entry first(\n"
				       "	.param .u32 a, .param .u64 .ptr .global .align 8 b, .param .f32 c,\n"
				       "	.param .align 16 .b8 d[40])\n"
				       ".maxntid 1024, 1, 1\n"
				       "{ .reg .b32 %r<4>; { mov.u32 %r1, 0; } ret; }\n"
				       ".weak .entry second() { ret; }\n"
				       ".entry third { ret; }\n",
				       &ptx, NULL),
			 0);
	assert_int_equal(ptx.version, 74);
	assert_int_equal(ptx.target, 90);
	assert_int_equal(ptx.entry_count, 3);
	assert_string_equal(ptx.entries[0].name, "first");
	assert_int_equal(ptx.entries[0].param_count, 4);
	const struct {
		size_t offset, size;
	} expected[] = {{0, 4}, {8, 8}, {16, 4}, {32, 40}};
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(ptx.entries[0].params[i].offset, expected[i].offset);
		assert_int_equal(ptx.entries[0].params[i].size, expected[i].size);
	}
	assert_int_equal(ptx.entries[0].param_bytes, 72);
	assert_string_equal(ptx.entries[2].name, "third");
	assert_int_equal(ptx.entries[2].param_count, 0);
	assert_int_equal(ptx.variable_count, 2);
	assert_string_equal(ptx.variables[0].name, "stop_epoch");
	assert_int_equal(ptx.variables[0].bytes, 4);
	assert_int_equal(ptx.variables[1].bytes, 16);
	sim_ptx_fini(&ptx);
}

TEST(refuses_what_is_no_ptx_and_says_where)
{
	struct ll_err err;
	struct sim_ptx ptx;
	assert_fails(sim_ptx_parse("", &ptx, &err), -EINVAL, "no .version");
	assert_fails(sim_ptx_parse("hello", &ptx, &err), -EINVAL, "before .version");
	assert_fails(sim_ptx_parse(".version x\n", &ptx, &err), -EINVAL, "not a version");
	assert_fails(sim_ptx_parse(".version 7.4\n", &ptx, &err), -EINVAL, "no .target");
	assert_fails(sim_ptx_parse(".version 7.4\n.target sm_50\n.entry", &ptx, &err), -EINVAL, "without a name");
	assert_fails(sim_ptx_parse(".version 7.4\n.target sm_50\n\n.entry k(.reg .u32 a) {}", &ptx, &err), -EINVAL,
		     "line 4: '.reg' where .param");
	assert_fails(sim_ptx_parse(".version 7.4\n.target sm_50\n.entry k(.param a) {}", &ptx, &err), -EINVAL,
		     "not a declaration");
}

TEST(survives_any_cut)
{
	static const char text[] = ".version 7.4\n.target sm_50\n.global .u32 a[3];\n"
				   ".entry k(.param .u64 x, .param .align 8 .b8 y[24]) { /* { */ ret; }\n";
	for (size_t n = 0; n < sizeof text; n++) {
		char *copy = calloc(1, n + 1);
		struct sim_ptx ptx;
		assert_non_null(copy);
		memcpy(copy, text, n);
		if (sim_ptx_parse(copy, &ptx, NULL) == 0)
			sim_ptx_fini(&ptx);
		free(copy);
	}
}
