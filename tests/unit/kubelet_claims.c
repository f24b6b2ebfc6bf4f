/* Reading of ResourceClaims: quantities, and what a claim was given of this driver's cards. */
#include "kubelet/claims.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "test.h"

#define CARD(letter) "GPU-" letter "0ad11fe-0200-4200-8200-000000000001"
#define NAME(letter) "gpu-" letter "0ad11fe-0200-4200-8200-000000000001"
#define GIB (UINT64_C(1) << 30)

static const char devices[] =
    "{'cdiVersion': '0.3.0', 'kind': 'loadline.dev/claims', 'containerEdits': {'env': ['LD_PRELOAD=x']}, 'devices': ["
    "{'name': '" CARD("A") ".any.1', 'containerEdits': {'env': ['NVIDIA_VISIBLE_DEVICES=" CARD(
	"A") "'], 'hooks': [{"
	     "'args': ['loadline', 'cdi', 'hook', '--cards', '" CARD(
		 "A") "', '--resource', 'x/any', '--mem', '81920M', "
		      "'--compute', '100%', '--class', 'low']}]}}, "
		      "{'name': '" CARD(
			  "B") ".any.1', 'containerEdits': {'hooks': [{'args': ['loadline', 'cdi', 'hook', '--cards', "
			       "'" CARD("B") "', '--resource', 'x/any', '--mem', '40960M', '--compute', '50.5%']}]}}]}";

/* JSON with ' in place of ". */
static json_t *parse(const char *text)
{
	char *copy = strdup(text);
	for (char *at = copy; (at = strchr(at, '\''));)
		*at = '"';
	json_t *value = json_loads(copy, 0, NULL);
	assert_non_null(value);
	free(copy);
	return value;
}

TEST(quantities)
{
	static const struct {
		const char *text;
		uint64_t milli;
	} good[] = {
	    {"13Gi", 13 * GIB * 1000},
	    {"37", 37000},
	    {"0", 0},
	    {"37500m", 37500},
	    {"1.5Gi", 3 * GIB * 500},
	    {"12e3", 12000000},
	    {"12E3", 12000000},
	    {"143154Mi", UINT64_C(143154) * 1024 * 1024 * 1000},
	    {"5k", 5000000},
	    {"1n", 1},
	    {"1100u", 2},
	    {"2M", 2000000000},
	};
	static const char *const bad[] = {"",    "Gi",   "-1",  "+1",    "13GiB", "13 Gi", "0x10", "inf",
					  "nan", "1e99", "13g", "1.2.3", "1E",    "20Ei",  " 1"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		uint64_t milli = 7;
		assert_int_equal(ll_kubelet_quantity_read(good[i].text, &milli), 0);
		assert_int_equal(milli, good[i].milli);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint64_t milli = 7;
		assert_int_equal(ll_kubelet_quantity_read(bad[i], &milli), -EINVAL);
		assert_int_equal(milli, 7);
	}
}

/* ---- claims ---- */

static struct ll_kubelet_cut cards[] = {
    {.uuid = CARD("A"), .resource = "x/any"},
    {.uuid = CARD("B"), .resource = "x/any"},
};

static struct ll_kubelet_cuts make_cuts(void)
{
	return (struct ll_kubelet_cuts){.description = parse(devices), .items = cards, .count = 2};
}

#define RESULT(request, device, more)                                                                                  \
	"{'request': '" request "', 'driver': 'gpu.loadline.dev', 'pool': 'n1', 'device': '" device "'" more "}"
#define CONSUMED(memory, compute) ", 'consumedCapacity': {'memory': '" memory "', 'compute': '" compute "'}"
#define CLAIM(results) "{'metadata': {'uid': 'u1'}, 'status': {'allocation': {'devices': {'results': [" results "]}}}}"

static int read_claim(struct ll_kubelet_claim *claim, const char *text, struct ll_err *err)
{
	struct ll_kubelet_cuts cuts = make_cuts();
	json_t *object = parse(text);
	int rc = ll_kubelet_claim_read(claim, object, "u1", "n1", &cuts, err);
	json_decref(object);
	json_decref(cuts.description);
	return rc;
}

TEST(a_claim_has_what_it_consumes)
{
	struct ll_kubelet_claim claim;
	assert_int_equal(
	    read_claim(
		&claim,
		CLAIM(RESULT(
		    "main", NAME("a"),
		    CONSUMED("13Gi",
			     "37")) ", "
				    "{'driver': 'other.dev', 'request': 'nic', 'pool': 'p', 'device': 'd'}, " RESULT(
					"more/less", NAME("b"),
					", 'consumedCapacity': {'gpu.loadline.dev/memory': '1536Mi'}")),
		NULL),
	    0);
	assert_int_equal(claim.count, 2);
	assert_string_equal(claim.parts[0].request, "main");
	assert_int_equal(claim.parts[0].memory_bytes, 13 * GIB);
	assert_int_equal(claim.parts[0].compute_milli, 37000);
	assert_ptr_equal(claim.parts[0].cards[0], &cards[0]);
	assert_string_equal(claim.parts[1].request, "more/less");
	assert_int_equal(claim.parts[1].memory_bytes, 3 * GIB / 2);
	/* What is not said is all that there is, in whole percents. */
	assert_int_equal(claim.parts[1].compute_milli, 50000);
	assert_int_equal(read_claim(&claim, CLAIM(RESULT("main", NAME("b"), "")), NULL), 0);
	assert_int_equal(claim.parts[0].memory_bytes, 40 * GIB);
	/* Two cards of one request. */
	assert_int_equal(read_claim(&claim,
				    CLAIM(RESULT("main", NAME("a"), CONSUMED("1Gi", "5")) ", " RESULT(
					"main", NAME("b"), CONSUMED("1Gi", "5"))),
				    NULL),
			 0);
	assert_int_equal(claim.count, 1);
	assert_int_equal(claim.parts[0].count, 2);
}

