/* Look-ups from everybody's place: of a library that was opened later, is linked to the driver or wraps it, by
 * RTLD_NEXT and RTLD_DEFAULT, for the names of dlsym itself, and drivers of other names. On the simulator. */
#include "where.h"

#include <unistd.h>

/* A version that libc's dlsym has on this machine. */
static const char *libc_version(void)
{
	static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34"};
	for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
		if (dlvsym(RTLD_DEFAULT, "dlsym", versions[i]))
			return versions[i];
	}
	return NULL;
}

struct asker {
	void *handle;
	void *(*ask)(void *handle, const char *name);
	void *(*ask_version)(void *handle, const char *name, const char *version);
};

/* kind: SHIM_TEST_ASKER, and which of them. */
static struct asker open_asker(const char *kind, int flags)
{
	char path[512];
	struct asker asker;
	snprintf(path, sizeof path, "%s/libasker_%s.so", getenv("SHIM_TEST_LIBRARIES"), kind);
	asker.handle = dlopen(path, RTLD_NOW | flags);
	if (!asker.handle)
		give_up(__FILE__, __LINE__, dlerror());
	void *found = dlsym(asker.handle, "ask");
	memcpy(&asker.ask, &found, sizeof found);
	found = dlsym(asker.handle, "ask_version");
	memcpy(&asker.ask_version, &found, sizeof found);
	return asker;
}

/* An answer leaves no error behind. */
static void check_hook(void *found, const char *symbol)
{
	CHECK(!dlerror());
	CHECK(is_hook(found, symbol));
}

/* The two handles that depend on who asks lead to the hooks, and to the driver for all other names. */
static void check_linked(struct asker asker)
{
	void *const handles[] = {RTLD_NEXT, RTLD_DEFAULT};
	for (int i = 0; i < 2; i++) {
		check_hook(asker.ask(handles[i], "cuMemAlloc_v2"), "cuMemAlloc_v2");
		check_hook(asker.ask(handles[i], "cuGetProcAddress_v2"), "cuGetProcAddress_v2");
		check_hook(asker.ask(handles[i], "nvmlDeviceGetMemoryInfo"), "nvmlDeviceGetMemoryInfo");
		CHECK(is_in(asker.ask(handles[i], "cuInit"), "/libcuda.so.1"));
		CHECK(is_in(asker.ask(handles[i], "nvmlInit_v2"), "/libnvidia-ml.so.1"));
	}
}

TEST_IN_WORLD(NULL, a_library_linked_to_the_driver_gets_hooks_from_its_own_scope)
{
	check_linked(open_asker("linked", RTLD_LOCAL));
}

TEST_IN_WORLD("missing cuMemAlloc_v2", what_the_driver_lacks_is_not_in_any_scope)
{
	struct asker asker = open_asker("linked", RTLD_LOCAL);
	CHECK(!asker.ask(RTLD_NEXT, "cuMemAlloc_v2"));
	const char *text = dlerror();
	CHECK(text && strstr(text, "cuMemAlloc_v2"));
	check_hook(asker.ask(RTLD_NEXT, "cuMemFree_v2"), "cuMemFree_v2");
}

TEST_IN_WORLD(NULL, a_wrapper_that_is_opened_later_calls_the_hooks)
{
	struct asker asker = open_asker("wrapper", RTLD_LOCAL);
	check_linked(asker);
	/* Its own function is its own. */
	CHECK(is_in(dlsym(asker.handle, "cuMemAlloc_v2"), "/libasker_wrapper.so"));
	CHECK(is_in(asker.ask(asker.handle, "cuMemAlloc_v2"), "/libasker_wrapper.so"));
}

TEST_IN_WORLD(NULL, a_library_without_the_driver_in_its_scope_finds_none_there)
{
	struct asker asker = open_asker("plain", RTLD_LOCAL);
	open_cuda();
	CHECK(!asker.ask(RTLD_NEXT, "cuMemAlloc_v2"));
	const char *text = dlerror();
	CHECK(text && strstr(text, "cuMemAlloc_v2"));
	check_hook(asker.ask(RTLD_DEFAULT, "cuMemAlloc_v2"), "cuMemAlloc_v2");
	check_hook(asker.ask(cu.library, "cuMemAlloc_v2"), "cuMemAlloc_v2");
}

