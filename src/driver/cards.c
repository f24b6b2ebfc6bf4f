#include "driver/cards.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "driver/enumerate.h"
#include "driver/select.h"

struct ll_driver {
	struct ll_nvml nvml;
	struct ll_card *cards;
	size_t card_count;
	char *sim_folder;
	pthread_mutex_t cuda_mutex;
	struct ll_cuda cuda; /* .library is NULL until somebody asked */
};

/* The simulator's libraries export this and the vendor's do not. */
static char *find_sim_folder(void *library)
{
	const char *(*world)(void);
	void *address = dlsym(library, "loadline_sim_world");
	memcpy(&world, &address, sizeof address);
	const char *folder = world ? world() : NULL;
	return folder ? strdup(folder) : NULL;
}

int ll_driver_open(struct ll_driver **ret_driver, struct ll_err *err)
{
	struct ll_driver *driver = calloc(1, sizeof *driver);
	if (!driver)
		return ll_err_set(err, -ENOMEM, "open the driver: %s", strerror(ENOMEM));
	pthread_mutex_init(&driver->cuda_mutex, NULL);
	int rc = ll_nvml_init(&driver->nvml, err);
	if (!rc)
		rc = ll_cards_enumerate(driver, &driver->nvml, &driver->cards, &driver->card_count, err);
	if (rc) {
		ll_driver_close(driver);
		return rc;
	}
	driver->sim_folder = find_sim_folder(driver->nvml.library);
	*ret_driver = driver;
	return 0;
}

void ll_driver_close(struct ll_driver *driver)
{
	if (!driver)
		return;
	ll_cuda_fini(&driver->cuda);
	ll_nvml_fini(&driver->nvml);
	pthread_mutex_destroy(&driver->cuda_mutex);
	free(driver->sim_folder);
	free(driver->cards);
	free(driver);
}

const struct ll_nvml *ll_driver_nvml(const struct ll_driver *driver)
{
	return &driver->nvml;
}

int ll_driver_cuda(struct ll_driver *driver, const struct ll_cuda **ret_cuda, struct ll_err *err)
{
	LL_SCOPE_LOCK(&driver->cuda_mutex);
	if (!driver->cuda.library) {
		int rc = ll_cuda_init(&driver->cuda, err);
		if (rc)
			return rc;
	}
	*ret_cuda = &driver->cuda;
	return 0;
}

const char *ll_driver_sim_folder(const struct ll_driver *driver)
{
	return driver->sim_folder;
}

size_t ll_driver_cards(const struct ll_driver *driver, const struct ll_card **ret_cards)
{
	*ret_cards = driver->cards;
	return driver->card_count;
}

int ll_cards_select(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
		    size_t *ret_count, struct ll_err *err)
{
	return ll_select(driver->cards, driver->card_count, text, ret_cards, ret_count, err);
}

const struct ll_card *ll_cards_find_uuid(const struct ll_driver *driver, const char *uuid)
{
	for (size_t i = 0; i < driver->card_count; i++) {
		if (strcmp(driver->cards[i].uuid, uuid) == 0)
			return &driver->cards[i];
	}
	return NULL;
}

const struct ll_card *ll_card_whole(const struct ll_card *card)
{
	return card->parent ? card->parent : card;
}