TEST(what_is_not_given_is_refused)
{
	static const struct {
		const char *text;
		int rc;
		const char *why;
	} cases[] = {
	    {"{'metadata': {'uid': 'u2'}}", -ESTALE, "another claim"},
	    {"{'metadata': {}}", -ESTALE, "another claim"},
	    {"{'metadata': {'uid': 'u1'}, 'status': {}}", -ENOENT, "not allocated"},
	    {CLAIM(""), -ENOENT, "no device of gpu.loadline.dev"},
	    {CLAIM(RESULT("main", NAME("c"), "")), -ENODEV, "not here now"},
	    {CLAIM(RESULT("main", CARD("A"), "")), -ENODEV, "not here now"},
	    {CLAIM("{'driver': 'gpu.loadline.dev', 'request': 'main', 'pool': 'n2', 'device': 'x'}"), -ENODEV,
	     "node n2"},
	    {CLAIM(RESULT("", NAME("a"), "")), -EINVAL, "no name"},
	    {CLAIM(RESULT("main", NAME("a"), ", 'adminAccess': true")), -EINVAL, "admin access"},
	    {CLAIM(RESULT("main", NAME("a"), CONSUMED("81Gi", "1"))), -EINVAL, "has less"},
	    {CLAIM(RESULT("main", NAME("b"), CONSUMED("1Gi", "50001m"))), -EINVAL, "has less"},
	    {CLAIM(RESULT("main", NAME("a"), CONSUMED("0", "1"))), -EINVAL, "no amount of memory"},
	    {CLAIM(RESULT("main", NAME("a"), CONSUMED("1Gi", "-1"))), -EINVAL, "no amount of compute"},
	    {CLAIM(RESULT("main", NAME("a"), ", 'consumedCapacity': {'memory': 5}")), -EINVAL, "no amount of memory"},
	    {CLAIM(
		 RESULT("main", NAME("a"), CONSUMED("1Gi", "1")) ", " RESULT("main", NAME("a"), CONSUMED("1Gi", "1"))),
	     -EINVAL, "twice"},
	    {CLAIM(
		 RESULT("main", NAME("a"), CONSUMED("1Gi", "1")) ", " RESULT("main", NAME("b"), CONSUMED("2Gi", "1"))),
	     -EINVAL, "different sizes"},
	    {"{'metadata': {'uid': 'u1'}, 'status': {'allocation': {'devices': {'config': [{'opaque': {'driver': "
	     "'gpu.loadline.dev'}}], 'results': []}}}}",
	     -EINVAL, "parameters"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ll_kubelet_claim claim;
		struct ll_err err = {0};
		assert_int_equal(read_claim(&claim, cases[i].text, &err), cases[i].rc);
		if (!strstr(err.text, cases[i].why))
			fail_msg("%zu: %s", i, err.text);
	}
}

TEST(a_description_has_the_claims_limits)
{
	struct ll_kubelet_claim claim;
	struct ll_kubelet_cuts cuts = make_cuts();
	uint64_t bytes = 0, milli = 0;
	json_t *object = parse(CLAIM(RESULT("main/less", NAME("a"), CONSUMED("13Gi", "37"))));
	assert_int_equal(ll_kubelet_claim_read(&claim, object, "u1", "n1", &cuts, NULL), 0);
	json_t *made = ll_kubelet_claim_describe(&claim, "u1", "/run/cdi", &cuts);
	const json_t *device = json_array_get(json_object_get(made, "devices"), 0);
	assert_string_equal(json_string_value(json_object_get(made, "kind")), "loadline.dev/claim");
	assert_string_equal(json_string_value(json_object_get(device, "name")), "u1:main:less");
	assert_int_equal(ll_kubelet_device_limits(device, &bytes, &milli, NULL), 0);
	assert_int_equal(bytes, 13 * GIB);
	assert_int_equal(milli, 37000);
	assert_string_equal(ll_kubelet_device_word(device, "--class"), "low");
	assert_string_equal(ll_kubelet_device_word(device, "--cards"), CARD("A"));
	assert_string_equal(ll_kubelet_device_word(device, "--holder"), "/run/cdi/loadline-claim-u1:main:less.holder");
	/* The part that it was made of is as before. */
	assert_int_equal(ll_kubelet_capacity(&cuts, &cards[0], &bytes, &milli, NULL), 0);
	assert_int_equal(bytes, 80 * GIB);
	json_decref(made);
	json_decref(object);
	json_decref(cuts.description);
}
