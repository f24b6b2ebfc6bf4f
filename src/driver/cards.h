/*
 * cards.h - the cards of this machine, in PCI order, and how users name them.
 *
 * Opening the driver opens NVML and lists the cards. CUDA is opened at its first use. A MIG slice is a card of its own,
 * listed after its parent. A card that does not answer (fallen off the bus, no permission) keeps its index, so that the
 * others keep their numbers; its `fault` is the errno.
 *
 * NVML and CUDA number cards differently, and CUDA_VISIBLE_DEVICES changes CUDA's numbers. So the two are matched by
 * UUID. CUDA_VISIBLE_DEVICES does not change what `-i` means.
 *
 * Threads may share a struct ll_driver: after opening only the CUDA table in it changes, at its first use. Cards belong
 * to their driver and end with it. After a reload of the driver, close it, open it again and find the card by its UUID.
 */
#ifndef LOADLINE_DRIVER_CARDS_H
#define LOADLINE_DRIVER_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/library.h"

struct ll_driver;
struct ll_strbuf;

enum { LL_UUID_SIZE = 96 };

struct ll_card {
	struct ll_driver *driver;
	unsigned index;          /* in PCI order, the same as nvidia-smi; a slice has its parent's */
	unsigned slice;          /* a MIG slice: its number on the parent */
	char label[16];          /* "0", a MIG slice "0:1": for messages and `-i` */
	char uuid[LL_UUID_SIZE]; /* "GPU-8f6a3f3e-…", "MIG-…" */
	uint8_t uuid_bytes[16];  /* what cuDeviceGetUuid and Vulkan's deviceUUID say; zero for old-style MIG names */
	char name[96];           /* "NVIDIA H200" */
	char pci[24];            /* "0000:65:00.0"; a slice has its parent's */
	unsigned pci_domain, pci_bus, pci_device; /* the same in numbers, for VK_EXT_pci_bus_info */
	unsigned sm_count;                        /* 0 when unknown: ask CUDA */
	uint64_t memory_bytes;                    /* 0 when unknown */
	uint64_t usable_bytes;                    /* the same without what the driver keeps for itself */
	struct ll_nvml_device *nvml;              /* a slice's own handle; not every query takes it */
	bool is_mig;                              /* a slice */
	bool has_slices;                          /* a card in MIG mode: it runs nothing itself */
	const struct ll_card *parent;             /* a slice's card, else NULL */
	int fault;                                /* 0, or the -errno of a card that does not answer */
};

/* Opens NVML and lists the cards. The caller closes the driver. -ENODEV: there is no driver or no card. */
int ll_driver_open(struct ll_driver **ret_driver, struct ll_err *err);
void ll_driver_close(struct ll_driver *driver); /* NULL is fine */

/*
 * Makes a driver of cards that another process has listed, in PCI order, without NVML. The cards are copied. Each has a
 * fault, which the caller sets: nothing can be read from it. sim_folder: of the simulated world, or NULL. -ENOMEM.
 */
int ll_driver_of_list(const struct ll_card *cards, size_t count, const char *sim_folder, struct ll_driver **ret_driver,
		      struct ll_err *err);

/* Returns the table of NVML's functions. It is the driver's. */
const struct ll_nvml *ll_driver_nvml(const struct ll_driver *driver);

/* Gives the table of CUDA's functions. The first call opens CUDA; after a failure the next call tries again. Any
 * thread. */
int ll_driver_cuda(struct ll_driver *driver, const struct ll_cuda **ret_cuda, struct ll_err *err);

/* Returns the folder of the simulated world if the driver is simulated, else NULL. The driver owns
 * it. */
const char *ll_driver_sim_folder(const struct ll_driver *driver);

/* Gives all cards, also slices and those that do not answer, in PCI order. Returns their number. */
size_t ll_driver_cards(const struct ll_driver *driver, const struct ll_card **ret_cards);

/*
 * Gives the cards that text names, each once, in PCI order. text is a list with commas of: an index or range ("0",
 * "2-3"), a slice ("0:1"), a UUID or the beginning of exactly one ("GPU-8f6a", "MIG-…"), a PCI address ("0000:65:00.0",
 * "65:00.0", also with eight digits of domain, as nvidia-smi writes it), or "all". "all" is every card that answers,
 * and for a card in MIG mode its slices. NULL is "all". An index of a card in MIG mode names that card itself; the
 * caller decides whether it can use it.
 *
 * *ret_cards is one allocation for free(3); the cards are the driver's. -EINVAL: text cannot be read ("", "1-", "3-1",
 * "0,,1"), or is the beginning of several UUIDs. -ENODEV: there is no such card; err names those that exist. If a named
 * card does not answer, the error is its fault.
 */
int ll_cards_select(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
		    size_t *ret_count, struct ll_err *err);

/* Returns the memory node that the kernel says the card is at (/sys/bus/pci); -1: it does not say, as on most machines
 * with one processor, or has no such device, as of a simulated card. */
int ll_card_numa_node(const struct ll_card *card);

/* Appends the CPUs that the kernel says are near the card ("0-15,32-47"); it names all if it does not know the node.
 * Errors of open and read, which err names. */
int ll_card_local_cpus(const struct ll_card *card, struct ll_strbuf *text, struct ll_err *err);

/* Returns the card with exactly this UUID, or NULL. */
const struct ll_card *ll_cards_find_uuid(const struct ll_driver *driver, const char *uuid);

/*
 * Finds the card's CUDA device by UUID, and opens CUDA if it is not open. ret_cuda may be NULL. -ENODEV: CUDA does not
 * show the card; err says so if CUDA_VISIBLE_DEVICES hides it.
 */
int ll_card_cuda_device(const struct ll_card *card, const struct ll_cuda **ret_cuda, ll_cu_device *ret_device,
			struct ll_err *err);

/* Returns the card that can be asked for power, temperature and clocks: a slice's parent, else the card itself. */
const struct ll_card *ll_card_whole(const struct ll_card *card);

#endif
