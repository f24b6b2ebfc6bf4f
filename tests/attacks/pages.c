/* Pages that the attacker makes or writes, and that loadlined reads. */
#include "attack.h"

#include <sys/mman.h>
#include <sys/sendfile.h>

#include "base/process_id.h"

static bool can_open_for_writing(int fd)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	become(ATTACKER);
	int again = open(path, O_RDWR | O_CLOEXEC);
	become(0);
	if (again >= 0)
		close(again);
	return again >= 0 || (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

/* Orders have limits and permissions, and loadlined alone writes them. */
TEST(writes_orders)
{
	struct registration registration;
	registration_init(&registration);
	assert_int_equal(attacker_register(&registration), 0);
	assert_int_equal(registration.fd_count, 2);
	succeed_if(can_open_for_writing(registration.fds[1]), "the attacker can write the orders of its job");
	registration_end(&registration);
}

/* A process that reads a mapped file beyond its end is killed. */
TEST(shortens_its_pages)
{
	struct registration registration;
	int pages[2], open_fds[2];
	struct ll_page *page;
	struct ll_orders *orders;
	registration_init(&registration);
	attacker_make_pages(&registration, pages, &page, &orders);
	orders->cards[0].uuid[0] = 'G'; /* a job on a card: its page is read */
	for (int i = 0; i < 2; i++) {
		struct stat st;
		off_t from = 0;
		become(ATTACKER);
		open_fds[i] = memfd_create("open", MFD_CLOEXEC);
		assert_int_equal(fchmod(open_fds[i], 0600), 0);
		become(0);
		assert_int_equal(fstat(pages[i], &st), 0);
		assert_int_equal(sendfile(open_fds[i], pages[i], &from, (size_t)st.st_size), st.st_size);
	}
	registration.page_fds = open_fds;
	attacker_register(&registration);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ftruncate(open_fds[i], 0), 0);
	succeed_if(!victim_is_served(), "loadlined has ended");
	registration_end(&registration);
	ll_page_unmap(page);
	ll_orders_unmap(orders);
	ll_message_close_fds(pages, 2);
	ll_message_close_fds(open_fds, 2);
}

static void spoil_weight(struct ll_page *page, struct ll_orders *orders)
{
	const struct ll_limits limits = {.weight_permille = UINT32_MAX};
	(void)page;
	ll_orders_write_limits(orders, &limits);
}

TEST(brings_a_weight_beyond_all)
{
	struct registration registration;
	int rc = attacker_register_spoilt(&registration, spoil_weight);
	succeed_if(!rc, "a job has a weight with which no other gets the card");
	registration_end(&registration);
}

static void spoil_card(struct ll_page *page, struct ll_orders *orders)
{
	orders->slot_end = 1;
	page->slots[0].card = UINT32_MAX / 2;
	page->slots[0].token = 1;
}

TEST(brings_a_slot_on_a_card_beyond_all)
{
	struct registration registration;
	attacker_register_spoilt(&registration, spoil_card);
	succeed_if(!victim_is_served(), "loadlined has ended");
	registration_end(&registration);
}

static void spoil_end(struct ll_page *page, struct ll_orders *orders)
{
	(void)page;
	orders->slot_end = UINT32_MAX;
}

TEST(brings_more_slots_than_a_page_has)
{
	struct registration registration;
	attacker_register_spoilt(&registration, spoil_end);
	succeed_if(!victim_is_served(), "loadlined has ended");
	registration_end(&registration);
}

static void spoil_uuid(struct ll_page *page, struct ll_orders *orders)
{
	(void)page;
	orders->cards[0].uuid[0] = UINT64_C(0x1b1b1b1b1b1b1b1b);
}

TEST(brings_a_card_with_escapes)
{
	struct registration registration;
	attacker_register_spoilt(&registration, spoil_uuid);
	succeed_if(!victim_is_served(), "the victim cannot read the list, because a card's name has escape characters");
	registration_end(&registration);
}

static void spoil_request(struct ll_page *page, struct ll_orders *orders)
{
	const struct ll_limits limits = {.request_bytes = VICTIM_MIB * MIB};
	uint64_t words[LL_PAGE_UUID_SIZE / 8] = {0};
	(void)page;
	memcpy(words, CARD, strlen(CARD));
	for (size_t i = 0; i < LL_PAGE_UUID_SIZE / 8; i++)
		orders->cards[0].uuid[i] = words[i];
	ll_orders_write_limits(orders, &limits);
}

/* The victim was promised memory of the card before. */
TEST(brings_a_promise)
{
	struct registration registration;
	struct ll_list list;
	union ll_message message;
	bool is_promised = false;
	ll_message_init(&message, LL_MESSAGE_BIND);
	message.bind.job = scene.victim.id;
	message.bind.promisable_bytes = VICTIM_MIB * MIB;
	ll_message_text_set(message.bind.uuid, sizeof message.bind.uuid, CARD);
	assert_int_equal(victim_request(&message, NULL, 0), 0);
	assert_int_equal(attacker_register_spoilt(&registration, spoil_request), 0);
	victim_list(&list);
	for (size_t i = 0; i < list.job_count; i++)
		is_promised |=
		    list.jobs[i].job.uid == ATTACKER && list.jobs[i].job.limits.request_bytes == VICTIM_MIB * MIB;
	ll_list_fini(&list);
	succeed_if(is_promised, "what the victim was promised is not there");
	registration_end(&registration);
}

/* ---- a slot that says that it is a process of another user ---- */

static struct ll_process_stat posed;

static void spoil_identity(struct ll_page *page, struct ll_orders *orders)
{
	struct ll_page_slot *slot = &page->slots[0];
	orders->slot_end = 1;
	orders->cards[0].uuid[0] = 'G';
	slot->pid = posed.pid;
	slot->start_ticks = posed.start_ticks;
	slot->namespaces = ll_process_namespaces();
	slot->token = 1;
}

TEST(brings_a_slot_of_anothers_process)
{
	struct registration registration;
	struct puppet puppet;
	union ll_message message;
	char name[16];
	victim_puppet(&puppet);
	snprintf(name, sizeof name, "%d", (int)puppet.pid);
	assert_int_equal(ll_process_read_stat(name, &posed), 0);
	assert_int_equal(attacker_register_spoilt(&registration, spoil_identity), 0);
	int fd = ll_process_open(puppet.pid);
	ll_message_init(&message, LL_MESSAGE_CHECKPOINT);
	message.checkpoint.state = LL_CHECKPOINT_EVICTED;
	succeed_if(victim_request(&message, &fd, 1) == -EPERM, "the victim cannot report a checkpoint of its process");
	close(fd);
	puppet_kill(&puppet);
	registration_end(&registration);
}

/* ---- more than there is ---- */

static void claim_more(int fd, unsigned number)
{
	union ll_message message;
	char uuid[LL_CARD_UUID_SIZE];
	snprintf(uuid, sizeof uuid, "GPU-%u", number);
	ll_message_init(&message, LL_MESSAGE_CLAIM);
	message.claim.job = scene.attacker.id;
	ll_message_text_set(message.claim.uuid, sizeof message.claim.uuid, uuid);
	if (ll_message_send(fd, &message, NULL, 0) == 0)
		discard_reply(fd);
}

TEST(claims_more_cards_than_a_page_has)
{
	int fd = attacker_connect(LL_ROLE_PROCESS, -1);
	for (unsigned i = 0; i < 32 * LL_PAGE_CARDS; i++)
		claim_more(fd, i);
	close(fd);
	succeed_if(!victim_is_served(), "loadlined has ended");
}
