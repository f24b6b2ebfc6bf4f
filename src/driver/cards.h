/*
 * cards.h - the cards of this machine, in PCI order, and how users name them.
 *
 * Opening the driver opens NVML and lists the cards; CUDA is opened by whoever first asks for it. A MIG slice is a card
 * of its own kind, listed after its parent. A card that is there but does not answer (fallen off the bus, no
 * permission) keeps its index and carries its errno in `fault`, so the others keep their numbers.
 *
 * NVML and CUDA number cards differently, and CUDA_VISIBLE_DEVICES changes CUDA's numbers: the two are matched by
 * UUID. CUDA_VISIBLE_DEVICES does not change what `-i` means.
 *
 * A struct ll_driver may be shared by threads; nothing in it changes after opening but the lazily opened CUDA table.
 * Cards belong to their driver and end with it. To survive a reload of the driver close it, open it again and find
 * the card by its UUID.
 */
#ifndef LOADLINE_DRIVER_CARDS_H
#define LOADLINE_DRIVER_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/library.h"

struct ll_driver;

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
	struct ll_nvml_device *nvml;              /* a slice's own handle; not every query takes it */
	bool is_mig;                              /* a slice */
	bool has_slices;                          /* a card in MIG mode: it runs nothing itself */
	const struct ll_card *parent;             /* a slice's card, else NULL */
	int fault;                                /* 0, or the -errno with which it refused to be asked */
};

/* Opens NVML, lists the cards. -ENODEV when there is no driver or no card. */
int ll_driver_open(struct ll_driver **ret_driver, struct ll_err *err);
void ll_driver_close(struct ll_driver *driver); /* NULL is fine */

const struct ll_nvml *ll_driver_nvml(const struct ll_driver *driver);

/* The CUDA table, opened by the first call; a failure is tried again by the next. Any thread. */
int ll_driver_cuda(struct ll_driver *driver, const struct ll_cuda **ret_cuda, struct ll_err *err);

/* The folder of the simulated world when the driver is the simulator's, else NULL: ledgers live there
 * (ledger/file.h). Owned by the driver. */
const char *ll_driver_sim_folder(const struct ll_driver *driver);

/* All cards, slices and faulty ones included, in PCI order. */
size_t ll_driver_cards(const struct ll_driver *driver, const struct ll_card **ret_cards);

/*
 * The cards that text names, each once, in PCI order: indices and ranges ("0", "0,2-3"), a slice "0:1", a UUID
 * or the beginning of just one ("GPU-8f6a", "MIG-…"), a PCI address ("0000:65:00.0", "65:00.0", also with eight digits
 * of domain, as nvidia-smi writes it), "all" (every card that answers; a card in MIG mode stands for its slices), or
 * several of these with commas. NULL is "all".
 * A card in MIG mode named by index is itself: whether that is of use is the caller's to say.
 *
 * *ret_cards is one allocation for free(3); the cards stay the driver's. -EINVAL for what cannot be read
 * ("", "1-", "3-1", "0,,1") and for the beginning of several UUIDs, -ENODEV naming what exists for what is not there;
 * for a named card that does not answer, its fault.
 */
int ll_cards_select(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
		    size_t *ret_count, struct ll_err *err);

/* The card with exactly this UUID, or NULL. */
const struct ll_card *ll_cards_find_uuid(const struct ll_driver *driver, const char *uuid);

/*
 * The card's CUDA device, found by UUID. -ENODEV when CUDA does not show it, saying so where CUDA_VISIBLE_DEVICES
 * hides it. ret_cuda may be NULL. Opens CUDA where that has not been done.
 */
int ll_card_cuda_device(const struct ll_card *card, const struct ll_cuda **ret_cuda, ll_cu_device *ret_device,
			struct ll_err *err);

/* The card that answers for what a slice cannot be asked (power, temperature, clocks): its parent, or itself. */
const struct ll_card *ll_card_whole(const struct ll_card *card);

#endif