/* Every way to dlsym and dlvsym, of this program and of a library that comes after ours. */
TEST_IN_WORLD(NULL, every_way_to_dlsym_leads_to_ours)
{
	const char *version = libc_version();
	struct asker asker = open_asker("plain", RTLD_LOCAL);
	void *const handles[] = {RTLD_NEXT, RTLD_DEFAULT, dlopen("libc.so.6", RTLD_NOW), dlopen(NULL, RTLD_NOW),
				 dlopen("libdl.so.2", RTLD_NOW)};
	static const char *const names[] = {"dlsym", "dlvsym"};
	CHECK(version);
	for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
		for (int k = 0; k < 2; k++) {
			CHECK(is_in_shim(dlsym(handles[i], names[k])));
			CHECK(is_in_shim(dlvsym(handles[i], names[k], version)));
			CHECK(is_in_shim(asker.ask(handles[i], names[k])));
			CHECK(is_in_shim(asker.ask_version(handles[i], names[k], version)));
			CHECK(!dlerror());
			CHECK(!dlvsym(handles[i], names[k], "GLIBC_0.1"));
			CHECK(dlerror());
			CHECK(!asker.ask_version(handles[i], names[k], "GLIBC_0.1"));
			CHECK(dlerror());
		}
	}
	/* The rest of libc stays libc's. */
	CHECK(!is_in_shim(dlsym(RTLD_NEXT, "dlopen")));
	CHECK(!is_in_shim(asker.ask(RTLD_NEXT, "dlopen")));
}

/* glibc before 2.34 has names of its own for dlsym. A newer one has none, and none is invented. */
TEST_IN_WORLD(NULL, libc_s_private_names_of_dlsym_lead_to_ours)
{
	static const char *const names[] = {"_dl_sym", "_dl_vsym", "__libc_dlsym", "__libc_dlvsym"};
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		void *found = dlsym(libc, names[i]);
		CHECK(!found || is_in_shim(found));
	}
}

/* A file of this world that leads to that library. */
static const char *link_as(const char *target, const char *name)
{
	static char path[512];
	snprintf(path, sizeof path, "%s/%s", getenv("LOADLINE_SIM_DIR"), name);
	CHECK(symlink(target, path) == 0);
	return path;
}

static const char *sim_libcuda(void)
{
	static char path[512];
	snprintf(path, sizeof path, "%s/libcuda.so.1", getenv("LOADLINE_SIM_LIBRARIES"));
	return path;
}

static const char *whole(void)
{
	static char path[512];
	snprintf(path, sizeof path, "%s/libwhole.so", getenv("SHIM_TEST_LIBRARIES"));
	setenv("LOADLINE_FORWARD_TO", sim_libcuda(), 1);
	return path;
}

/* Each call goes through the hook once, and to the driver. */
static void use_driver(void *library)
{
	__typeof__(cu.cuInit) init;
	__typeof__(cu.cuCtxCreate) create;
	__typeof__(cu.cuMemAlloc) allocate;
	struct ll_cu_context *context;
	ll_cu_deviceptr address;
	void *found = dlsym(library, "cuInit");
	CHECK(found && !is_in_shim(found));
	memcpy(&init, &found, sizeof found);
	found = dlsym(library, "cuCtxCreate_v2");
	check_hook(found, "cuCtxCreate_v2");
	memcpy(&create, &found, sizeof found);
	found = dlsym(library, "cuMemAlloc_v2");
	check_hook(found, "cuMemAlloc_v2");
	memcpy(&allocate, &found, sizeof found);
	CHECK_EQUAL(init(0), 0);
	CHECK_EQUAL(create(&context, 0, 0), 0);
	CHECK_EQUAL(allocate(&address, 4096), 0);
}

static void body_whole(void)
{
	void *library = dlopen(whole(), RTLD_NOW | RTLD_LOCAL);
	CHECK(library);
	use_driver(library);
}

TEST(a_driver_of_another_name_leads_to_the_hooks)
{
	in_world(NULL, body_whole);
}

TEST_IN_WORLD(NULL, so_it_does_beside_the_driver)
{
	open_cuda();
	body_whole();
}

TEST_IN_WORLD(NULL, a_driver_that_forwards_all_leads_to_the_hooks_once)
{
	void *library = dlopen(link_as(whole(), "libcuda.so.1"), RTLD_NOW | RTLD_LOCAL);
	CHECK(library);
	use_driver(library);
	/* The library that it forwards to, opened by the program itself. */
	void *other = dlopen(sim_libcuda(), RTLD_NOW);
	check_hook(dlsym(other, "cuMemAlloc_v2"), "cuMemAlloc_v2");
	check_hook(dlsym(other, "cuLaunchKernel"), "cuLaunchKernel");
}
